"""The user face in a browser, against the real server, from the first question to the undo (UI-7, 9, 12, 14, 19, 21, 40)."""

from pathlib import Path

import pytest
from playwright.async_api import BrowserContext, Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import Sockets, conversation_of, is_idle, log, say

pytestmark = pytest.mark.timeout(patience(60))

EDIT = {
    "name": "edit_file",
    "input": {"path": "/report.py", "old": 'f"total {total(rows)}"', "new": 'f"Total: {total(rows)}"'},
}
NOTE = {"name": "write_file", "input": {"path": "/notes.md", "content": "# Notes\n"}}
COUNTED = "".join(f"number {number}, " for number in range(200)) + "and that is all."
LONG = "It goes on and on, word by word. " * 60  # short enough that all of the chat is drawn


async def test_a_person_asks_watches_interrupts_keeps_and_takes_back(
    page: Page, context: BrowserContext, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """One story in the user face, with a reload in the middle and a second viewer."""
    fake.script(
        {"text": "I will fix the report.", "tools": [EDIT, NOTE]},
        {"text": LONG, "deltas": 60, "gap_s": 0.2, "ttft_s": 1.5},
        {"text": "Stopped. The report is **fixed**."},
    )
    # A chat is made by the first message: no dialog, and nobody is told of tools (UI-7, UI-9).
    await page.goto("/")
    await say(page, "Fix the report")
    await page.wait_for_url("**/c/*")
    pill = page.get_by_test_id("activity")
    await expect(pill).to_contain_text("Edited 2 files")
    await expect(page.get_by_text("edit_file")).to_have_count(0)
    await pill.locator("summary").click()
    await expect(pill.get_by_text("Changed report.py")).to_be_visible()
    await expect(log(page).get_by_text("It goes on and on")).to_be_visible()

    # Somebody else watches the same text; a reload in the middle of a word loses nothing (SV-46, SV-47).
    second = await context.new_page()
    await second.goto(page.url)
    await page.reload()
    await expect(log(page).get_by_text("It goes on and on")).to_be_visible()
    await expect(log(second).get_by_text("It goes on and on")).to_be_visible()
    await expect(log(page).get_by_text("Fix the report")).not_to_have_count(0)

    # Typing interrupts: the old text stops, the new turn answers (acceptance 3).
    await expect(page.get_by_placeholder("Typing interrupts")).to_be_visible()
    await say(page, "Stop, that is enough")
    await expect(log(page).get_by_text("The report is fixed.")).to_be_visible()
    await is_idle(page)
    shown = await log(page).inner_text()
    assert shown.count("Fix the report") == 1 and LONG.strip() not in shown
    await expect(log(second).get_by_text("The report is fixed.")).to_be_visible()

    # “Changes ready”: kept files are on disk, undo takes them back (UI-14).
    card = page.get_by_role("region", name="Changes ready")
    await expect(card.get_by_text("report.py")).to_be_visible()
    assert not (workspace / "notes.md").exists()
    await card.get_by_role("button", name="Keep 2 files").click()
    await expect(card.get_by_text("Kept 2 files")).to_be_visible()
    assert "Total:" in (workspace / "report.py").read_text()
    await card.get_by_role("button", name="Undo").click()
    await expect(card.get_by_role("button", name="Keep 2 files")).to_be_visible()
    assert "Total:" not in (workspace / "report.py").read_text()
    assert not (workspace / "notes.md").exists()

    # The page says what the server says (acceptance 4).
    told = (await server.http.get(f"/api/conversations/{conversation_of(page)}")).json()
    assert [message["content"] for message in told["messages"] if message["role"] == "user"] == [
        "Fix the report",
        "Stop, that is enough",
    ]


async def test_words_that_were_not_sent_survive_a_reload_and_a_cut_connection(
    page: Page, fake: FakeModels
) -> None:
    """UI-19, UI-21, UI-65: typed text is kept; what is said offline is sent once, when the server is back."""
    fake.script({"text": "First answer."}, {"text": "Second answer."})
    sockets = await Sockets.of(page)
    await page.goto("/")
    await say(page, "First")
    await expect(log(page).get_by_text("First answer.")).to_be_visible()
    await is_idle(page)
    await page.get_by_label("Your message").fill("half a thou")
    await page.reload()
    await expect(page.get_by_label("Your message")).to_have_value("half a thou")
    await is_idle(page)

    # Said while there is no connection: kept, and sent once when there is one again.
    sockets.is_up = False
    await sockets.cut()
    await expect(page.get_by_test_id("connection")).to_be_visible()
    await say(page, "Second")
    await expect(page.get_by_text("Will be sent when the connection is back.")).to_be_visible()
    sockets.is_up = True
    # The page tries by itself, too, and may be quicker than a click that waits until the button stands still.
    await page.evaluate(
        "[...document.querySelectorAll('button')].find((one) => one.innerText.includes('Try now'))?.click()"
    )
    await expect(log(page).get_by_text("Second answer.")).to_be_visible()
    await expect(page.get_by_test_id("connection")).to_have_count(0)
    assert (await log(page).inner_text()).count("Second answer.") == 1
    assert fake.request_count == 2


async def test_a_device_without_network_says_so_at_once(page: Page, fake: FakeModels) -> None:
    """Web finding W13: frozen text and no word for ten seconds."""
    fake.script({"text": "First answer."})
    await page.goto("/")
    await say(page, "First")
    await is_idle(page)
    await page.context.set_offline(True)
    await expect(page.get_by_test_id("connection")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.get_by_test_id("connection")).to_have_count(0)


async def test_footnotes_and_named_links_find_each_other_and_right_to_left_text_begins_right(
    page: Page, fake: FakeModels
) -> None:
    """UI-92, web finding W11."""
    fake.script(
        {
            "text": "It holds[^1], see [the page][p].\n\nمرحبا\n\n[^1]: Nearly always.\n\n[p]: https://example.org/page"
        }
    )
    await page.goto("/")
    await say(page, "Does it?")
    await is_idle(page)
    await expect(log(page).get_by_text("Nearly always.")).to_be_visible()
    await expect(log(page).get_by_role("link", name="the page")).to_have_attribute(
        "href", "https://example.org/page"
    )
    assert await log(page).get_by_text("مرحبا").evaluate("e => getComputedStyle(e).direction") == "rtl"


async def test_a_connection_cut_in_a_word_loses_and_doubles_nothing(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """Acceptance 4: after the cut the page says what the server says."""
    fake.script({"text": COUNTED, "deltas": 120, "gap_s": 0.02})
    sockets = await Sockets.of(page)
    await page.goto("/")
    await say(page, "Count")
    for number in (5, 60):
        await expect(log(page).get_by_text(f"number {number},")).to_be_visible()
        await sockets.cut()
    await is_idle(page)
    told = (await server.http.get(f"/api/conversations/{conversation_of(page)}")).json()
    assert told["messages"][-1]["content"] == COUNTED
    assert (await log(page).locator(".prose").inner_text()).strip() == COUNTED.strip()


async def test_a_message_that_waits_is_shown_and_can_be_withdrawn(page: Page, fake: FakeModels) -> None:
    """UI-19, UI-20: Alt+Enter queues; the stop button cancels."""
    fake.script({"text": LONG, "deltas": 400, "gap_s": 0.03})
    await page.goto("/")
    await say(page, "Begin")
    await expect(log(page).get_by_text("It goes on and on")).to_be_visible()
    await say(page, "Later, please", "Alt+Enter")
    waiting = page.get_by_role("list", name="Queued messages")
    await expect(waiting.get_by_text("Later, please")).to_be_visible()
    await waiting.get_by_role("button", name="Withdraw").click()
    await expect(waiting).to_have_count(0)
    await page.get_by_role("button", name="Stop").click()
    await expect(log(page).get_by_text("Stopped. Finished work is kept.")).to_be_visible()
    assert fake.request_count == 1


async def test_an_answer_that_was_typed_below_is_shown_once(page: Page, fake: FakeModels) -> None:
    """UI-16: it stood there as the answer and as a message that interrupts, until the page was loaded anew."""
    fake.script(
        {"tools": [{"name": "ask_user", "input": {"question": "Which colour?"}}]}, {"text": "So be it."}
    )
    await page.goto("/")
    await say(page, "Paint it")
    await expect(page.get_by_text("Which colour?")).to_be_visible()
    await say(page, "mossy green")
    await is_idle(page)
    await expect(log(page).get_by_text("So be it.")).to_be_visible()
    await expect(log(page).get_by_text("mossy green")).to_have_count(1)
    await expect(log(page).get_by_text("interrupting")).to_have_count(0)


async def test_nothing_that_an_agent_says_runs_in_the_page(page: Page, fake: FakeModels) -> None:
    """UI-17, acceptance 7."""
    hostile = (
        '<img src=x onerror="window.hacked=1"> <script>window.hacked=1</script> '
        "[a link](javascript:window.hacked=1) [good](https://example.org) ![pic](https://example.org/x.png)"
    )
    fake.script({"text": hostile})
    await page.goto("/")
    await say(page, "Say something bad")
    await is_idle(page)
    await expect(log(page).get_by_text("onerror=")).to_be_visible()
    assert await page.evaluate("window.hacked") is None
    transcript = page.get_by_test_id("transcript")
    await expect(transcript.locator("img")).to_have_count(0)
    addresses = await transcript.locator("a").evaluate_all(
        "all => all.map(a => [a.getAttribute('href'), a.rel])"
    )
    assert [address for address, _ in addresses] == ["https://example.org", "https://example.org/x.png"]
    assert all("noopener" in rel for _, rel in addresses)


async def test_an_error_says_what_to_do_next_and_the_turn_goes_on(page: Page, fake: FakeModels) -> None:
    """UI-25."""
    fake.script(
        {"status": 401, "body": {"error": {"type": "authentication_error", "message": "bad key"}}},
        {"text": "Here I am."},
    )
    await page.goto("/")
    await say(page, "Hello")
    await expect(log(page).get_by_text("bad key")).to_be_visible()
    await log(page).get_by_role("button", name="Try again").click()
    await expect(log(page).get_by_text("Here I am.")).to_be_visible()
    assert fake.request_count == 2
