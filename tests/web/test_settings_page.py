"""A first model and the settings page (UI-83), what a role is offered (UI-94), pages for wrong addresses (UI-96)."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from support.fake_models import FakeModels
from support.live_server import live_server
from support.own_settings import SECRET, serving
from support.patience import patience
from support.web_actions import log, say, serious_findings

from bowerbird.store.rows.tokens import make_token

pytestmark = pytest.mark.timeout(patience(90))

NOWHERE = "http://127.0.0.1:9"


async def opened(browser: Browser, address: str, path: str = "/", width: int = 1280) -> Page:
    page = await browser.new_page(base_url=address, viewport={"width": width, "height": 900})
    await page.goto(path)
    return page


async def test_a_key_is_given_on_the_first_page_and_the_chat_begins(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-83: said at once, before anything is written; done here; the key is never shown again."""
    del built_ui
    fake.script({"text": "Hello from the model."})
    with serving(tmp_path, ANTHROPIC_BASE_URL=fake.anthropic_url) as http:
        page = await opened(browser, str(http.base_url))
        card = page.get_by_role("region", name="There is no model to work with yet")
        await expect(card).to_be_visible()
        await expect(page.get_by_label("Your message")).to_have_count(0)
        await card.get_by_label("API key").fill(SECRET)
        await card.get_by_role("button", name="Use this model").click()
        await expect(card).to_have_count(0)
        await say(page, "hi")
        await expect(log(page).get_by_text("Hello from the model.")).to_be_visible()
        assert fake.headers[-1]["x-api-key"] == SECRET
        await page.goto("/settings")
        await page.get_by_label("Search settings").fill("providers.anthropic.api_key")
        await expect(page.locator(".setting .value", has_text="********")).to_be_visible()
        assert SECRET not in await page.content()


