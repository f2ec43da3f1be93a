"""Everything by keyboard: each stop is named and seen, dialogs keep the focus and give it back (UI-36)."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(60))

MOST_STOPS = 120
# What has the focus: its words, and whether a ring or a glow around it, or around its box, says so.
STOP = """() => {
  const part = document.activeElement;
  if (!part || part === document.body) return null;
  const rings = (one) => {
    const style = one && getComputedStyle(one);
    return !!style && ((style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none");
  };
  const words = part.getAttribute("aria-label") || part.innerText || part.closest("label")?.innerText || part.placeholder || "";
  return { words: words.trim().slice(0, 40), seen: rings(part) || rings(part.closest(".composer-box")) };
}"""
INSIDE = "() => !!document.activeElement?.closest('dialog')"


async def stops(page: Page) -> list[dict[str, Any]]:
    """Every stop of Tab from the first one until the page ends."""
    await page.evaluate("document.querySelector('a[href], button').focus()")
    found: list[dict[str, Any]] = []
    for _ in range(MOST_STOPS):
        await page.keyboard.press("Tab")
        stop = await page.evaluate(STOP)
        if stop is None:
            return found
        found.append(stop)
    raise AssertionError(f"Tab does not come to an end: {found[-5:]}")


async def worked(server: LiveServer, fake: FakeModels) -> str:
    change = {"path": "/report.py", "old": "found = 0", "new": "found = 1"}
    fake.script({"text": "Look.", "tools": [{"name": "edit_file", "input": change}]}, {"text": "Done."})
    conversation = await server.conversation()
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    return conversation


async def test_every_stop_of_tab_is_named_and_seen(page: Page, server: LiveServer, fake: FakeModels) -> None:
    conversation = await worked(server, fake)
    places = ["/", "/dev", f"/c/{conversation}", f"/dev/c/{conversation}", f"/dev/c/{conversation}/diff"]
    places += [
        "/dev/landings",
        "/dev/usage",
        "/dev/skills",
        f"/dev/c/{conversation}/attempts",
        "/dev/nothing",
    ]
    bad: list[str] = []
    for place in places:
        await page.goto(place)
        await page.wait_for_load_state("networkidle")
        await expect(page.locator(".skeleton")).to_have_count(0)
        found = await stops(page)
        assert found, place
        bad += [f"{place}: {stop}" for stop in found if not stop["words"] or not stop["seen"]]
    assert bad == []


async def test_a_dialog_keeps_the_focus_and_gives_it_back(page: Page) -> None:
    await page.goto("/dev")
    opener = page.get_by_role("button", name="New chat").first
    await opener.focus()
    for key in ("Tab", "Shift+Tab"):
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog")).to_be_visible()
        for _ in range(14):
            await page.keyboard.press(key)
            assert await page.evaluate(INSIDE), key
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(opener).to_be_focused()


async def test_a_change_lands_and_comes_back_without_a_mouse(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """Acceptance 8: from the review's first key to the undo."""
    conversation = await worked(server, fake)
    before = (workspace / "report.py").read_bytes()
    await page.goto(f"/dev/c/{conversation}/diff")
    summary = page.get_by_test_id("land-summary")
    await expect(summary).to_have_text("1 of 1 file, 1 hunk")
    for key, says in (("j", "1 of 1 file, 1 hunk"), ("x", "0 of 1 file"), ("a", "1 of 1 file, 1 hunk")):
        await page.keyboard.press(key)
        await expect(summary).to_have_text(says)

    async def press(name: str) -> None:
        for _ in range(MOST_STOPS):
            await page.keyboard.press("Tab")
            if str((await page.evaluate(STOP) or {"words": ""})["words"]).startswith(name):
                await page.keyboard.press("Enter")
                return
        raise AssertionError(f"Tab does not come to {name}")

    await press("Land 1 file")
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 1 file.")
    assert b"found = 1" in (workspace / "report.py").read_bytes()
    await press("Undo")
    await expect(summary).to_have_text("1 of 1 file, 1 hunk")
    assert (workspace / "report.py").read_bytes() == before
