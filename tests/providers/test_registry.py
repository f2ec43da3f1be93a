"""Runs in sessions, their memory, probes in time (PR-8, PR-12, PR-30 … PR-33)."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_wires import AgentWires
from support.patience import HANG_S, patience
from support.provider_registry import KEY, registry_at

from bowerbird.config.sections.agent import ProvidersSection
from bowerbird.core.errors import InvalidArgument
from bowerbird.providers.catalogue import CATALOGUE
from bowerbird.providers.contract.errors import AgentNotFound
from bowerbird.providers.contract.types import AgentEvent, AgentRequest, AgentResponse, MemoryLog
from bowerbird.providers.sessions import NEWEST


@pytest.fixture
async def wires() -> AsyncIterator[AgentWires]:
    async with AgentWires().serving() as served:
        yield served


async def test_question_and_answer_are_there_for_another_process(tmp_path: Path, wires: AgentWires) -> None:
    """PR-30, PR-32, acceptance 10; and acceptance 2: no piece of the key is in what is kept."""
    async with registry_at(tmp_path, wires.url) as registry:
        events: list[AgentEvent] = []
        answer = await registry.run("claude", AgentRequest("hi"), owner="", on_event=events.append)
    assert answer.success and answer.session_id is not None
    assert answer.session_id.startswith("sess_") and len(answer.session_id) == 29
    assert [e.kind for e in events][-1] == "done" and "".join(e.text for e in events if e.kind == "text")
    async with registry_at(tmp_path, wires.url) as other:
        logs = await other.memory(answer.session_id, owner="")
        assert logs == [MemoryLog("user", "hi"), MemoryLog("assistant", "hello there")]
        assert await other.memory(answer.session_id, owner="somebody") is None
        assert await other.memory("0123456789ab", owner="") == [MemoryLog("user", "typed")]
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("agent.db*"))
    assert not [at for at in range(len(KEY) - 3) if KEY[at : at + 4].encode() in kept]


async def test_kill_9_leaves_the_question_marked(tmp_path: Path, wires: AgentWires) -> None:
    """PR-30, acceptance 10."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANG_S)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("registry_child.py")), str(tmp_path), url]
        )
        try:
            connection, _ = await asyncio.get_running_loop().run_in_executor(None, silent.accept)
        finally:  # it was asked, so the question is kept; the line stays open, or it would end as refused
            child.kill()
            child.wait()
        connection.close()
    async with registry_at(tmp_path, wires.url) as registry:
        assert await registry.memory("mine", owner="") == [MemoryLog("user", "are you there?")]
        (run,) = await registry.past_runs("")
        assert run.question.metadata["interrupted"] is True and run.answer is None
        assert (await registry.run("claude", AgentRequest("now?", session_id="mine"), owner="")).success
        newest, older = await registry.past_runs("")
        assert newest.answer is not None and "interrupted" not in newest.question.metadata
        assert older.answer is None


async def test_sixty_messages_give_the_newest_fifty_in_order(tmp_path: Path, wires: AgentWires) -> None:
    """PR-31, PR-32, acceptance 11: the store has all, an agent gets the newest."""
    async with registry_at(tmp_path, wires.url) as registry:
        for number in range(30):
            await registry.run("claude", AgentRequest(f"n{number}", session_id="long"), owner="")
        logs = await registry.memory("long", owner="")
        assert logs is not None and len(logs) == NEWEST
        assert [log.content for log in logs if log.role == "user"] == [f"n{n}" for n in range(5, 30)]
        sent = [m for m in wires.bodies[-1]["messages"] if m["role"] == "user"]
        assert len(wires.bodies[-1]["messages"]) == NEWEST + 1 and len(sent) == 26


@pytest.mark.parametrize("session", ["../x", "a/b", ".hidden", "", "x" * 129, "a b", "a\0"])
async def test_what_is_no_id_is_refused_and_makes_no_file(
    tmp_path: Path, wires: AgentWires, session: str
) -> None:
    """PR-33, acceptance 11."""
    async with registry_at(tmp_path, wires.url) as registry:
        before = {path.name for path in tmp_path.iterdir()}
        with pytest.raises(InvalidArgument):
            await registry.run("claude", AgentRequest("hi", session_id=session), owner="")
        assert await registry.memory(session, owner="") is None
        assert {path.name for path in tmp_path.iterdir()} == before and not wires.asked


