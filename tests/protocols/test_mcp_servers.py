"""Starting, losing and ending MCP servers (PT-18, PT-19, PT-24; acceptance 7 of the protocols chapter)."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.mcp_servers import http_server, is_running, noted, raw_spec, sdk_server, until
from support.patience import HANG_S, patience

from bowerbird.core.errors import ConfigError
from bowerbird.protocols.mcp_client import ServerSpec
from bowerbird.protocols.mcp_client.child import RING_BYTES, Ring
from bowerbird.tools.context import ToolContext


def missing(name: str = "gone") -> ServerSpec:
    return ServerSpec(name=name, transport="stdio", command="no-such-program-here")


async def test_nothing_is_started_before_the_first_turn(connect: Any, tmp_path: Path) -> None:
    """PT-18."""
    notes = tmp_path / "notes"
    client = await connect(raw_spec(notes))
    assert client.known() == () and not notes.exists()
    found = await client.gather()
    assert len(noted(notes, "started")) == 1 and client.known() == found.tools
    again = await client.gather()
    assert len(noted(notes, "started")) == 1 and again.tools == found.tools


async def test_tools_are_offered_sorted_under_the_name_of_their_server(connect: Any, tmp_path: Path) -> None:
    """PT-19; what a provider would refuse is left out with a warning that names it."""
    found = await (await connect(raw_spec(tmp_path / "notes"))).gather()
    names = [tool.name for tool in found.tools]
    assert names == sorted(names) and "mcp__raw__echo" in names
    assert {"mcp__raw__odd", "mcp__raw__far"}.isdisjoint(names)
    assert [w for w in found.warnings if "a b" in w] and [
        w for w in found.warnings if "another document" in w
    ]


async def test_settings_choose_among_the_tools(connect: Any, tmp_path: Path) -> None:
    """PT-17: `tools.allow`, `tools.deny`; a denied one is told about when it is called (PT-20)."""
    spec = raw_spec(
        tmp_path / "notes", allow=("echo", "peek", "put"), deny=("peek",), approval={"put": "deny"}
    )
    found = await (await connect(spec)).gather()
    assert [tool.name for tool in found.tools] == ["mcp__raw__echo"]
    assert found.absent == {"mcp__raw__put": "denied by mcp_servers.raw.approval"}


async def test_a_server_that_hangs_delays_the_first_turn_only_and_no_other_server(
    connect: Any, tmp_path: Path
) -> None:
    """PT-18, acceptance 7: at most its start timeout, then nothing; one warning names it."""
    hung = raw_spec(tmp_path / "hung", "hang", name="hung", start_timeout_s=1.5)
    client = await connect(hung, raw_spec(tmp_path / "good", name="good"), missing())
    began = time.monotonic()
    first = await client.gather()
    waited = time.monotonic() - began
    began = time.monotonic()
    second = await client.gather()
    assert time.monotonic() - began < waited and waited > 1.4
    for found in (first, second):
        assert {tool.name.split("__")[1] for tool in found.tools} == {"good"}
        warned = [w for w in found.warnings if "left out of this turn" in w]
        assert len(warned) == 2 and "did not start within 1.5 s" in warned[0]
        assert "cannot run no-such-program-here" in warned[1]


async def test_a_failed_server_is_tried_again_in_the_background(connect: Any, tmp_path: Path) -> None:
    """PT-18: after 1 s, then ever later; a later turn has its tools."""
    notes = tmp_path / "notes"
    client = await connect(raw_spec(notes, "hang-once", start_timeout_s=patience(1)))
    assert (await client.gather()).tools == ()
    async with asyncio.timeout(HANG_S):
        while not (found := await client.gather()).tools:
            await asyncio.sleep(0.05)
    assert len(noted(notes, "started")) == 2 and not [w for w in found.warnings if "left out of this" in w]


async def test_a_cancelled_turn_does_not_end_the_start_that_others_wait_for(
    connect: Any, tmp_path: Path
) -> None:
    client = await connect(raw_spec(tmp_path / "notes"))
    hasty, patient = asyncio.create_task(client.gather()), asyncio.create_task(client.gather())
    await asyncio.sleep(0)
    hasty.cancel()
    await asyncio.wait({hasty})
    assert (await patient).tools and len(noted(tmp_path / "notes", "started")) == 1


async def test_a_changed_list_counts_from_the_next_turn(connect: Any, tmp_path: Path) -> None:
    """PT-19, TO-52, by the notification of the older protocol."""
    client = await connect(raw_spec(tmp_path / "notes"))
    first = await client.gather()
    grow = next(tool for tool in first.tools if tool.name == "mcp__raw__grow")
    await grow.call({}, ToolContext())
    assert "mcp__raw__grown" not in [tool.name for tool in first.tools]
    assert "mcp__raw__grown" in [tool.name for tool in (await client.gather()).tools]


async def test_a_changed_list_is_heard_over_the_subscription_of_2026(connect: Any) -> None:
    """PT-19."""
    with http_server(sdk_server()) as url:
        client = await connect(ServerSpec(name="sdk", transport="streamable_http", url=url))
        grow = next(tool for tool in (await client.gather()).tools if tool.name == "mcp__sdk__grow")
        async with asyncio.timeout(HANG_S):
            while "mcp__sdk__grown" not in [tool.name for tool in (await client.gather()).tools]:
                await grow.call({}, ToolContext())  # again, until the subscription is open
                await asyncio.sleep(0.05)


async def test_noise_on_stdout_and_a_flood_on_stderr_disturb_nothing(connect: Any, tmp_path: Path) -> None:
    """PT-24, acceptance 7."""
    client = await connect(raw_spec(tmp_path / "notes", "noise", "flood"))
    echo = next(tool for tool in (await client.gather()).tools if tool.name == "mcp__raw__echo")
    for number in range(20):
        assert f"\n{number}\n" in (await echo.call({"text": str(number)}, ToolContext())).text
    assert len((await client.server("raw")).ring.text) <= RING_BYTES


def test_the_ring_keeps_what_was_said_last() -> None:
    ring = Ring(10)
    ring.add(b"0123456789")
    ring.add(b"ab\ncd\n\n")
    assert ring.text == "789ab\ncd\n\n"[-10:] and ring.last_line == "cd"


async def test_a_stubborn_server_and_all_it_started_are_ended(connect: Any, tmp_path: Path) -> None:
    """PT-24, acceptance 7: stdin, SIGTERM, SIGKILL, each with its time; a grandchild that left the group, too."""
    notes = tmp_path / "notes"
    client = await connect(raw_spec(notes, "stubborn", "family"))
    await client.gather()
    began = time.monotonic()
    await client.aclose()
    assert time.monotonic() - began > 3.9
    assert noted(notes, "ignored") == ["SIGTERM"] and noted(notes, "ended") == ["stdin"]
    until(lambda: not any(map(is_running, pids(notes))))


async def test_a_quiet_server_ends_with_its_stdin_and_takes_its_family_along(
    connect: Any, tmp_path: Path
) -> None:
    """PT-24."""
    notes = tmp_path / "notes"
    client = await connect(raw_spec(notes, "family"))
    await client.gather()
    await client.aclose()
    assert noted(notes, "ended") == ["stdin"]
    until(lambda: not any(map(is_running, pids(notes))))


def pids(notes: Path) -> list[int]:
    return [*noted(notes, "pid"), *noted(notes, "grandchild")]


HOLDER = """
import asyncio, sys
from pathlib import Path
from support.mcp_servers import raw_spec
from bowerbird.protocols.mcp_client import McpClient

