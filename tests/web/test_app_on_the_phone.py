"""The page as an app (UI-95): installable, there without a network, told by push, a target for sharing."""

import json
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import HANG_S, patience
from support.push_service import PushService
from support.web_actions import is_idle, log, say

pytestmark = pytest.mark.timeout(patience(90))

# What Chromium cannot do without Google's service: a subscription, here at a service on loopback.
SUBSCRIBED = """
PushManager.prototype.subscribe = async function () {
  const made = %s;
  const subscription = { endpoint: made.endpoint, toJSON: () => made, unsubscribe: async () => { delete window.made; return true; } };
  window.made = subscription;
  return subscription;
};
PushManager.prototype.getSubscription = async () => window.made ?? null;
Object.defineProperty(Notification, "permission", { get: () => "granted" });
Notification.requestPermission = async () => "granted";
"""
LED = """
(limit) => new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error("no service worker took over")), limit);
  const look = () => navigator.serviceWorker.controller && resolve();
  navigator.serviceWorker.addEventListener("controllerchange", look);
  look();
})
"""
SHARE = """
([text, name]) => {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", enctype: "multipart/form-data", action: "/share" });
  const put = (name, value) => { const field = document.createElement("input"); Object.assign(field, { name, value }); form.append(field); };
  put("title", ""); put("text", text); put("url", "https://example.org/article");
  const files = document.createElement("input");
  Object.assign(files, { type: "file", name: "files" });
  const list = new DataTransfer();
  list.items.add(new File(["GIF89a"], name, { type: "image/gif" }));
  files.files = list.files;
  form.append(files);
  document.body.append(form);
  form.submit();
}
"""


async def installed(page: Page, place: str = "/") -> None:
    """Open a page and wait until its service worker leads it."""
    await page.goto(place)
    await page.evaluate(LED, HANG_S * 1000)


async def test_the_manifest_names_pictures_that_are_there(page: Page, server: LiveServer) -> None:
    """UI-95, UI-37."""
    manifest = (await server.http.get("/manifest.webmanifest")).json()
    sizes = {icon["sizes"] for icon in manifest["icons"]}
    assert {"192x192", "512x512"} <= sizes and any(
        icon["purpose"] == "maskable" for icon in manifest["icons"]
    )
    for icon in manifest["icons"]:
        answer = await server.http.get(f"/{icon['src']}")
        assert answer.status_code == 200 and answer.headers["content-type"] == icon["type"]
    worker = await server.http.get("/sw.js")
    assert worker.headers["cache-control"] == "no-cache"
    shell = json.loads(worker.text.split("const SHELL = ")[1].partition(";")[0])
    assert any(path.endswith(".js") for path in shell)
    for path in shell:  # one that is missing would keep the worker from being installed
        assert (await server.http.get(f"/{path}")).status_code == 200, path
    await page.goto("/")
    assert (
        await server.http.get(await page.get_attribute("link[rel=apple-touch-icon]", "href") or "")
    ).status_code == 200


