"""What is always allowed, in the page: answered, listed, taken back (UI-71)."""

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, log, say, serious_findings

pytestmark = pytest.mark.timeout(patience(60))


async def test_a_call_is_always_allowed_and_that_is_taken_back(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-71: the rule is shown before it is answered."""
    steps = [
        {"tools": [{"name": "write_file", "input": {"path": f"notes/{n}.md", "content": "x"}}]}
        for n in range(3)
    ]
    fake.script(steps[0], {"text": "First."}, steps[1], {"text": "Second."}, steps[2], {"text": "Third."})
    await page.goto("/dev")
    await page.get_by_role("button", name="New chat").first.click()
    await page.get_by_role("checkbox", name="Approval").check()
    await page.get_by_role("button", name="Begin").click()
    await say(page, "one")
    ask = page.get_by_role("region", name="Approval needed")
    await expect(ask.get_by_text("write_file(notes/*)")).to_be_visible()
    await ask.get_by_label("Where it is always allowed").select_option("everywhere")
    assert await serious_findings(page) == []
    await ask.get_by_role("button", name="Always allow").click()
    await expect(log(page).get_by_text("First.")).to_be_visible()
    await expect(page.get_by_text("Approved, and calls like it from now on")).to_be_visible()
    await is_idle(page)
    await say(page, "two")
    await expect(log(page).get_by_text("Second.")).to_be_visible()
    conversation = page.url
    await page.goto("/dev/permissions")
    row = page.get_by_role("row").filter(has_text="write_file(notes/*)")
    await expect(row.get_by_text("everywhere")).to_be_visible()
    assert await serious_findings(page) == []
    await row.get_by_role("button", name="Take back").click()
    await expect(page.get_by_text("Nothing is always allowed")).to_be_visible()
    await page.goto(conversation)
    await is_idle(page)
    await say(page, "three")
    await ask.get_by_role("button", name="Approve", exact=True).click()
    await expect(log(page).get_by_text("Third.")).to_be_visible()
