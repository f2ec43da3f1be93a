"""Skills, sandbox, tokens, budgets (UI-35); sign-in with Google and the words that survive it (UI-38); notifications."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import patience
from support.web_actions import is_idle, log, say

from bowerbird.store.rows.memory import add_memory
from bowerbird.store.rows.tokens import make_token, revoke

pytestmark = pytest.mark.timeout(patience(60))

NOTED = """
window.noted = [];
window.Notification = class {
  static permission = "granted";
  static requestPermission = async () => "granted";
  constructor(title, options) { window.noted.push(`${title}: ${options.body}`); }
};
Object.defineProperty(document, "hidden", { get: () => window.away === true });
"""


async def test_skills_are_written_read_and_deleted(page: Page, server: LiveServer) -> None:
    """UI-35."""
    await page.goto("/dev")
    await page.get_by_role("button", name="Further pages").click()
    await page.get_by_role("menuitem", name="Skills").click()
    await page.get_by_role("button", name="New skill").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("Not A Name")
    await dialog.get_by_label("Description").fill("Use it for notes.")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("name")
    await dialog.get_by_label("Name").fill("notes")
    await dialog.get_by_label("Instructions").fill("# How\n\nWrite **short** notes.")
    await dialog.get_by_role("button", name="Save").click()
    await page.get_by_role("button", name="notes Use it for notes.").click()
    await expect(page.get_by_role("dialog").get_by_text("short", exact=True)).to_be_visible()
    await page.get_by_role("dialog").get_by_role("button", name="Delete notes?").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    await expect(page.get_by_role("button", name="notes Use it for notes.")).to_have_count(0)
    assert (await server.http.get("/api/skills/notes")).status_code == 404


async def test_an_earlier_memory_can_count_again(page: Page, server: LiveServer) -> None:
    """UI-35: versions with what came and went; restoring keeps the others."""
    place = server.context.settings.workspace
    for text in ("Likes tabs.\n", "Likes spaces.\n\nWrites short notes.\n"):
        await server.context.store.write(lambda c, text=text: add_memory(c, "", place, text), flush=True)
    await page.goto("/dev/memory")
    versions = page.locator("li.memory")
    await expect(versions).to_have_count(2)
    await expect(versions.first).to_contain_text("in use")
    await expect(versions.first).to_contain_text("+2 −1")
    await versions.last.locator("summary").click()
    await versions.last.get_by_role("button", name="Use this version").click()
    await expect(versions).to_have_count(3)
    await expect(versions.first).to_contain_text("Likes tabs.")
    (newest, *_) = (await server.http.get("/api/memory/versions")).json()
    assert newest["text"] == "Likes tabs.\n" and newest["current"]


async def test_tokens_are_made_shown_once_and_revoked(page: Page, server: LiveServer) -> None:
    """UI-35, SV-55."""
    await page.goto("/dev/tokens")
    await page.get_by_role("button", name="New token").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("laptop")
    await dialog.get_by_label("Expires").fill("90d")
    await dialog.get_by_role("button", name="New token").click()
    secret = await page.get_by_test_id("secret").inner_text()
    assert secret.startswith("bb_")
    await page.keyboard.press("Escape")
    await expect(page.get_by_text(secret)).to_have_count(0)
    await page.get_by_role("button", name="Revoke laptop").click()
    await expect(page.get_by_role("cell", name="revoked")).to_be_visible()
    (told,) = (await server.http.get("/api/auth/tokens")).json()
    assert told["revoked_at"] and not told["usable"]


async def test_a_dialog_that_the_browser_closed_by_itself_opens_again(page: Page) -> None:
    """Browsers may close one without asking the page first, as at a second Escape in a row."""
    await page.goto("/dev/tokens")
    await page.get_by_role("button", name="New token").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.evaluate("document.querySelector('dialog').close()")
    await expect(page.locator("dialog")).to_have_count(0)
    await page.get_by_role("button", name="New token").click()
    await expect(page.get_by_role("dialog")).to_be_visible()


async def test_sandbox_and_budgets_say_what_the_server_says(page: Page, server: LiveServer) -> None:
    """UI-35."""
    told = (await server.http.get("/api/sandbox")).json()
    await page.goto("/dev/sandbox")
    await expect(page.locator(".section-title").get_by_text(told["tier"], exact=True)).to_be_visible()
    await page.goto("/dev/usage")
    budgets = page.get_by_role("region", name="Budgets")
    await budgets.get_by_role("button", name="Set limit").first.click()
    await page.get_by_role("dialog").get_by_role("spinbutton").fill("2.5")
    await page.get_by_role("button", name="Save").click()
    await expect(budgets.get_by_text("$2.50")).to_be_visible()


async def test_google_is_offered_where_it_is_set_up_and_says_when_it_is_away(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-38: without a way to Google a token still admits."""
    del built_ui
    google = {"GOOGLE_CLIENT_ID": "1234.apps.googleusercontent.com"}
    async with live_server(tmp_path, fake, env=google, server__allowed_emails=["a@example.org"]) as guarded:
        page = await browser.new_page(base_url=guarded.address)
        asked: list[str] = []

        async def refuse(route: object) -> None:
            asked.append(route.request.url)  # type: ignore[attr-defined] - Playwright's Route
            await route.abort()  # type: ignore[attr-defined]

        await page.route("https://accounts.google.com/**", refuse)
        await page.goto("/")
        await expect(page.get_by_text("Google's sign-in cannot be reached from here.")).to_be_visible()
        assert asked == ["https://accounts.google.com/gsi/client"]
        await expect(page.get_by_label("Token")).to_be_visible()
        await page.close()