async def test_the_shell_is_there_without_a_network_and_nothing_private_is_kept(
    context: BrowserContext, page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-95: no answer of the API is ever in a cache; words that are typed offline are kept."""
    fake.script({"text": "Very private."})
    await installed(page)
    await say(page, "hello")
    await expect(log(page).get_by_text("Very private.")).to_be_visible()
    await is_idle(page)
    kept = await page.evaluate(
        "caches.keys().then((names) => Promise.all(names.map(async (name) => (await (await caches.open(name)).keys()).map((r) => new URL(r.url).pathname))))"
    )
    paths = {path for names in kept for path in names}
    assert "/" in paths and any(path.endswith(".js") for path in paths)
    assert all(path == "/" or path.startswith("/assets/") or path.count("/") == 1 for path in paths)
    assert not any(path.startswith(("/api", "/health")) for path in paths)
    await context.set_offline(True)
    await page.goto("/")
    await expect(page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    assert "Very private." not in await page.content()
    await page.get_by_label("Your message").fill("for later")
    await page.reload()
    await expect(page.get_by_label("Your message")).to_have_value("for later")
    await context.set_offline(False)


async def test_a_question_comes_by_push_to_the_worker_which_leads_to_it(
    browser: Browser, server: LiveServer, fake: FakeModels
) -> None:
    """UI-95: the server encrypts, a push service on loopback decrypts as the browser would, and the real
    worker shows what arrived; who looks at the conversation is not told."""
    write = {"name": "write_file", "input": {"path": "/a", "content": "a"}}
    fake.answer(lambda body, _: {"tools": [write]} if len(body["messages"]) < 2 else {"text": "Thanks."})
    with PushService() as service:
        context = await browser.new_context(base_url=server.address, permissions=["notifications"])
        await context.add_init_script(SUBSCRIBED % json.dumps(service.subscription()))
        page = await context.new_page()
        await _allow(server, service)
        await installed(page)
        await page.get_by_role("button", name="Account and settings").click()
        await page.get_by_role("menuitem", name="Notify me").click()
        await expect(
            page.get_by_text("You will be notified when an agent needs your answer.")
        ).to_be_visible()
        waiting = await server.conversation(enable_approval=True, title="Private title")
        await server.http.post(f"/api/conversations/{waiting}/messages", json={"content": "Write"})
        await _until(service, 1)
        assert service.messages == [{"kind": "answer", "conversation": waiting}]
        shown = await _delivered(page, server, service.messages[0])
        assert shown == [{"title": "An agent needs your answer", "path": f"/c/{waiting}"}]
        assert "Private" not in json.dumps(shown)
        await page.goto(f"/c/{waiting}")
        await expect(page.get_by_text("Private title").first).to_be_visible()
        assert len(await _delivered(page, server, service.messages[0])) == 1
        await page.get_by_role("button", name="Account and settings").click()
        await page.get_by_role("menuitem", name="Stop notifications").click()
        await expect(page.get_by_text("No notifications.")).to_be_visible()
        await context.close()


async def _allow(server: LiveServer, service: PushService) -> None:
    """Let the server send to loopback, as `push.allow_hosts` of the settings does."""
    maker = server.serving.application.maker
    push = maker.settings.push.model_copy(update={"allow_hosts": (service.host,), "after": 0.0})
    maker.settings = maker.settings.model_copy(update={"push": push})


async def _until(service: PushService, requests: int) -> None:
    import asyncio

    await asyncio.to_thread(service.wait, requests)


async def _delivered(page: Page, server: LiveServer, message: dict[str, Any]) -> list[dict[str, str]]:
    """Give a decrypted message to the worker, as the browser does; return what is shown to the person."""
    session = await page.context.new_cdp_session(page)
    found: list[str] = []
    session.on("ServiceWorker.workerRegistrationUpdated", lambda event: found.extend(r["registrationId"] for r in event["registrations"]))  # fmt: skip
    await session.send("ServiceWorker.enable")
    while not found:
        await page.evaluate("1")
    await session.send(
        "ServiceWorker.deliverPushMessage",
        {"origin": server.address, "registrationId": found[-1], "data": json.dumps(message)},
    )
    # Both are tasks of one worker, which takes them in their order.
    return await page.evaluate(
        "navigator.serviceWorker.ready.then((r) => new Promise((resolve) => setTimeout(resolve, 300)).then(() => r.getNotifications())).then((all) => all.map((n) => ({ title: n.title, path: n.data.path })))"
    )


async def test_what_another_app_shares_goes_into_a_new_chat_or_a_chosen_one(
    page: Page, server: LiveServer
) -> None:
    """UI-95: words into the box, files onto the branch; taken once, then forgotten."""
    chosen = await server.conversation(title="Chosen one")
    await installed(page)
    for title, files in (("A new chat", "one.gif"), ("Chosen one", "two.gif")):
        await page.evaluate(SHARE, ["Read this", files])
        await page.wait_for_url("**/shared")
        await expect(page.get_by_text("Read this")).to_be_visible()
        await expect(page.get_by_role("img", name=files)).to_be_visible()
        await page.get_by_label("Put it into").select_option(label=title)
        await page.get_by_role("button", name="Go on").click()
        await page.wait_for_url("**/c/*")
        box = page.get_by_label("Your message")
        await expect(box).to_have_value(f"Read this\n\nhttps://example.org/article\n\nSee {files}.")
        conversation = page.url.split("/c/")[1]
        rows = (await server.http.get("/api/workspace/files", params={"conversation": conversation})).json()
        assert any(row["path"].strip("/") == files for row in rows)
        assert (conversation == chosen) == (title == "Chosen one")
    await page.goto("/shared")
    await expect(page.get_by_text("Nothing was shared")).to_be_visible()


async def test_what_is_shared_before_the_worker_is_there_is_not_lost_in_silence(
    page: Page, server: LiveServer
) -> None:
    """UI-95: the server reads nothing of it and says what to do."""
    answer = await server.http.post("/share", files={"files": ("a.txt", b"x")})
    assert answer.status_code == 303 and answer.headers["location"] == "/shared?failed"
    await page.goto("/shared?failed")
    await expect(page.get_by_text("Open Bowerbird once, then share it again.")).to_be_visible()


async def test_what_is_said_goes_into_the_box(context: BrowserContext, page: Page) -> None:
    """UI-95: only where the browser can; what was typed stays."""
    await page.goto("/")
    await context.add_init_script(
        """
        window.SpeechRecognition = window.webkitSpeechRecognition = class {
          start() {
            const said = Object.assign([{ transcript: " count the orders " }], { isFinal: true });
            setTimeout(() => { this.onresult({ resultIndex: 0, results: [said] }); this.onend(); });
          }
          stop() {}
        };
        """
    )
    await page.reload()
    await page.get_by_label("Your message").fill("Please")
    await page.get_by_role("button", name="Dictate").click()
    await expect(page.get_by_label("Your message")).to_have_value("Please count the orders")
    await context.add_init_script("delete window.webkitSpeechRecognition; delete window.SpeechRecognition;")
    await page.reload()
    await expect(page.get_by_role("button", name="Dictate")).to_have_count(0)