async def main():
    await McpClient([raw_spec(Path(sys.argv[1]), "stubborn", "family")]).gather()
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_after_kill_9_of_bowerbird_no_process_is_left(tmp_path: Path) -> None:
    """PT-24: not the server that ignores everything, not its double-forked child."""
    notes = tmp_path / "notes"
    tests = Path(__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent / 'src'}"}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(notes)], stdout=subprocess.PIPE, env=env, text=True
    )
    assert holder.stdout is not None
    with holder.stdout:
        assert holder.stdout.readline() == "ready\n"
        assert len(set(pids(notes))) == 2 and all(map(is_running, pids(notes)))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    until(lambda: not any(map(is_running, pids(notes))))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        pytest.param({"name": "a b"}, "mcp_servers.a b", id="name"),
        pytest.param({"name": "x" * 41}, "at most 40", id="long-name"),
        pytest.param({"command": ""}, "mcp_servers.x.command", id="no-command"),
        pytest.param({"url": "http://127.0.0.1/mcp"}, "mcp_servers.x.command", id="both"),
        pytest.param({"transport": "sse"}, "mcp_servers.x.url", id="no-url"),
    ],
)
def test_a_wrong_server_is_refused_naming_it_and_the_key(wrong: dict[str, Any], named: str) -> None:
    """PT-17."""
    with pytest.raises(ConfigError, match=named):
        ServerSpec(**{"name": "x", "transport": "stdio", "command": "x", **wrong})