async def test_a_withdrawn_credential_asks_again_and_loses_no_words(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-38: 401 returns to sign-in and keeps unsent text."""
    del built_ui
    fake.script({"text": "You are in."}, {"text": "In again."})
    async with live_server(tmp_path, fake, server__auth="token") as guarded:
        store = guarded.context.store
        row, secret = await store.write(lambda c: make_token(c, "one", "user", user="ann"), flush=True)
        _, second = await store.write(lambda c: make_token(c, "two", "user", user="ann"), flush=True)
        page = await browser.new_page(base_url=guarded.address)
        await page.goto("/dev")
        await page.get_by_label("Token").fill(secret)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("button", name="New chat").first.click()
        await page.get_by_role("button", name="Begin").click()
        await say(page, "Hello")
        await expect(log(page).get_by_text("You are in.")).to_be_visible()
        await is_idle(page)
        await page.get_by_label("Your message").fill("half a thou")
        await store.write(lambda c: revoke(c, row.token_id), flush=True)
        await page.locator("input[type=password]").fill(second)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("input[type=password]")).to_have_count(0)  # the chat stands below it
        await expect(page.get_by_label("Your message")).to_have_value("half a thou")
        await is_idle(page)
        await page.get_by_label("Your message").press("Enter")
        await expect(log(page).get_by_text("In again.")).to_be_visible()
        await page.close()


async def test_a_phone_is_asked_to_sign_in_before_anything_is_written(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-38: the first page of the user face asks the server for nothing else on a narrow screen."""
    del built_ui
    async with live_server(tmp_path, fake, server__auth="token") as guarded:
        page = await browser.new_page(base_url=guarded.address, viewport={"width": 390, "height": 800})
        await page.goto("/")
        await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        await expect(page.get_by_label("Your message")).to_have_count(0)
        await page.close()


async def test_a_question_notifies_only_those_who_asked_for_it_and_look_elsewhere(
    context: BrowserContext, server: LiveServer, fake: FakeModels
) -> None:
    """UI-23."""
    write = {"name": "write_file", "input": {"path": "/a", "content": "a"}}
    fake.answer(
        lambda body, _number: {"tools": [write]} if len(body["messages"]) < 2 else {"text": "Thanks."}
    )
    await context.add_init_script(NOTED)
    page = await context.new_page()
    await page.goto("/dev")

    async def asks(title: str, badge: str) -> list[str]:
        waiting = await server.conversation(enable_approval=True, title=title)
        await server.http.post(f"/api/conversations/{waiting}/messages", json={"content": "Write"})
        # The list is asked for at once when somebody comes back to the page, else within seconds.
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        await expect(page).to_have_title(badge)
        return await page.evaluate("window.noted")

    await page.evaluate("window.away = true")
    assert await asks("First", "(1) Bowerbird") == []
    await page.get_by_role("button", name="Account and settings").click()
    await page.get_by_role("menuitem", name="Notify me when an answer is needed").click()
    await expect(page.get_by_text("You will be notified while a tab is open.")).to_be_visible()
    await page.evaluate("window.away = false; window.noted = []")
    assert await asks("Second", "(2) Bowerbird") == []
    await page.evaluate("window.away = true")
    assert await asks("Third", "(3) Bowerbird") == ["An agent needs your answer: Third"]
