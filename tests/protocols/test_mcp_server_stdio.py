"""The MCP server on standard input and output: framing, noise, the end of input, parallel calls (PT-8, PT-16)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.mcp_clients import ERAS, INITIALIZE, Era, stdio
from support.patience import HANG_S, patience

pytestmark = pytest.mark.timeout(patience(90))

TESTS = Path(__file__).parent.parent
CHILD = [sys.executable, str(TESTS / "support/mcp_stdio_child.py")]
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def environment(place: Path) -> dict[str, str]:
    return {
        "HOME": str(place), "PATH": os.environ["PATH"], "PYTHONPATH": str(TESTS),
        "ANTHROPIC_API_KEY": "sk-ant-0123456789",
    }  # fmt: skip


class Served:
    """A server and its raw lines."""

    def __init__(self, place: Path) -> None:
        self.process = subprocess.Popen(
            CHILD, cwd=place, env=environment(place),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def send(self, data: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        line = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        """The next line, which is a message or the test fails."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read() if self.process.stderr else ""
        return json.loads(line)

    def begin(self) -> "Served":
        self.send(INITIALIZE)
        assert self.next()["result"]["serverInfo"]["name"] == "bowerbird"
        self.send(READY)
        return self

    def ask(self, number: int, tool: str, **arguments: Any) -> None:
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def end(self) -> tuple[int, bytes, bytes]:
        """Close its input; return its code and what it still said."""
        out, noise = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out, noise


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(tmp_path_factory.mktemp("stdio")).begin()
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate()


@pytest.mark.parametrize("era", ERAS)
async def test_both_eras_call_the_tools_and_a_second_process_sees_the_session(
    tmp_path: Path, era: Era
) -> None:
    """Acceptance 1, PT-7, PT-8: as the local owner, on the same records as every command."""
    env = environment(tmp_path)
    async with asyncio.timeout(HANG_S), stdio(CHILD, str(tmp_path), env, era) as client:
        ran = await client.call_tool("execute_agent", {"agent_name": "claude", "prompt": "say hello"})
        assert ran.structured_content is not None
        assert (ran.is_error, ran.structured_content["content"]) == (False, "hello")
        assert json.loads(ran.content[0].text) == ran.structured_content  # type: ignore[union-attr]
        made = await client.call_tool("session_create", {})
        assert made.structured_content is not None
    listed = subprocess.run(
        [sys.executable, "-m", "bowerbird", "sessions", "--json"],
        cwd=tmp_path, env=env, capture_output=True, check=True,
    )  # fmt: skip
    assert made.structured_content["thread_id"] in listed.stdout.decode()


def test_only_protocol_is_on_standard_output_and_the_end_of_input_stops_calls(served: Served) -> None:
    """PT-8: what a library, or a program it starts, prints is on standard error; a call that runs is ended.

    The 2 s are not held here, for a slow machine may not make them; that it ends by itself is.
    """
    served.begin().ask(2, "execute_agent", agent_name="claude", prompt="print something")
    assert served.next()["result"]["structuredContent"]["status"] == "success"
    served.ask(3, "execute_agent", agent_name="claude", prompt="wait")
    served.ask(4, "list_agents")
    assert served.next()["id"] == 4
    code, out, noise = served.end()
    ended = [json.loads(line) for line in out.splitlines()]
    assert (code, [(one["id"], one["error"]["code"]) for one in ended]) == (0, [(3, -32000)])
    assert b"print something" in noise
    assert b"a child says so" in noise


def test_what_was_asked_before_the_end_of_input_is_answered(served: Served) -> None:
    """PT-8: a whole conversation through a pipe."""
    served.send(INITIALIZE)
    served.send(READY)
    served.ask(2, "list_agents")
    code, out, _ = served.end()
    assert code == 0
    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]


def test_a_signal_ends_it_though_its_input_stays_open(served: Served) -> None:
    """PT-8: a read that never returns keeps no process alive."""
    served.begin()
    served.process.terminate()
    assert served.process.wait(HANG_S) == 128 + signal.SIGTERM


def test_calls_run_beside_each_other(lasting: Served) -> None:
    """PT-16: a hundred answers, each to its own question, past one that waits."""
    lasting.ask(1000, "execute_agent", agent_name="claude", prompt="wait")
    for number in range(100):
        lasting.ask(number, "get_agent_memory", session_id=f"s{number}")
    answers = [lasting.next() for _ in range(100)]
    assert {one["id"]: one["result"]["structuredContent"]["message"] for one in answers} == {
        number: f"Session s{number} not found." for number in range(100)
    }
    cancel = {"requestId": 1000}
    lasting.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
    lasting.ask(5, "list_agents")
    assert lasting.next()["id"] == 5


