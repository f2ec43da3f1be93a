"""Two real servers on one PostgreSQL; one is stopped (SIGSTOP) while it drives a turn (SE-28, SE-29).

Acceptance 2: the other finishes the turn, and the one that is woken appends nothing and goes on serving.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.crashes import effective_content
from support.patience import HANG_S, patience
from support.postgres import PostgresServer
from support.serve_checker import rows
from support.serve_drill import ServeDrill
from support.serve_peers import SHELL, Peers, peers
from support.serve_processes import Serves
from support.servers import free_port

from bowerbird.sessions.branches.takeover import descendants


@pytest.fixture(scope="module")
def world() -> Iterator[Peers]:
    with peers() as made:
        yield made


@pytest.fixture(scope="module")
def two() -> Iterator[tuple[Serves, Serves]]:
    servers = Serves(), Serves()
    try:
        yield servers
    finally:
        for server in servers:
            server.close()


def ask(address: str, method: str, path: str, **more: Any) -> Any:
    """Send a request to a server that may still be starting."""
    end = time.monotonic() + HANG_S
    while True:
        try:
            answer = httpx.request(method, f"{address}{path}", timeout=HANG_S, trust_env=False, **more)
        except httpx.TransportError:
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.02)
        else:
            return answer.raise_for_status().json()


def until(condition: Any, what: str) -> None:
    end = time.monotonic() + patience(24)
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


@pytest.mark.parametrize("during", ["model call", "command"])
def test_a_stopped_server_loses_its_turn_to_another_and_writes_nothing_when_it_wakes(
    tmp_path: Path, world: Peers, two: tuple[Serves, Serves], postgres: PostgresServer, during: str
) -> None:
    """It has the branch's lock; a command of its own goes on while it is stopped."""
    name = SHELL if during == "command" else "s0"
    url = asyncio.run(postgres.database())
    drill = ServeDrill(tmp_path / "drill", world, url=url, count=1, chats=0, tier="auto")
    settings = json.loads((drill.directory / "config.yaml").read_text())
    settings["dispatch"] = {"lease_s": 2, "heartbeat_s": 0.6}
    (drill.directory / "config.yaml").write_text(json.dumps(settings))
    world.asked = 0
    world.held = 2 if during == "model call" else 0
    pids: list[int] = []
    addresses: list[str] = []
    try:
        for server in two:
            drill.port = free_port()
            addresses.append(drill.address)
            pids.append(server.start(drill.config(None)))
            if len(pids) > 1:
                continue
            if during == "command" and ask(addresses[0], "GET", "/api/sandbox")["tier"] == "none":
                pytest.skip("no commands can run here")
            thread = ask(addresses[0], "POST", "/api/chat", json={})["conversation_id"]
            say = {"content": f"Message {name} 1 [[drill {name} 1]]"}
            ask(addresses[0], "POST", f"/api/conversations/{thread}/messages", json=say)
            if during == "command":
                until(lambda: sleeping(pids[0]), "the command does not run")
            else:
                until(lambda: world.asked >= world.held, "the model was not asked")
            os.kill(pids[0], signal.SIGSTOP)
            (drill.project / "go").touch()
        ask(addresses[1], "GET", "/health")
        turn = "SELECT state, attempt FROM turns"
        until(lambda: rows(drill, turn)[0][0] == "done", f"nobody took over {rows(drill, turn)}")
        # A machine that is busy for longer than the lease may make the second server lose its turn, to itself.
        assert rows(drill, turn)[0][1] >= 2
        assert during != "command" or not sleeping(pids[0])
        mine = f"SELECT seq, epoch, type, body FROM journal WHERE thread_id = '{thread}' ORDER BY seq"
        before, files = rows(drill, mine), branch_files(drill, thread)
        assert [row[0] for row in before] == list(range(1, len(before) + 1))
        assert before[-1][1] >= 2
        assert [json.loads(b)["status"] for *_, kind, b in before if kind == "tool_outcome"] != []
        assert {json.loads(b)["status"] for *_, kind, b in before if kind == "tool_outcome"} == {"ok"}
        os.kill(pids[0], signal.SIGCONT)
        # It is back when it answers; what it had in hand is over by the time it has driven another turn.
        other = ask(addresses[0], "POST", "/api/chat", json={})["conversation_id"]
        say = {"content": "Message s0 2 [[drill s0 2]]"}
        answer = ask(
            addresses[0], "POST", f"/api/conversations/{other}/messages", json=say, params={"wait": 30}
        )
        assert answer["state"] == "done"
        assert rows(drill, mine) == before
        assert branch_files(drill, thread) == files
        assert max(world.outside.values()) == 1
    finally:
        for pid, server in zip(pids, two, strict=False):
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)
            server.wait()
        asyncio.run(postgres.give_back(url))


def sleeping(pid: int) -> list[int]:
    """The commands below a process that wait for `go`."""
    found: list[int] = []
    for each in descendants(pid):
        try:
            line = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if line.startswith(b"sleep\x00600"):
            found.append(each)
    return found


def branch_files(drill: ServeDrill, thread: str) -> dict[str, bytes | None]:
    """What the turn made, read from the branch's layers."""
    [(branch,)] = rows(drill, f"SELECT branch_id FROM sessions WHERE thread_id = '{thread}'")
    directory = drill.data / "branches" / str(branch)
    names = ("half.txt", "whole.txt", "s0/log.txt", "s0/new/1.txt")
    found = {name: effective_content(directory, drill.project, name) for name in names}
    made = {name: content for name, content in found.items() if content is not None}
    assert made.get("half.txt", b"half\n") == b"half\n" and made.get("whole.txt", b"whole\n") == b"whole\n"
    return dict(made)
