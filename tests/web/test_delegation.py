"""Subagents and attempts as people see them: cards, transcripts, taking their work over (UI-8, UI-32)."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from support.fake_models import FakeModels
from support.live_server import LiveServer
from support.patience import patience
from support.web_actions import is_idle, log, serious_findings

from bowerbird.providers.programs.finding import installed_bin

pytestmark = pytest.mark.timeout(patience(60))

CLAUDE = """#!/bin/sh
if [ "$1" = --version ]; then echo "2.1.0 (Claude Code)"; exit 0; fi
cat > claude.txt
echo '{"type":"result","is_error":false,"result":"said","session_id":"s"}'
"""
TASKS = [
    {"task": "Note what the report counts", "agent_type": "general"},
    {"task": "Look at the orders", "agent_type": "explore"},
]


def first_words(body: dict[str, Any]) -> str:
    """The task an agent was given, or what the person said first."""
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def answer(body: dict[str, Any], _number: int) -> dict[str, Any]:
    """A lead with two helpers; attempts that write what their model is called."""
    said = first_words(body)
    done = sum(message["role"] == "assistant" for message in body["messages"])
    if "Note what" in said:
        note = {"name": "write_file", "input": {"path": "/counts.md", "content": "# Orders\n"}}
        return (
            {"text": "I write it down.", "tools": [note]} if done == 0 else {"text": "It counts **orders**."}
        )
    if "Look at" in said:
        return {"text": "There are two orders."}
    if "Say hello" in said:
        name = str(body["model"])
        place = "/hello.txt" if "good" in name else "/other.txt"
        note = {"name": "write_file", "input": {"path": place, "content": f"hello from {name}\n"}}
        return {"tools": [note]} if done == 0 else {"text": "Said."}
    if done == 0:
        return {"text": "Two helpers.", "tools": [{"name": "spawn_subagents", "input": {"tasks": TASKS}}]}
    return {"text": "Both are back."}


async def test_subagents_have_cards_with_transcript_changes_and_merge(
    page: Page, server: LiveServer, fake: FakeModels
) -> None:
    """UI-8: live or after a reload; in the user face they are a line of the activity."""
    fake.answer(answer)
    conversation = await server.conversation()
    await server.http.post(
        f"/api/conversations/{conversation}/messages", params={"wait": 60}, json={"content": "Help"}
    )
    await page.goto(f"/dev/c/{conversation}")
    await expect(log(page).get_by_text("Both are back.")).to_be_visible()
    await expect(page.locator("article.subagent")).to_have_count(2)
    card = page.get_by_role("article", name="Subagent general")
    await expect(card).to_contain_text("subagent_0")
    await expect(card).to_contain_text("finished")
    await expect(card).to_contain_text("tokens")
    await expect(card).to_contain_text("1 file changed +1 −0")
    await expect(page.get_by_role("article", name="Subagent explore")).to_contain_text("It changed no files")
    await card.get_by_role("button", name="Transcript").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("I write it down.")).to_be_visible()
    await expect(dialog.get_by_text("write_file")).to_be_visible()
    await dialog.get_by_role("button", name="Changes").click()
    await expect(dialog.get_by_role("article", name="counts.md")).to_contain_text("# Orders")
    await page.keyboard.press("Escape")
    await card.get_by_role("button", name="Merge").click()
    await expect(card).to_contain_text("merged")
    await expect(card.get_by_role("button", name="Merge")).to_have_count(0)
    await expect(page.get_by_role("link", name="Review 1 file")).to_be_visible()
    explore = page.get_by_role("article", name="Subagent explore")
    await explore.get_by_role("button", name="Discard").click()
    await expect(explore.get_by_role("button", name="Discard")).to_have_count(0)
    await page.goto(f"/c/{conversation}")
    await is_idle(page)
    await expect(page.locator("article.subagent")).to_have_count(0)


async def test_attempts_stand_beside_each_other_and_one_is_taken(
    page: Page, server: LiveServer, fake: FakeModels, workspace: Path
) -> None:
    """UI-32: ranked with checks and cost; the winner's files come to review and land."""
    fake.answer(answer)
    conversation = await server.conversation()
    await page.goto(f"/dev/c/{conversation}")
    await page.get_by_role("button", name="More actions").click()
    await page.get_by_role("menuitem", name="Attempts").click()
    await page.wait_for_url("**/attempts")
    await page.get_by_role("button", name="New attempts").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Task").fill("Say hello in a file")
    await dialog.get_by_label("How many").fill("2")
    await dialog.get_by_label("Checks").fill("test -f hello.txt")
    await dialog.get_by_label("Models").fill("anthropic:bad-model\nanthropic:good-model")
    await dialog.get_by_role("button", name="Begin").click()
    best = page.locator("article.attempt.winner")
    await expect(best).to_contain_text("No. 1")
    await expect(best).to_contain_text("1 of 1 check")
    await expect(page.locator("article.attempt")).to_have_count(2)
    other = page.locator("article.attempt:not(.winner)")
    await expect(other).to_contain_text("0 of 1 check")
    await other.get_by_role("button", name="Changes").click()
    await expect(page.get_by_role("dialog").get_by_text("hello from bad-model")).to_be_visible()
    await page.keyboard.press("Escape")

    # The server knows them: another browser, or this one after a reload, sees the same.
    await page.evaluate("localStorage.clear()")
    await page.reload()
    await expect(best).to_contain_text("1 of 1 check")
    await expect(page.locator("article.attempt")).to_have_count(2)

    # Files of both: each is taken from where it is chosen.
    handle = str(await other.get_attribute("aria-label"))
    await page.get_by_role("button", name="All of No. 1").click()
    await page.get_by_role("radio", name=f"Take /other.txt from {handle}").check()
    await page.get_by_role("button", name="Take 2 files and review").click()
    await page.wait_for_url("**/diff")
    await page.get_by_role("button", name="Land 2 files").click()
    await expect(page.get_by_test_id("outcome")).to_contain_text("Landed 2 files.")
    assert (workspace / "hello.txt").read_text() == "hello from good-model\n"
    assert (workspace / "other.txt").read_text() == "hello from bad-model\n"


async def test_another_vendors_agent_attempts_beside_bowerbird(
    page: Page, server: LiveServer, fake: FakeModels, tmp_path: Path
) -> None:
    """PR-39, UI-32: who tries is chosen in the dialog; each card says whose attempt it is."""
    fake.answer(answer)
    program = installed_bin(tmp_path / "data") / "claude"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(CLAUDE)
    program.chmod(0o755)
    conversation = await server.conversation()
    await page.goto(f"/dev/c/{conversation}/attempts")
    await page.get_by_role("button", name="New attempts").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Task").fill("Say hello in a file")
    await dialog.get_by_label("How many").fill("2")
    await dialog.get_by_label("Checks").fill("test -f claude.txt")
    who = dialog.get_by_role("group", name="Who tries")
    await expect(who.get_by_label("Bowerbird")).to_be_checked()
    await who.get_by_label("Claude Code").check()
    assert await serious_findings(page) == []
    await dialog.get_by_role("button", name="Begin").click()
    best = page.locator("article.attempt.winner")
    await expect(best).to_contain_text("claude_code")
    await expect(best).to_contain_text("1 of 1 check")
    await expect(page.locator("article.attempt:not(.winner)")).not_to_contain_text("claude_code")
