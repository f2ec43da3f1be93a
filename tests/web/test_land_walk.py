"""The whole way from an answer to the undo of its landing, by keyboard and as the accessibility tree tells it (UI-36, UI-89).

The walk is printed as text: `pytest tests/web/test_land_walk.py -s`.
"""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle

pytestmark = pytest.mark.timeout(patience(90))

MOST_STOPS = 150
LINES = "".join(f"line {number}\n" for number in range(1, 41))
NAME = """() => {
  const part = document.activeElement;
  if (!part || part === document.body) return "(the page)";
  const words = part.getAttribute("aria-label") || part.innerText || part.closest("label")?.innerText || "";
  return words.trim().split("\\n")[0].slice(0, 60);
}"""


class Walk:
    """Somebody who has no mouse and does not see the screen: what they press and what they are told."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.told: list[str] = []

    async def hears(self, what: str, where: str) -> str:
        """What the accessibility tree says of a part of the page."""
        tree = await self.page.locator(where).first.aria_snapshot()
        self.told += [f"== {what}", tree]
        return tree

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)
        self.told.append(f"-- presses {' '.join(keys)}; focus: {await self.page.evaluate(NAME)}")

    async def goes_to(self, name: str, key: str = "Enter") -> None:
        """Tab until something of that name has the focus, and press it."""
        for stop in range(MOST_STOPS):
            if str(await self.page.evaluate(NAME)).startswith(name):
                self.told.append(f"-- {stop} times Tab, then {key} on: {await self.page.evaluate(NAME)}")
                await self.page.keyboard.press(key)
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not come to {name}\n" + "\n".join(self.told))


async def test_the_way_to_a_landing_and_back_without_mouse_or_sight(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-36, UI-88, UI-89: review, note, conflict, landing, undo; every step is said by name."""
    (workspace / "a.txt").write_text(LINES)
    edit = {"name": "edit_file", "input": {"path": "/a.txt", "old": "line 5\n", "new": "agent 5\n"}}
    note = {"name": "write_file", "input": {"path": "/note.txt", "content": "a note\n"}}
    fake.script({"text": "Two changes.", "tools": [edit, note]}, {"text": "Done."})
    conversation = await server.conversation(title="Two changes")
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    mine = LINES.replace("line 5\n", "mine 5\n")
    (workspace / "a.txt").write_text(mine)

    walk = Walk(page)
    await page.goto(f"/dev/c/{conversation}")
    await is_idle(page)
    await walk.hears("the answer", ".head")
    await walk.goes_to("Review 2 files")
    summary = page.get_by_test_id("land-summary")
    await expect(summary).to_have_text("1 of 2 files, 1 hunk")
    tree = await walk.hears("the changed files", ".change-tree")
    assert 'checkbox "Accept note.txt" [checked]' in tree and 'checkbox "Accept a.txt"' in tree

    await walk.press("j")
    head = await walk.hears("the first file", "article.file-diff")
    assert 'checkbox "Viewed a.txt"' in head and 'button "Decide' in head

    await walk.goes_to("Decide")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("radio").first).to_be_visible()
    told = await walk.hears("the conflict", "dialog")
    assert 'group "You both changed this place"' in told and 'radio "The agent' in told
    # Radios are one stop: an arrow chooses among them.
    while await page.evaluate("document.activeElement.type") != "radio":
        await page.keyboard.press("Tab")
    await walk.press("ArrowRight")
    await walk.goes_to("Land this file")
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 1 file.")
    assert (await walk.hears("what came of it", "[data-testid=outcome]")).count("Undo") == 1
    assert "agent 5\n" in (workspace / "a.txt").read_text()
    await walk.goes_to("Undo")
    await expect(summary).to_have_text("1 of 2 files, 1 hunk")
    assert (workspace / "a.txt").read_text() == mine

    await walk.goes_to("Land 1 file")
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 1 file.")
    assert (workspace / "note.txt").exists()
    # The button that was pressed can be pressed no more: the focus is at what came of it.
    await expect(page.get_by_test_id("outcome")).to_be_focused()
    await walk.press("Tab")
    assert await page.evaluate(NAME) == "Undo"
    await walk.hears("the bar in the end", ".land-bar")
    print("\n".join(walk.told))
