"""Claude Code from a chat, through a real gateway and a program in its place (AS-58 … AS-62, acceptance 14)."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from support.chats import ChatService, Chatting, Shown, chatting
from support.claude_program import ClaudeProgram
from support.gateways import TOKEN, Running

from bowerbird.channels.claude.mode import NOT_REPEATED, ClaudeRules
from bowerbird.channels.contract import Media
from bowerbird.gateway.claude_code import BRIDGE, GatewayClaude
from bowerbird.gateway.client import GatewayClient
from bowerbird.store.rows.meta import set_meta
from bowerbird.store.sql.tables import quarantine

OLD = "0e0e0e0e-aaaa-bbbb-cccc-000000000001"


class Host:
    """A host with a gateway, the program, and a project."""

    def __init__(self, place: Path) -> None:
        self.project = place / "myapp"
        self.project.mkdir()
        self.claude = ClaudeProgram(place)
        bridge = {"allowed_commands": [str(self.claude.path)], "allowed_cwd": [str(place)], "token": TOKEN}
        self.gateway = Running(place, {"bridges": {BRIDGE: bridge}})
        client = GatewayClient(f"unix:{self.gateway.socket}", BRIDGE, TOKEN)
        self.runs = GatewayClaude(client)
        self.timeout_s = 60.0

    def rules(self) -> ClaudeRules:
        return ClaudeRules(self.runs, self.claude.projects, "acceptEdits", self.timeout_s)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("host"))
    yield host
    host.gateway.stop()


@pytest.fixture
def host(running: Host) -> Host:
    running.claude.log.unlink(missing_ok=True)
    running.timeout_s = 60.0
    for path in running.claude.projects.rglob("*.jsonl"):
        path.unlink()
    running.claude.talk(
        running.project, OLD, "no json", {"type": "user", "isMeta": True, "message": {"content": "meta"}},
        running.claude.said("fix the *login* page", running.project, gitBranch="topic"),
    )  # fmt: skip
    return running


@pytest.fixture
async def talking(tmp_path: Path, fake: Any, service: ChatService, host: Host) -> AsyncIterator[Chatting]:
    async with chatting(tmp_path, fake, service, claude=host.rules) as chat:
        yield chat


async def enter(service: ChatService, talk: str = "New") -> Shown:
    await service.say("/cc")
    shown = await service.wait_text("Which project?")
    await service.press(shown, "myapp")
    await service.press(shown, talk)
    assert "works in your files themselves" in shown.text
    return shown


async def test_projects_and_conversations_are_listed_and_one_goes_on(
    talking: Chatting, service: ChatService, host: Host
) -> None:
    """AS-59, AS-61, AS-62: first words, git branch; the conversation is resumed, its text on standard input."""
    await service.say("/cc")
    shown = await service.wait_text("**Which project?** 1 project")
    assert shown.labels[0].startswith("myapp · ") and shown.labels[-1] == "Leave"
    await service.press(shown, "myapp")
    assert "1. fix the \\*login\\* page" in shown.text and "3 lines · `topic`" in shown.text
    await service.press(shown, "fix the")
    assert "It goes on where it was." in shown.text and shown.labels == ["Leave"]
    await service.say("and `rm` it $(now)")
    await service.wait_text("you said and `rm` it $(now)")
    [asked] = host.claude.asked()
    assert asked["arguments"] == [
        "-p", "--output-format", "json", "--resume", OLD, "--permission-mode", "acceptEdits"
    ]  # fmt: skip
    assert (asked["text"], asked["cwd"]) == ("and `rm` it $(now)", str(host.project))
    assert await service.press(shown, "Leave") == "You talk with me again."
    talking.home.fake.script({"text": "it is me"})
    await service.say("hello?")
    await service.wait_text("it is me")
    assert len(host.claude.asked()) == 1


async def test_a_new_conversation_gets_an_id_that_survives_a_restart(
    tmp_path: Path, fake: Any, service: ChatService, host: Host
) -> None:
    """AS-58, AS-61: a UUID, then resumed; model and effort are kept; what is wrong is named."""
    async with chatting(tmp_path, fake, service, claude=host.rules):
        await enter(service)
        await service.say("cc:model opus")
        await service.say("cc:effort high")
        await service.say("cc:effort most")
        await service.wait_text("There is no such effort")
        await service.say("cc:model --resume")
        await service.wait_text("no name of a model")
        await service.say("write it")
        await service.wait_text("you said write it")
    async with chatting(tmp_path, fake, service, claude=host.rules) as chat:
        await service.say("deny this")
        await service.wait_text("- `Bash rm -rf x`")
        await service.say("fail")
        await service.wait_text("**That failed.** you said fail")
        await service.say("cc:cost")
        await service.wait_text("$0.7500")
        await service.say("/cc exit")
        await service.wait_text("You talk with me again.")
        first, second, _ = (one["arguments"] for one in host.claude.asked())
        uuid = first[first.index("--session-id") + 1]
        assert len(uuid) == 36 and second[second.index("--resume") + 1] == uuid
        assert second[-6:] == ["--model", "opus", "--effort", "high", "--permission-mode", "acceptEdits"]
        assert (host.project / "made.txt").read_text() == "by claude"
        left = await chat.home.store.read(
            lambda c: c.exec_driver_sql("SELECT key FROM meta WHERE key LIKE 'claude:chat:%'").all()
        )
        assert left == []


async def test_commands_that_come_at_once_undo_nothing_of_one_another(
    talking: Chatting, service: ChatService
) -> None:
    """AS-60: each wrote back all that it had read, so that of two choices one was lost."""
    await enter(service)
    for effort in ("low", "medium", "high"):
        service.shown.clear()
        models = [f"{effort}{n}" for n in range(12)]
        said = [f"cc:model {name}" for name in models[:6]] + [f"cc:effort {effort}"]
        await asyncio.gather(*(service.say(text) for text in [*said, *(f"cc:model {m}" for m in models[6:])]))
        for name in models:
            await service.wait_text(f"runs on {name} now")
        await service.wait_text(f"works with effort {effort} now")
        await service.say("cc:status")
        status = await service.wait_text("It waits for you.")
        assert f"Effort: {effort}" in status.text


async def test_a_run_that_times_out_is_gone_and_its_conversation_goes_on(
    talking: Chatting, service: ChatService, host: Host
) -> None:
    """AS-61, acceptance 14: never two processes on one conversation; what is written meanwhile waits."""
    await enter(service)
    host.timeout_s = 2.0
    await service.say("sleep")
    await service.say("and then")
    await service.wait_text("was stopped after 2 s")
    await service.wait_text("you said and then")
    first, second = host.claude.asked()
    assert first["arguments"][-3] == second["arguments"][-3] and second["arguments"][3] == "--resume"
    # The first was killed, so its mark is left; a second at the same time would have found it alive.
    assert not Path(f"/proc/{first['pid']}").exists()


async def test_stop_ends_what_runs_and_the_commands_answer_meanwhile(
    talking: Chatting, service: ChatService, host: Host
) -> None:
    """AS-60, AS-61."""
    await enter(service)
    await service.say("sleep")
    await talking.home.until(
        lambda: _true(bool(host.claude.asked()))
    )  # commands overtake what waits to begin
    await service.say("cc:status")
    await service.wait_text("It is working.")
    await service.say("/stop")
    await service.wait_text("Stopped. What Claude Code did is done")
    await service.say("next")
    await service.wait_text("you said next")
    assert not Path(f"/proc/{host.claude.asked()[0]['pid']}").exists()


async def _true(value: bool) -> bool:
    return value


async def test_the_commands_of_the_mode(talking: Chatting, service: ChatService, host: Host) -> None:
    """AS-60: each of them; tokens before and after; unknown ones are answered by the list."""
    (host.project / "CLAUDE.md").write_text("use tabs")
    await enter(service)
    for text, answer in [
        ("cc:help", "`cc:compact`"), ("cc:wat", "There is no such command"), ("cc:compact", "nothing to compact"),
        ("cc:memory", "use tabs"), ("cc:status", "It waits for you."), ("cc:doctor", "2.1.0 (Claude Code)"),
        ("cc:resume 0e0e", f"You go on with {OLD}"), ("cc:resume zz", "No conversation begins so"),
        ("cc:compact", "Tokens before: 90,000, after: 1,200"), ("cc:clear", "begins a new conversation"),
        ("cc:project nope", "there is no project nope"), ("cc:project myapp", "You are in"),
    ]:  # fmt: skip
        before = len(service.sent)
        await service.say(text)
        await service.until(lambda b=before, a=answer: any(a in one.text for one in service.sent[b:]))
    assert [one["text"] for one in host.claude.asked()] == ["/compact"]


async def test_who_is_no_owner_or_not_alone_gets_nothing_of_it(
    talking: Chatting, service: ChatService, host: Host
) -> None:
    """AS-59: guests and groups; pictures are refused, and a button is for who opened the list."""
    await service.say("/cc", user="2")
    await service.wait_text("Only an owner")
    await service.say("/cc", chat="-5")
    await service.wait_text("for private chats")
    shown = await enter(service)
    service.completed = lambda message: message
    await service.say("look", media=(Media("photo", "p"),), image_base64="aGk=")
    await service.wait_text("Pictures and files cannot")
    await service.say("@Bowerbird hello", chat="-5")
    await service.until(lambda: talking.home.fake.request_count)
    assert host.claude.asked() == [] and shown.labels == ["Leave"]


async def test_a_killed_run_is_not_repeated_and_a_bad_state_is_set_aside_alone(
    tmp_path: Path, fake: Any, service: ChatService, host: Host
) -> None:
    """AS-58: what a dead process may have done on the host is not done twice; one bad entry costs one person."""
    async with chatting(tmp_path, fake, service, claude=host.rules) as chat:
        await enter(service)
        await service.say("sleep", key="u-sleep")
        await chat.home.until(lambda: _true(bool(host.claude.asked())))
    async with chatting(tmp_path, fake, service, claude=host.rules) as chat:
        await service.wait_text(NOT_REPEATED)
        assert len(host.claude.asked()) == 1
        await chat.home.store.write(lambda c: set_meta(c, "claude:chat:9", '{"mode": 5}'))
    async with chatting(tmp_path, fake, service, claude=host.rules) as chat:
        await service.say("go on")
        await service.wait_text("you said go on")
        rows = await chat.home.store.read(
            lambda c: c.execute(select(quarantine.c.key, quarantine.c.raw)).all()
        )
        assert [tuple(row) for row in rows] == [("9", '{"mode": 5}')]


async def test_states_of_an_earlier_program_are_taken_over_once(
    tmp_path: Path, fake: Any, service: ChatService, host: Host
) -> None:
    """AS-58, CF-61: `state_file`."""
    state = {
        "mode": "claude_code", "active_project": str(host.project).replace("/", "-"), "active_session_id": OLD,
        "active_project_path": str(host.project), "active_model": "sonnet", "active_effort": None,
    }  # fmt: skip
    file = tmp_path / "cc_user_states.json"
    file.write_text(json.dumps({"1": state, "2": {"mode": "assistant"}, "3": 7}))
    given: dict[str, Any] = {"claude": host.rules, "claude_file": file}
    async with chatting(tmp_path, fake, service, **given):
        await service.say("go on")
        await service.wait_text("you said go on")
        assert host.claude.asked()[0]["arguments"][3:7] == ["--resume", OLD, "--model", "sonnet"]
        await service.say("/cc exit")
        await service.wait_text("You talk with me again.")
    async with chatting(tmp_path, fake, service, **given):
        fake.script({"text": "it is me"})
        await service.say("hello?")
        await service.wait_text("it is me")


async def test_a_gateway_that_is_away_is_named(
    tmp_path: Path, fake: Any, service: ChatService, host: Host
) -> None:
    """AS-61: the message is answered with the reason, and the mode goes on."""
    async with chatting(tmp_path, fake, service, claude=host.rules):
        await enter(service)
    away = GatewayClaude(GatewayClient(f"unix:{tmp_path}/none", BRIDGE, TOKEN))
    async with chatting(tmp_path, fake, service, claude=lambda: ClaudeRules(away, host.claude.projects)):
        await service.say("hello")
        await service.wait_text("cannot be reached")
        await service.say("cc:doctor")
        await service.wait_text("✗ the host gateway cannot be reached")
