"""Accessibility, themes, size of the first load (UI-4, UI-6, UI-15, UI-36, UI-37)."""

import gzip
import re
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Error, Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, serious_findings

pytestmark = pytest.mark.timeout(patience(60))

MOST_SCRIPT = 300_000


async def test_axe_finds_nothing_serious_on_any_page_face_theme_or_width(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-36, UI-37, acceptance 8: each page in both faces and themes; every state and width is benchmarks/web_axe.py."""
    text = (
        "Done:\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```python\nx = 1  # one\n```\n\n- [ ] task\n\n`code`"
    )
    tools = [
        {"name": "edit_file", "input": {"path": "/report.py", "old": "found = 0", "new": "found = 1"}},
        {"name": "write_file", "input": {"path": "/.github/workflows/ci.yml", "content": "on: push\n"}},
    ]
    fake.script({"text": "Look.", "thinking": "Hm.", "tools": tools}, {"text": text})
    conversation = await server.conversation()
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    findings: list[str] = []
    for face, theme in (("", "light"), ("", "dark"), ("/dev", "light"), ("/dev", "dark")):
        await page.goto(face or "/")
        await page.evaluate(f"localStorage.setItem('bowerbird.theme', '{theme}')")
        for place in ("", f"/c/{conversation}", f"/c/{conversation}/diff"):
            await page.set_viewport_size({"width": 1280, "height": 800})
            await page.goto(f"{face}{place}" or "/")
            shown = ".file-diff .diff-line" if "diff" in place else "textarea" if place else "h1"
            await expect(page.locator(shown).first).to_be_visible()
            if place and "diff" not in place:
                await is_idle(page)
            assert await page.locator("html").get_attribute("data-theme") == theme
            # What a width shows is the same in both themes: each theme is judged in the other width.
            for width, is_judged in (
                (1280, (theme == "dark") == bool(face)),
                (320, (theme == "dark") != bool(face)),
            ):
                await page.set_viewport_size({"width": width, "height": 800})
                where = f"{face}{place} {theme} {width}"
                if is_judged:
                    findings += [f"{where}: {found}" for found in await serious_findings(page)]
                with suppress(Error):  # a page follows its window in the frame after
                    fits = f"() => document.documentElement.scrollWidth <= {width}"
                    await page.wait_for_function(fits, timeout=5_000)
                wide = await page.evaluate("document.documentElement.scrollWidth")
                assert wide <= width, f"{where} is {wide} wide"
    assert findings == []


async def test_axe_finds_nothing_serious_on_further_pages(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-36, UI-37: the pages beside conversations, and a dialog over one."""
    fake.script(
        {"tools": [{"name": "write_file", "input": {"path": "/a.txt", "content": "a\n"}}]}, {"text": "."}
    )
    conversation = await server.conversation()
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    await server.http.post(f"/api/conversations/{conversation}/land", json={})
    await server.http.post("/api/auth/tokens", json={"name": "laptop"})
    places = ("landings", "usage", "skills", "memory", "sandbox", "tokens", f"c/{conversation}/attempts")
    findings: list[str] = []
    await page.goto("/dev")
    await page.set_viewport_size({"width": 320, "height": 800})
    for place in places:
        await page.goto(f"/dev/{place}")
        await expect(page.locator(".page-inner > *").last).to_be_visible()
        await expect(page.locator(".skeleton")).to_have_count(0)
        if place == "landings":
            await page.get_by_role("button", name="Changes of").click()
            await expect(page.locator(".diff-line").first).to_be_visible()
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320, f"{place} is {wide} wide"
        for theme in ("dark", "light"):
            # Nothing but colours differs, and those follow the document's mark at once.
            await page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            findings += [f"{place} {theme}: {found}" for found in await serious_findings(page)]
    assert findings == []


async def test_a_theme_that_was_chosen_is_kept_and_holds_in_both_faces(page: Page) -> None:
    """UI-6, UI-15, UI-94."""
    html = page.locator("html")
    for place, other in (("/", "Dark"), ("/dev", "Light")):
        await page.goto(place)
        await page.get_by_role("button", name="Account and settings").click()
        await page.get_by_role("menuitemradio", name=other).click()
        await expect(html).to_have_attribute("data-theme", other.lower())
        for again in ("/", "/dev"):
            await page.goto(again)
            await expect(html).to_have_attribute("data-theme", other.lower())


async def test_the_first_load_is_small(page: Page, built_ui: Path) -> None:
    """UI-4: scripts that either face loads before anything is asked for."""
    for place in ("/", "/dev"):
        loaded: set[str] = set()
        page.on("request", lambda request, loaded=loaded: loaded.add(request.url))
        await page.goto(place)
        await expect(page.locator("h1").first).to_be_visible()
        scripts = {found[1] for url in loaded if (found := re.search(r"/(assets/[^/]+\.js|theme\.js)$", url))}
        sizes = [len(gzip.compress((built_ui / name).read_bytes())) for name in scripts]
        assert scripts and sum(sizes) <= MOST_SCRIPT