async def test_sessions_belong_to_one_agent_and_one_owner(tmp_path: Path, wires: AgentWires) -> None:
    """PR-32, PR-33: another's session is not found, another agent's is an error of its own."""
    async with registry_at(tmp_path, wires.url) as registry:
        await registry.run("claude", AgentRequest("hi", session_id="s"), owner="ann")
        for agent, session, owner, said in (
            ("codex", "s", "ann", "is one with claude"),
            ("claude", "s", "bob", "not found"),
            ("claude", "sess_000000000000000000000000", "ann", "not found"),
        ):
            answer = await registry.run(agent, AgentRequest("hi", session_id=session), owner=owner)
            assert answer.metadata["error_type"] == "AgentSessionError" and said in str(answer.error)
        assert [run.session.owner for run in await registry.past_runs("bob")] == []
        with pytest.raises(AgentNotFound, match="no agent is called 'Claude'"):
            await registry.run("Claude", AgentRequest("hi"), owner="ann")


async def test_two_runs_in_one_session_take_turns(tmp_path: Path, wires: AgentWires) -> None:
    """PR-33."""
    async with registry_at(tmp_path, wires.url) as registry:
        await asyncio.gather(
            *(registry.run("claude", AgentRequest(f"q{n}", session_id="s"), owner="") for n in range(4))
        )
        logs = await registry.memory("s", owner="")
        assert logs is not None and [log.role for log in logs] == ["user", "assistant"] * 4


async def test_processes_that_share_the_records_take_turns_in_a_session(
    tmp_path: Path, wires: AgentWires, database_url: str
) -> None:
    """PR-33: two registries with stores of their own, as two servers have them; none is in between another's."""
    place = {"data_dir": tmp_path, "url": wires.url, "database": database_url}
    async with registry_at(**place) as one, registry_at(**place) as two:
        await asyncio.gather(
            *(
                registry.run("claude", AgentRequest(f"q{n}", session_id="s"), owner="")
                for n in range(3)
                for registry in (one, two)
            )
        )
        logs = await one.memory("s", owner="")
        assert logs is not None and [log.role for log in logs] == ["user", "assistant"] * 6
        assert [run.session.metadata for run in await two.past_runs("", 1)] == [{}], "the turn was given back"


