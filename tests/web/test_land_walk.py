"""The whole way from an answer to the undo of its landing, by keyboard and as the accessibility tree tells it (UI-36, UI-89).

The walk is printed as text: `pytest tests/web/test_land_walk.py -s`.
"""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.land_walk import Walk
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle

pytestmark = pytest.mark.timeout(patience(90))

LINES = "".join(f"line {number}\n" for number in range(1, 41))


async def test_the_way_to_a_landing_and_back_without_mouse_or_sight(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-36, UI-88, UI-89: review, ticks, comment, conflict, landing, undo; every step is said by name."""
    (workspace / "a.txt").write_text(LINES)
    edit = {"name": "edit_file", "input": {"path": "/a.txt", "old": "line 5\n", "new": "agent 5\n"}}
    notes = [
        {"name": "write_file", "input": {"path": f"/note{one}.txt", "content": "a note\n"}} for one in "12"
    ]
    fake.script({"text": "Three changes.", "tools": [edit, *notes]}, {"text": "Done."})
    conversation = await server.conversation(title="Three changes")
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Do it"}
    )
    mine = LINES.replace("line 5\n", "mine 5\n")
    (workspace / "a.txt").write_text(mine)
    summary = page.get_by_test_id("land-summary")
    outcome = page.get_by_test_id("outcome")

    walk = await Walk.on(page)
    await page.goto(f"/dev/c/{conversation}")
    await is_idle(page)
    await walk.tell("opens the chat")
    await walk.goes_to("Review 3 files", back=True)
    await expect(summary).to_contain_text("2 of 3 files")
    assert "Review: Three changes" in await walk.tell("")

    # From hunk to hunk and file to file: the focus goes along, and says where it is and whether it will land.
    await walk.press("j")
    assert "a.txt, hunk 1 of 1, left out" in await walk.focus()
    await walk.press("n")
    assert "note1.txt, hunk 1 of 1, accepted" in await walk.focus()
    await walk.press("x")
    await walk.hears("note1.txt, hunk 1 of 1, left out")
    await walk.press("c")
    assert "textbox “Comment on line 1" in await walk.focus()
    await walk.types("Why a second note?")
    await walk.press("Control+Enter")
    assert "note1.txt, hunk 1 of 1" in await walk.focus()
    await walk.press("v")
    await walk.hears("Viewed: note1.txt.")
    assert "note2.txt, hunk 1 of 1, accepted" in await walk.focus()
    await walk.goes_to("Viewed note2.txt", "Space", back=True)
    await expect(summary).to_contain_text("2 of 3 viewed")
    assert "checkbox “Viewed note2.txt” [checked=true]" in await walk.focus()

    # The conflict: radios are one stop, and an arrow chooses among them.
    await walk.goes_to("Decide", back=True)
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("radio").first).to_be_visible()
    while "radio" not in await walk.focus():
        await walk.press("Tab", tell=False)
    await walk.press("ArrowRight")
    assert "radio “The agent" in await walk.focus()
    await walk.goes_to("Land this file")
    await expect(outcome).to_contain_text("Landed 1 file.")
    await expect(outcome).to_be_focused()
    await walk.tell("")
    assert "agent 5\n" in (workspace / "a.txt").read_text()
    await walk.goes_to("Undo")
    await walk.hears("Taken back.")
    assert (workspace / "a.txt").read_text() == mine
    assert "(the page)" not in await walk.focus()

    # What was ticked off stayed so over a landing and an undo.
    await walk.goes_to("Land 1 file")
    await expect(outcome).to_contain_text("Landed 1 file.")
    assert (workspace / "note2.txt").exists() and not (workspace / "note1.txt").exists()
    # The button that was pressed can be pressed no more: the focus is at what came of it.
    await expect(outcome).to_be_focused()
    await walk.tell("")
    await walk.goes_to("Undo")
    await walk.hears("Taken back.")
    assert not (workspace / "note2.txt").exists()

    fake.script({"text": "There is no reason."})
    await walk.goes_to("Send 1 comment to the agent")
    await walk.hears("Sent.")
    assert "(the page)" not in await walk.focus()
    assert walk.unnamed == []
    print("", *walk.told, sep="\n")
