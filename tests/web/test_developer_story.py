"""The developer face, from the dialog to the undo of a landing (UI-7, 9, 10, 12, 13, 22, 26 … 30, 34)."""

import asyncio
import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, log, say

pytestmark = pytest.mark.timeout(patience(60))


def edit(old: str, new: str) -> dict[str, object]:
    return {"name": "edit_file", "input": {"path": "/report.py", "old": old, "new": new}}


CHANGES = [
    edit("with open(path) as handle", 'with open(path, encoding="utf-8") as handle'),
    edit("    print(report(", "    print('=>', report("),
    {
        "name": "write_file",
        "input": {"path": "/tests/test_it.py", "content": "def test_it():\n    assert 1\n"},
    },
    {"name": "write_file", "input": {"path": "/.github/workflows/ci.yml", "content": "on: push\n"}},
]


async def test_a_developer_approves_reviews_comments_lands_and_takes_back(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """One story in the developer face."""
    fake.script(
        {"text": "Three changes.", "thinking": "Careful.", "tools": CHANGES},
        {"text": "All is ready for review."},
        {"text": "You are right, I see it."},
    )
    before = (workspace / "report.py").read_bytes()
    await page.goto("/dev")
    await page.get_by_role("button", name="New chat").first.click()
    await page.get_by_role("checkbox", name="Approval").check()
    await page.get_by_role("button", name="Begin").click()
    await page.wait_for_url("**/dev/c/*")
    await expect(page.get_by_role("button", name="Approval", pressed=True)).to_be_visible()
    await say(page, "Tidy up")

    # Nothing runs before the answer; every call is shown with its arguments (UI-22).
    ask = page.get_by_role("region", name="Approval needed")
    await expect(ask.get_by_text("/.github/workflows/ci.yml")).to_be_visible()
    await expect(ask.get_by_text("on: push")).to_be_visible()
    await ask.get_by_role("button", name="Approve", exact=True).click()
    await expect(log(page).get_by_text("All is ready for review.")).to_be_visible()
    await is_idle(page)

    # Calls are blocks that open; tokens and cost stand in the head (UI-7, UI-12).
    block = page.locator("details.tool").filter(has_text="test_it.py")
    await block.locator("summary").click()
    await expect(block.get_by_text("def test_it()")).to_be_visible()
    await expect(page.get_by_test_id("cost")).to_contain_text("$0.")

    # The inspector pairs model calls (UI-34).
    await page.get_by_role("button", name="Traffic").click()
    await page.get_by_role("button", name="LLM traces").click()
    await expect(page.get_by_test_id("trace")).to_have_count(2)
    await page.keyboard.press("Escape")

    # Review: the red lane is not chosen; one hunk is left out by keyboard (UI-27, UI-28).
    await page.get_by_role("link", name="Review").first.click()
    await page.wait_for_url("**/diff")
    summary = page.get_by_test_id("land-summary")
    await expect(summary).to_have_text("2 of 3 files, 3 hunks")
    why = "Runs on the build server, with its secrets. (runs on GitHub)"
    await expect(page.get_by_text(why)).to_be_attached()
    for key in "jjx":
        await page.keyboard.press(key)
    await expect(summary).to_have_text("2 of 3 files, 2 hunks")
    await expect(page.get_by_role("button", name="Left out")).to_have_count(2)

    # A comment on that hunk goes to the agent with path, line and quote (UI-29, acceptance 6).
    await page.keyboard.press("c")
    await page.get_by_role("textbox", name="Comment on line").fill("Why an arrow?")
    await page.get_by_role("button", name="Add comment").click()
    await page.get_by_role("button", name="Send 1 comment to the agent").click()
    await expect(page.get_by_text("sent", exact=True)).to_be_visible()
    await asyncio.to_thread(fake.wait_requests, 3)
    asked = json.dumps(fake.requests[-1]["messages"][-1])
    assert "/report.py" in asked and "print('=>'" in asked and "Why an arrow?" in asked

    # Exactly what was chosen is on disk, and comes back byte for byte (acceptance 5).
    await page.get_by_role("button", name="Land 2 files").click()
    outcome = page.get_by_test_id("outcome")
    await expect(outcome).to_contain_text("Landed 2 files.")
    landed = (workspace / "report.py").read_text()
    assert 'encoding="utf-8"' in landed and "=>" not in landed
    assert (workspace / "tests" / "test_it.py").exists()
    assert not (workspace / ".github").exists()
    await outcome.get_by_role("button", name="Undo").click()
    await expect(summary).to_contain_text("of 3 files")
    await expect(outcome).to_have_count(0)
    assert (workspace / "report.py").read_bytes() == before
    assert not (workspace / "tests").exists()


async def test_switches_follow_the_server_in_every_open_page(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-13: what another door switched is shown."""
    fake.script({"text": "Yes."})
    conversation = await server.conversation()
    await page.goto(f"/dev/c/{conversation}")
    await expect(page.get_by_role("button", name="Plan", pressed=False)).to_be_visible()
    await is_idle(page)
    changed = await server.http.patch(f"/api/conversations/{conversation}", json={"enable_plan_mode": True})
    assert changed.status_code == 200
    await expect(page.get_by_role("button", name="Plan", pressed=True)).to_be_visible()
    await page.get_by_role("button", name="Plan").click()
    await expect(page.get_by_role("button", name="Plan", pressed=False)).to_be_visible()
    told = (await server.http.get(f"/api/conversations/{conversation}")).json()
    assert told["enable_plan_mode"] is False