@pytest.mark.parametrize(
    "line",
    [
        b"garbage", b'{"jsonrpc":"2.0","id":1,"meth', b"[]", b"\xff\xfe\x00", b"[" * 200_000, b"{}", b"null",
        b'"' + b"x" * 10_000_000 + b'"', b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    ],
    ids=["words", "truncated", "batch", "bytes", "nested", "empty", "null", "10 MB", "no id"],
)  # fmt: skip
def test_a_line_that_is_no_message_is_answered_and_nothing_else_happens(lasting: Served, line: bytes) -> None:
    """PT-16, acceptance 14."""
    lasting.send(line)
    assert lasting.next()["error"]["code"] in (-32700, -32600)
    lasting.ask(8, "list_agents")
    assert lasting.next()["result"]["structuredContent"]["count"] == 2


def test_half_a_character_loses_no_answer(lasting: Served) -> None:
    """PT-16: JSON can name half of a surrogate pair; its caller was told of a message without an id, and waited."""
    lasting.send(
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":'
        b'{"name":"session_status","arguments":{"thread_id":"a\\ud800"}}}'
    )
    answer = lasting.next()
    assert (answer["id"], answer["result"]["structuredContent"]["message"]) == (
        7,
        "Session a\ufffd not found.",
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(junk=st.binary(max_size=200).filter(lambda data: b"\n" not in data))
def test_no_bytes_end_it(lasting: Served, junk: bytes) -> None:
    """Acceptance 14: whatever comes, the next question has its answer."""
    lasting.send(junk)
    lasting.ask(9, "list_agents")
    while (answer := lasting.next()).get("id") != 9:
        assert answer["error"]["code"] in (-32700, -32600, -32602)
    assert answer["result"]["structuredContent"]["count"] == 2


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


@pytest.mark.parametrize("piece", [b"x\n", PING], ids=["garbage", "requests"])
def test_whoever_sends_and_never_reads_fills_no_memory_and_can_leave(served: Served, piece: bytes) -> None:
    """A megabyte of lines that are no message took 700 MB; each request was a task without a limit."""
    process = served.begin().process
    assert process.stdin is not None
    began, more, sent = memory_mb(process.pid), piece * (20_000 // len(piece)), 0
    os.set_blocking(process.stdin.fileno(), False)
    stopped = time.monotonic() + 2
    while sent < 1 << 20 and time.monotonic() < stopped:  # until nothing is taken for two seconds
        try:
            sent += os.write(process.stdin.fileno(), more)
            stopped = time.monotonic() + 2
        except BlockingIOError:
            time.sleep(0.01)
    assert memory_mb(process.pid) - began < 60
    process.stdin.close()
    process.stdin = None
    assert process.wait(HANG_S) == 0


def memory_mb(pid: int) -> int:
    """What it holds in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def test_more_requests_than_are_served_at_once_are_answered_too(served: Served) -> None:
    served.begin()
    ask = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "session_list", "arguments": {}}}
    lines = b"\n".join(json.dumps({**ask, "id": 10 + i}).encode() for i in range(1_500))
    sending = threading.Thread(target=served.send, args=(lines,))
    sending.start()
    answers = [served.next() for _ in range(1_500)]
    sending.join()
    assert {answer["id"] for answer in answers} == set(range(10, 1_510))
    refused = [answer for answer in answers if "error" in answer]
    assert all("requests are open" in answer["error"]["message"] for answer in refused)
    served.ask(5, "session_list")
    assert "result" in served.next()


def test_kill_9_in_a_call_leaves_the_records_whole(served: Served, tmp_path: Path) -> None:
    """What was kept before is there for the next process, which starts as usual."""
    served.begin().ask(2, "session_create")
    thread_id = served.next()["result"]["structuredContent"]["thread_id"]
    served.ask(3, "execute_agent", agent_name="claude", prompt="wait")
    served.ask(4, "list_agents")
    assert served.next()["id"] == 4
    served.process.kill()
    served.process.communicate()
    again = Served(tmp_path).begin()
    try:
        again.ask(2, "session_list")
        listed = again.next()["result"]["structuredContent"]["sessions"]
        assert [row["thread_id"] for row in listed] == [thread_id]
        assert again.end()[0] == 0
    finally:
        again.process.kill()
