"""Edits where they happen, approvals with what they approve, files named in a message, threads of comments.

Requirements UI-70, UI-71, UI-73, UI-91.
"""

import re

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import conversation_of, is_idle, log, say, serious_findings

pytestmark = pytest.mark.timeout(patience(120))

EDIT = {
    "name": "edit_file",
    "input": {"path": "/report.py", "old": "found += int(row)", "new": "found += int(row or 0)"},
}
DROP = """([name, type]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array([1, 2, 3])], name, { type }));
  const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
  document.querySelector("textarea").dispatchEvent(event);
}"""

DROP_ON_PAGE = """([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  const happens = { dataTransfer: data, bubbles: true, cancelable: true };
  for (const kind of ["dragover", "drop"]) document.body.dispatchEvent(new DragEvent(kind, happens));
}"""


async def test_an_edit_shows_its_lines_and_its_comments_are_a_thread(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-70, UI-91: lines with their numbers; a thread is resolved, reopened and counted."""
    fake.script({"tools": [EDIT]}, {"text": "Done."}, {"text": "I looked again."})
    conversation = await server.conversation()
    await page.goto(f"/dev/c/{conversation}")
    await say(page, "Go")
    card = log(page).locator(".diff-card")
    await expect(card.locator(".diff-line.insert")).to_contain_text("found += int(row or 0)")
    await expect(card.locator(".diff-line.insert .num").last).to_have_text("12")
    await expect(log(page).get_by_text("Done.")).to_be_visible()
    await is_idle(page)
    assert await serious_findings(page) == []

    await page.goto(f"/dev/c/{conversation}/diff")
    await page.get_by_role("button", name="Comment on line 12", exact=True).last.click()
    await page.get_by_role("textbox", name="Comment on line").fill("Say why.")
    await page.get_by_role("button", name="Add comment").click()
    await page.get_by_role("button", name="Send 1 comment to the agent").click()
    await expect(page.get_by_text("1 open comment")).to_be_visible()
    await page.get_by_role("button", name="Resolve", exact=True).click()
    await expect(page.get_by_text("Resolved: Say why.")).to_be_visible()
    await expect(page.get_by_text("1 open comment")).to_have_count(0)
    await page.reload()
    await page.get_by_role("button", name="Reopen").click()
    await page.get_by_role("button", name="Reply").click()
    await page.get_by_role("textbox", name="Comment on line").fill("And test it.")
    await page.get_by_role("button", name="Add comment").click()
    thread = page.get_by_role("group", name="Comments on line 12")
    await expect(thread.locator(".comment-box")).to_have_count(2)
    assert await serious_findings(page) == []


async def test_an_approval_shows_what_would_change(page: Page, server: LiveServer, fake: FakeModels) -> None:
    """UI-71: the lines, not the arguments."""
    fake.script({"tools": [EDIT]}, {"text": "Done."})
    conversation = await server.conversation(enable_approval=True)
    await page.goto(f"/dev/c/{conversation}")
    await say(page, "Go")
    ask = page.get_by_role("region", name="Approval needed")
    await expect(ask.locator(".diff-line.delete")).to_contain_text("found += int(row)")
    assert await serious_findings(page) == []
    await ask.get_by_role("button", name="Approve", exact=True).click()
    await expect(log(page).get_by_text("Done.")).to_be_visible()


async def test_a_named_file_goes_along_and_a_pasted_picture_is_named(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-73: the menu by keyboard, the content in the request, a picture of the clipboard on the branch."""
    fake.script({"text": "Read."})
    conversation = await server.conversation()
    await page.goto(f"/c/{conversation}")
    box = page.get_by_label("Your message")
    await box.press_sequentially("Look at @ord")
    await expect(page.get_by_role("option", name="orders.txt")).to_be_visible()
    assert await serious_findings(page) == []
    await box.press("Enter")
    await expect(box).to_have_value("Look at @orders.txt ")
    await page.evaluate(DROP, ["image.png", "image/png"])
    await expect(box).to_have_value(re.compile("@pasted-"))
    await box.press("Enter")
    await expect(log(page).get_by_text("Read.")).to_be_visible()
    sent = str(fake.requests[0]["messages"])
    assert '<attachment path="orders.txt">' in sent and "12\\n40" in sent, sent[-900:]
    await expect(log(page).get_by_role("group", name="Went along with the message")).to_contain_text(
        "orders.txt"
    )
    assert conversation_of(page) == conversation


async def test_files_dropped_on_a_new_chat_lie_on_its_branch_when_its_first_message_comes(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-73: missing the box by a finger opens no file in place of the page; a reload before sending loses nothing."""
    fake.script({"text": "Read."})
    await page.goto("/")
    box = page.get_by_label("Your message")
    await box.fill("What is in")
    await page.evaluate(DROP_ON_PAGE, ["plan.txt", "milk, bread\n"])
    await expect(box).to_have_value("What is in @plan.txt ")
    await page.reload()
    await expect(box).to_have_value("What is in @plan.txt ")
    await box.press("Enter")
    await expect(log(page).get_by_text("Read.")).to_be_visible()
    sent = str(fake.requests[0]["messages"])
    assert '<attachment path="plan.txt">' in sent and "milk, bread" in sent
    assert len((await server.http.get("/api/conversations")).json()) == 1
    await page.evaluate(DROP_ON_PAGE, ["more.txt", "tea\n"])
    await expect(box).to_have_value("@more.txt ")


async def test_a_file_on_its_way_says_how_far_it_is_and_can_be_stopped(
    page: Page, server: LiveServer
) -> None:
    """UI-33, UI-73: on a slow network, at the box it was dropped on."""
    conversation = await server.conversation()
    await page.goto(f"/c/{conversation}")
    await is_idle(page)
    session = await page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 40_000}
    await session.send("Network.enable")
    await session.send("Network.emulateNetworkConditions", slow)
    await page.evaluate(DROP_ON_PAGE, ["large.txt", "word " * 200_000])
    form = page.locator("form.composer")
    await expect(form.get_by_text("large.txt")).to_be_visible()
    await expect(form.get_by_role("progressbar", name="Uploading")).to_be_visible()
    await form.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_text("The upload was cancelled.")).to_be_visible()
    await expect(form.get_by_role("progressbar")).to_have_count(0)
    await expect(page.get_by_label("Your message")).to_have_value("")