async def test_a_model_server_is_named_and_a_wrong_address_is_said(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-83."""
    del built_ui
    fake.script({"text": "From next door."})
    with serving(tmp_path) as http:
        page = await opened(browser, str(http.base_url), "/dev", 390)
        await page.get_by_role("button", name="A model server of yours").click()
        await page.get_by_role("textbox", name="Model").fill("qwen")
        await page.get_by_role("textbox", name="Address").fill("ftp://127.0.0.1")
        await page.get_by_role("button", name="Use this model").click()
        await expect(page.get_by_role("alert")).to_contain_text("providers.ollama.base_url")
        await page.get_by_role("textbox", name="Address").fill(fake.openai_url)
        await page.get_by_role("button", name="Use this model").click()
        await expect(page.get_by_role("button", name="A model server of yours")).to_have_count(0)
        await page.goto("/")
        await say(page, "hi")
        await expect(log(page).get_by_text("From next door.")).to_be_visible()
        assert fake.requests[-1]["model"] == "qwen"


async def test_a_fetch_that_fails_is_said_with_its_reason_and_can_be_begun_again(
    tmp_path: Path, browser: Browser, built_ui: Path
) -> None:
    """UI-83: the embedded model, where no source can be reached."""
    del built_ui
    pytest.importorskip("xllamacpp")
    closed = {
        "PIP_INDEX_URL": NOWHERE,
        "UV_INDEX_URL": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
        "HTTP_PROXY": NOWHERE,
    }
    with serving(tmp_path, **closed) as http:
        page = await opened(browser, str(http.base_url))
        await page.get_by_role("button", name="The embedded model").click()
        await page.get_by_label("Small, 0.5 GB").check()
        await page.get_by_role("button", name="Download and use it").click()
        await expect(page.get_by_role("alert")).to_contain_text("could not be fetched")
        await expect(page.get_by_role("button", name="Download and use it")).to_be_enabled()
        assert http.get("/api/setup").json()["fetch"]["state"] == "failed"


async def test_settings_say_where_they_come_from_and_change_while_the_server_runs(
    tmp_path: Path, browser: Browser, built_ui: Path
) -> None:
    """UI-83: an error is said beside the key, nothing is written; locked ones say why."""
    del built_ui
    file = tmp_path / ".bowerbird" / "config.yaml"
    with serving(tmp_path, ANTHROPIC_API_KEY=SECRET, BOWERBIRD_AGENT__TEMPERATURE="0.5") as http:
        page = await opened(browser, str(http.base_url), "/settings")
        search = page.get_by_label("Search settings")
        await search.fill("agent.max_turns")
        row = page.locator("li.setting").first
        await expect(row).to_contain_text("default")
        await row.get_by_role("button", name="Change agent.max_turns").click()
        await row.get_by_label("New value").fill("-3")
        await row.get_by_role("button", name="Save").click()
        await expect(row.get_by_role("alert")).to_contain_text("agent.max_turns")
        assert not file.exists()
        await row.get_by_label("New value").fill("7")
        await row.get_by_role("button", name="Save").click()
        await expect(row.locator(".origin")).to_contain_text(str(file))
        assert "max_turns: 7" in file.read_text()
        await row.get_by_role("button", name="Use the default for agent.max_turns").click()
        await expect(row).to_contain_text("default")
        await search.fill("agent.temperature")
        await expect(page.locator("li.setting .lock").first).to_have_attribute(
            "title", "set by BOWERBIRD_AGENT__TEMPERATURE in the environment; change it there"
        )
        assert SECRET not in await page.content()


async def test_axe_finds_nothing_serious_on_the_new_pages(
    tmp_path: Path, browser: Browser, built_ui: Path
) -> None:
    """UI-36, UI-37, acceptance 8: both faces, both themes, 320 and 1280 px."""
    del built_ui
    findings: list[str] = []
    with serving(tmp_path) as http:
        context = await browser.new_context(base_url=str(http.base_url))
        page = await context.new_page()
        for place in ("/", "/dev", "/settings", "/dev/settings", "/shared", "/nope", "/permissions"):
            await page.set_viewport_size({"width": 320, "height": 800})
            await page.goto(place)
            await expect(page.locator("h1").first).to_be_visible()
            await expect(page.locator(".skeleton")).to_have_count(0)
            # Each theme in one width, and both in both faces: benchmarks/web_axe.py has the rest.
            for width, theme in ((320, "light"), (1280, "dark")):
                await page.set_viewport_size({"width": width, "height": 800})
                await page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
                where = f"{place} {theme} {width}"
                findings += [f"{where}: {found}" for found in await serious_findings(page)]
                wide = await page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{where} is {wide} wide"
        await page.get_by_role("button", name="Account and settings").click()
        for theme in ("light", "dark"):
            await page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            findings += [f"account {theme}: {found}" for found in await serious_findings(page)]
        await context.close()
    assert findings == []


async def test_what_a_role_cannot_do_is_not_offered(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-94: a viewer reads, a user does not administer, an admin does all."""
    del built_ui
    async with live_server(tmp_path, fake, server__auth="token") as guarded:
        store = guarded.context.store
        for role, new_chat, settings in (("viewer", 0, 0), ("user", 1, 0), ("admin", 1, 1)):
            _, secret = await store.write(lambda c, role=role: make_token(c, role, role), flush=True)
            page = await opened(browser, guarded.address)
            await page.get_by_label("Token").fill(secret)
            await page.get_by_role("button", name="Sign in").click()
            account = page.get_by_role("button", name=f"Signed in as {role} ({role})")
            await account.click()
            await expect(page.get_by_role("menuitem", name="Sign out")).to_be_visible()
            await expect(page.get_by_role("menuitem", name="Settings")).to_have_count(settings)
            await page.keyboard.press("Escape")
            await expect(page.get_by_role("button", name="New chat")).to_have_count(new_chat)
            await expect(page.get_by_label("Your message")).to_have_count(new_chat)
            await page.close()


async def test_addresses_that_nothing_has_are_pages_for_people_and_json_for_programs(
    tmp_path: Path, fake: FakeModels, browser: Browser, built_ui: Path
) -> None:
    """UI-96: also before anybody signed in; the API stays what it was."""
    del built_ui
    async with live_server(tmp_path, fake, server__auth="token") as guarded:
        html = {"Accept": "text/html,application/xhtml+xml"}
        for path in ("/nope", "/c/x/y/z", "/dev/nope"):
            answer = await guarded.http.get(path, headers=html)
            assert answer.status_code == 404 and "<div id=" in answer.text, path
        for path in ("/api/nope", "/docs", "/metrics"):
            assert (await guarded.http.get(path, headers=html)).status_code == 401, path
        assert (await guarded.http.get("/nope")).status_code == 401
    async with live_server(tmp_path / "open", fake) as server:
        assert (await server.http.get("/nope")).json()["code"] == "not_found"
        assert (await server.http.get("/api/nope", headers=html)).json()["code"] == "not_found"
        assert (await server.http.post("/nope", headers=html)).json()["code"] == "not_found"
        page = await opened(browser, server.address, "/nope/at/all")
        await expect(page.get_by_role("heading", level=1, name="There is no such page")).to_be_visible()
        await page.get_by_role("link", name="Go to the start page").click()
        await expect(page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
        await page.goto("/c/000000000000")
        await expect(page.get_by_role("heading", level=1, name="This chat is not here")).to_be_visible()
        await page.close()  # a server that ends waits a while for who watches


async def test_the_theme_follows_the_system_until_somebody_chooses(
    context: BrowserContext, page: Page
) -> None:
    """UI-94, UI-15: in both faces; what is chosen in one face holds in the other."""
    del context
    html = page.locator("html")
    for scheme in ("dark", "light"):
        await page.emulate_media(color_scheme=scheme)
        for place in ("/", "/dev"):
            await page.goto(place)
            await expect(html).to_have_attribute("data-theme", scheme)
    await page.emulate_media(color_scheme="dark")
    await expect(html).to_have_attribute("data-theme", "dark")
    await page.get_by_role("button", name="Account and settings").click()
    await page.get_by_role("menuitemradio", name="Light").click()
    await page.goto("/")
    await expect(html).to_have_attribute("data-theme", "light")
    assert await page.locator("meta[name=theme-color]").get_attribute("content") == "#f6f8f5"
