"""Every command is the same program over a server: same JSON, same options, the same chat (F3, R1, UI-85)."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from support.desk import Desk
from support.patience import HANG_S
from support.servers import free_port


def serve(desk: Desk, port: int) -> "subprocess.Popen[bytes]":
    """Start a server and wait until it answers."""
    process = desk.start("serve", "--port", str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + HANG_S
    while True:
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        assert process.poll() is None and time.monotonic() < deadline, "the server did not start"
        time.sleep(0.05)


SAME = [
    ["sessions", "--all"], ["show", "SESSION"], ["diff", "SESSION"], ["landings"], ["usage", "--by", "model"],
    ["tools"], ["subagents", "list", "SESSION"], ["memory", "log"],
]  # fmt: skip


@pytest.fixture
def served(desk: Desk, written: Any) -> Iterator[tuple[Desk, str, str]]:
    """A session of this machine, and a server of the same directory and records."""
    desk.edit(written("b.txt", "hi\n"), written("c.txt", "hi\n"), answer="Wrote them.")
    session = json.loads(desk.ok("write them", "--json"))["conversation_id"]
    port = free_port()
    process: subprocess.Popen[bytes] = serve(desk, port)
    try:
        yield desk, session, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(params=["local", "server"])
def client(request: pytest.FixtureRequest, served: tuple[Desk, str, str]) -> Callable[..., str]:
    """Run a command of this machine, or over the server; it must succeed."""
    desk, _, url = served
    where = [] if request.param == "local" else ["--server", url]
    return lambda *arguments: desk.ok(*arguments, *where)


def test_the_json_of_each_command_is_the_same_here_and_over_a_server(served: tuple[Desk, str, str]) -> None:
    """F3: `sessions --json` had 22 keys here and 13 there, `show --json` another shape."""
    desk, session, url = served
    for command in SAME:
        words = [session if word == "SESSION" else word for word in command]
        here = json.loads(desk.ok(*words, "--json"))
        there = json.loads(desk.ok(*words, "--json", "--server", url))
        if command[0] == "show":  # a command that only looks chooses no model
            here, there = ({**each, "model": "", "context_window": 0} for each in (here, there))
        if command[0] == "tools":  # what a server's turns have beside
            here = [row for row in here if row in there]
            assert len(here) > 5
            continue
        assert here == there, command


def test_a_review_and_a_fork_say_the_same_by_each_client(
    served: tuple[Desk, str, str], client: Callable[..., str]
) -> None:
    desk, session, _ = served
    fork = json.loads(client("fork", session, "--turn", "1", "--json"))
    assert list(fork) == ["conversation_id"]
    landed = json.loads(client("land", session, "b.txt", "--yes", "--json"))
    assert {"id", "kind", "state", "at", "branch", "entries", "refused"} <= set(landed)
    assert (desk.project / "b.txt").read_text() == "hi\n"
    (row,) = [row for row in json.loads(client("sessions", "--all", "--json")) if row["id"] == session]
    assert row["changed_files"] == 1
    undone = json.loads(client("undo", landed["id"], "--json"))
    assert undone["undoes"] == landed["id"] and not (desk.project / "b.txt").exists()
    gone = json.loads(client("discard", session, "--yes", "--json"))
    assert gone["status"] == "discarded" and "/c.txt" in gone["paths"]


def test_a_turn_takes_its_limits_and_lands_by_its_policy_by_each_client(
    served: tuple[Desk, str, str], client: Callable[..., str], written: Any
) -> None:
    """UI-85: `--max-turns --max-cost --no-memory --land` were refused over a server."""
    desk, _, _ = served
    desk.edit(written("d.txt", "hi\n"))
    limits = ("--max-turns", "5", "--max-cost", "2", "--no-memory", "--land", "turn")
    result = json.loads(client("write d", *limits, "--json"))
    assert result["state"] == "done" and result["landing_id"].startswith("l_"), result
    assert (desk.project / "d.txt").read_text() == "hi\n"


def test_bowerbird_alone_talks_over_a_server(served: tuple[Desk, str, str]) -> None:
    """UI-85: it said to talk in the browser."""
    desk, _, url = served
    desk.fake.script({"text": "Good day."})
    with desk.terminal("--server", url) as chat:
        chat.wait_for("/help lists commands")
        chat.send("hello\r")
        chat.wait_for("Good day.")
        chat.wait_for("ctx")
        chat.send("/sessions\r")
        chat.wait_for("write them")
        chat.send("\x04")
        chat.wait_for("go on with: bowerbird --resume=")
        assert chat.wait() == 0
