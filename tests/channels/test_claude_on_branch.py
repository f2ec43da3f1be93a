"""Claude Code from a chat on a branch: a real server, no gateway, a program in its place (AS-62)."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.assistants import Assistant
from support.claude_program import ClaudeProgram
from support.fake_models import FakeModels
from support.fake_telegram import Call, FakeTelegram, fake_telegram
from support.trees import write_tree

from bowerbird.providers.programs.finding import installed_bin

PROGRAM = f"""#!{Path(sys.executable).resolve()} -IS
import json, os, sys, time
if "--version" in sys.argv:
    print("2.1.0 (Claude Code)")
    sys.exit()
text = sys.stdin.read()
if "wait" in text:
    time.sleep(600)
if "write" in text:
    open("made.txt", "w").write("by claude\\n")
seen = os.path.exists(os.path.expanduser("~/before"))
open(os.path.expanduser("~/before"), "w").close()
print(json.dumps({{"type": "result", "is_error": "fail" in text, "result": f"{{seen}} " + text.split()[-1],
                  "session_id": "s-1", "total_cost_usd": 0.25}}))
"""


@pytest.fixture
async def assistant(tmp_path: Path) -> AsyncIterator[Assistant]:
    write_tree(tmp_path / "myapp", {"old.txt": "one\n"})
    claude = ClaudeProgram(tmp_path)
    claude.talk(tmp_path / "myapp", "of-the-host", claude.said("long ago", tmp_path / "myapp"))
    program = installed_bin(tmp_path / "data") / "claude"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    more = {
        "claude_code": {"enabled": True, "projects_dir": str(claude.projects), "timeout": 2},
        "providers": {
            "claude_code": {"transport": "headless", "api_key": "k", "base_url": "http://127.0.0.1:9"}
        },
    }
    with FakeModels() as fake:
        async with fake_telegram() as bot:
            made = Assistant(tmp_path, fake, bot, telegram={"allowed_users": ["7"]}, more=more)
            try:
                made.start()
                yield made
            finally:
                made.close()


async def entered(assistant: Assistant, bot: FakeTelegram, talk: str) -> None:
    before = len(assistant.said())

    async def said(text: str) -> Call:
        await bot.until(lambda: any(text in call.text for call in assistant.said()[before:]))
        return await assistant.until_said(text)

    await bot.say("/cc")
    await assistant.press(await said("Which project?"), "myapp")
    await assistant.press(await said("which conversation?"), talk)
    await said("works on a branch of this project")


async def test_claude_code_works_on_a_branch_and_its_changes_are_landed_from_the_chat(
    assistant: Assistant,
) -> None:
    """AS-62, AS-59, AS-61: reviewed like any change; its conversation goes on after leaving and coming back."""
    bot, project = assistant.bot, assistant.place / "myapp"
    await entered(assistant, bot, "New")
    assert not any("long ago" in call.text for call in assistant.said()), "it cannot go on with that one"
    await bot.say("write it")
    await assistant.until_said("False it")
    summary = await assistant.until_said("made.txt")
    assert not (project / "made.txt").exists()
    await assistant.press(summary, "Land")
    await assistant.until_said("Landed 1 file")
    assert (project / "made.txt").read_text() == "by claude\n"
    await bot.say("now wait")
    await assistant.until_said("stopped after 2 s")
    await bot.say("and fail")
    await assistant.until_said("That failed.")
    await bot.say("/cc exit")
    await assistant.until_said("You talk with me again.")
    await entered(assistant, bot, "1. write it")
    await bot.say("go on")
    await assistant.until_said("True on")
    await bot.say("cc:doctor")
    await assistant.until_said("Claude Code on a branch")