async def test_waiting_for_a_session_counts_and_a_dead_process_holds_up_nobody(tmp_path: Path) -> None:
    """PR-17, PR-33: who waits for another process's run ends in time; kill -9 of that process frees the session."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANG_S)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("registry_child.py")), str(tmp_path), url]
        )
        try:
            connection, _ = await asyncio.get_running_loop().run_in_executor(None, silent.accept)
            async with registry_at(tmp_path, url) as registry:
                asked = AgentRequest("me too", session_id="mine", timeout=0.3)
                waited = await registry.run("claude", asked, owner="")
                assert waited.metadata["error_type"] == "AgentTimeout", waited
                assert "another run in session mine" in str(waited.error)
                child.kill()
                child.wait()
                connection.close()
                silent.close()
                patient = AgentRequest("me too", session_id="mine", timeout=HANG_S)
                again = await registry.run("claude", patient, owner="")
                assert "another run" not in str(again.error), "it was asked, and nobody was there"
                assert next(run.question.content for run in await registry.past_runs("")) == "me too"
        finally:
            child.kill()
            child.wait()


async def test_agents_that_settings_replace_are_closed_when_they_are_idle(
    tmp_path: Path, wires: AgentWires
) -> None:
    """Changing settings again and again keeps one agent, and those that are in runs still."""
    made: list[Any] = []
    section = ProvidersSection.model_validate({"ollama": {"base_url": wires.url}})

    class Noted:
        def __init__(self, entry: Any) -> None:
            self.info = entry.info(None)
            self.closed = False
            self.goes_on = asyncio.Event()
            made.append(self)

        async def execute(self, request: AgentRequest) -> AgentResponse:
            await self.goes_on.wait()
            return AgentResponse("done", request.trace_id)

        async def close(self) -> None:
            self.closed = True

    makers = {"local": lambda entry, _settings: Noted(entry)}
    async with registry_at(tmp_path, wires.url, more=makers, section=lambda: section) as registry:
        run = asyncio.create_task(registry.run("ollama", AgentRequest("x"), owner=""))
        while not made or not registry.active:
            await asyncio.sleep(0)
        for number in range(20):
            section = ProvidersSection.model_validate({"ollama": {"model": f"m{number}"}})
            registry.list_agents()
        mine = [agent for agent in made if agent.info.name == "ollama"]
        while sum(not agent.closed for agent in mine) > 2:
            await asyncio.sleep(0)
        assert not mine[0].closed, "its run goes on"
        mine[0].goes_on.set()
        assert (await run).content == "done"
        while not mine[0].closed:
            await asyncio.sleep(0)
        assert [agent.closed for agent in mine] == [True] * (len(mine) - 1) + [False]


async def test_a_run_that_is_stopped_says_so_in_its_session(tmp_path: Path) -> None:
    """PR-12: cancelling ends the agent, and the answer that is kept is no answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(HANG_S)
        async with registry_at(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}") as registry:
            run = asyncio.create_task(registry.run("claude", AgentRequest("hi", session_id="s"), owner=""))
            connection, _ = await asyncio.get_running_loop().run_in_executor(None, silent.accept)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            connection.close()
            assert await registry.memory("s", owner="") == [
                MemoryLog("user", "hi"),
                MemoryLog("assistant", "[error] it was stopped"),
            ]


async def test_a_program_without_a_place_is_an_error_of_the_answer(tmp_path: Path, wires: AgentWires) -> None:
    """PR-12, PR-20."""
    async with registry_at(tmp_path, wires.url) as registry:
        answer = await registry.run("opencode", AgentRequest("hi"), owner="")
        assert answer.error == "no tier runs commands here"
        assert answer.metadata["error_type"] == "SandboxUnavailable"


class Hanging:
    """An agent whose probe neither ends nor can be stopped."""

    def __init__(self, entry: Any, settings: Any) -> None:
        self.info = entry.info()

    async def probe(self, *, live: bool = False) -> Any:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if closing.is_set():
                    raise

    async def close(self) -> None: ...


class Broken(Hanging):
    """An agent whose probe is defect."""

    async def probe(self, *, live: bool = False) -> Any:
        raise RuntimeError(f"with {KEY}")


closing = asyncio.Event()


async def test_all_probes_come_in_time_whatever_hangs(tmp_path: Path, wires: AgentWires) -> None:
    """PR-8, PR-9, acceptance 1: one probe that hangs, or fails, is that of its agent only."""
    more = {"cli": Hanging, "local": Broken}
    async with registry_at(tmp_path, wires.url, more=more, probe_s=0.3) as registry:  # type: ignore[arg-type]
        closing.clear()
        began = time.monotonic()
        probes = {probe.name: probe for probe in await registry.probe_all()}
        assert time.monotonic() - began < patience(2)
        assert [*probes] == [*CATALOGUE] and len([e for e in CATALOGUE.values() if e.core]) == 12
        assert "did not end" in probes["jules"].detail and probes["jules"].status == "unreachable"
        assert probes["ollama"].detail == "its probe failed: RuntimeError"
        assert (probes["claude"].status, probes["deepseek"].status) == ("operative", "key_missing")
        assert KEY[:7] not in repr(probes)
        asked = len(wires.asked)
        again = {probe.name: probe for probe in await registry.probe_all(max_age_s=60)}
        assert again["claude"] is probes["claude"] and len(wires.asked) == asked
        unknown = await registry.probe_agent("nobody")
        assert (unknown.status, unknown.detail) == ("unavailable", "Unknown agent")
        assert [info.name for info in await registry.get_operative()] == ["claude", "codex"]
        closing.set()
