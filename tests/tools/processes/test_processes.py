"""TO-23, TO-25 … TO-29: the process tools as a model meets them, on real sandboxes."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.patience import patience
from support.sandboxes import Bench, bench_of

from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.tools import ReadTracker, ToolContext, ToolResult, Toolset
from bowerbird.tools.files.file_tools import file_tools
from bowerbird.tools.processes.family import processes_of
from bowerbird.tools.processes.process_tools import (
    PROCESS_TOOLS,
    ProcessSettings,
    process_tools,
    processes_unavailable,
    sandbox_line,
)


class Desk:
    def __init__(self, bench: Bench, settings: ProcessSettings | None = None) -> None:
        self.bench = bench
        self.tools = Toolset([*file_tools(), *process_tools(bench.host, settings)])
        self.reads = ReadTracker()
        self.cancel = asyncio.Event()
        self.said: list[str] = []
        self.calls = 0

    def context(self, **options: Any) -> ToolContext:
        self.calls += 1
        call = f"call_{self.calls}"
        return ToolContext(
            branch=self.bench.branch.bound("t_1", call), turn="t_1", call=call, reads=self.reads,
            cancel=self.cancel, progress=self.said.append, **options,
        )  # fmt: skip

    async def use(self, name: str, /, **arguments: Any) -> ToolResult:
        found = self.tools.resolve(name, arguments)
        assert found is not None
        return await found[0].call(found[1], self.context())


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with bench_of(tmp_path, {"a.txt": "one\n"}) as bench:
        yield Desk(bench)


async def test_bash_gives_the_stated_record_and_readable_text(desk: Desk) -> None:
    """TO-23."""
    done = await desk.use("bash", command="cat a.txt; pwd")
    assert done.text == f"one\n{desk.bench.root}" and not done.is_error
    assert done.data is not None
    assert set(done.data) == {"output", "exit_code", "truncated", "timed_out", "duration_ms", "tier"}
    assert (done.data["exit_code"], done.data["tier"]) == (0, "overlay")
    failed = await desk.use("bash", command="echo wrong >&2; exit 3")
    assert failed.text == "wrong\n[exit code 3]" and not failed.is_error
    assert (await desk.use("bash", command="true")).text == "(no output)"
    assert (await desk.use("bash", command="read x; echo got $x")).text == "got"


@pytest.mark.parametrize("alias", ["execute", "shell", "run_command"])
async def test_aliases_are_the_same_tool(desk: Desk, alias: str) -> None:
    assert desk.tools.canonical(alias) == "bash"
    assert (await desk.use(alias, command="echo hi")).text == "hi"


def test_classes_and_defaults_are_the_specified_ones(tmp_path: Path) -> None:
    tools = Toolset(process_tools(SandboxHost(tmp_path), ProcessSettings(bash_timeout_s=7)))
    assert tools.names == PROCESS_TOOLS
    effects = {t.name: (t.effect, t.recorded, t.process) for t in tools}
    assert effects["bash"] == effects["run_python"] == effects["background_run"] == ("branch", "branch", True)
    assert effects["check_background"][0] == "read" and effects["cancel_background"][0] == "branch"
    bash = tools.get("bash")
    assert bash is not None and bash.input_schema["properties"]["timeout"]["default"] == 7
    required = {t.name: t.input_schema["required"] for t in tools}
    assert required == {
        "bash": ["command"], "run_python": [], "background_run": ["command"], "check_background": [],
        "cancel_background": ["task_id"],
    }  # fmt: skip


def test_with_an_allow_list_the_ledger_counts_commands_as_effects_outside(tmp_path: Path) -> None:
    """TO-29: the permission class stays."""
    tools = Toolset(process_tools(SandboxHost(tmp_path), network="allowlist"))
    bash, check = tools.get("bash"), tools.get("check_background")
    assert bash is not None and check is not None
    assert (bash.effect, bash.ledger_effect) == ("branch", "external")
    assert check.ledger_effect == "read"


async def test_a_timeout_kills_the_tree_and_returns_what_was_printed(desk: Desk) -> None:
    """Acceptance 3."""
    started = time.monotonic()
    done = await desk.use("bash", command="echo first; setsid sleep 100 & sleep 100", timeout=0.5)
    assert time.monotonic() - started < patience(5)
    assert done.data is not None and done.data["timed_out"] and done.data["exit_code"] == 124
    assert done.text.startswith("first\n[timed out")
    assert (await desk.use("bash", command="grep -l sleep /proc/[0-9]*/comm")).text.startswith("(no output)")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
async def test_a_bad_timeout_runs_nothing_and_a_long_one_is_clamped_and_said(
    desk: Desk, timeout: float
) -> None:
    done = await desk.use("bash", command="echo ran > ran; echo ok", timeout=timeout)
    if timeout == float("inf"):
        assert "timeout lowered" in done.text and "sandbox.max_timeout" in done.text
    else:
        assert done.is_error and "timeout" in done.text
        assert await desk.bench.branch.stat("ran") is None


async def test_long_output_is_cut_once_with_head_and_tail_and_readable_as_a_whole(desk: Desk) -> None:
    done = await desk.use("bash", command="seq 1 100000")
    assert done.truncated and len(done.text) <= 50_000
    assert done.text.startswith("1\n2\n") and done.text.endswith("99999\n100000")
    assert done.text.count("bytes omitted") == 1
    path = done.text.split("the whole output is in ")[1].split(" ")[0]
    assert (await desk.use("read_file", path=path, offset=70_000, limit=1)).text.startswith("70000")
    found = await desk.use("grep", pattern="^5555$", path=path)
    assert f"{path.lstrip('/')}:5555: 5555" in found.text


async def test_colours_and_progress_bars_are_taken_out_for_the_model(desk: Desk) -> None:
    """SB-17."""
    done = await desk.use("bash", command=r"printf '\033[31mred\033[0m\n10%%\r90%%\rdone\n'")
    assert done.text == "red\ndone"
    assert done.data is not None and "\x1b[31m" in done.data["output"]


async def test_live_output_is_shown_as_progress(desk: Desk) -> None:
    await desk.use("bash", command="echo one; sleep 0.2; echo two")
    assert desk.said == ["one", "two"]


async def test_a_stop_kills_the_command_and_its_output_so_far_is_returned(desk: Desk) -> None:
    """TO-23, SB-19."""
    tool = desk.tools.get("bash")
    assert tool is not None
    command = "echo begun; echo x > kept; touch up; setsid sleep 100 & sleep 100"
    task = asyncio.create_task(tool.call({"command": command}, desk.context()))
    await desk.bench.shows("up")
    started = time.monotonic()
    desk.cancel.set()
    task.cancel()
    done = await task
    assert time.monotonic() - started < patience(2)
    assert done.is_error and done.text.startswith("begun\n[cancelled")
    assert await desk.bench.branch.read_bytes("kept") == b"x\n"


async def test_a_plain_cancel_leaves_nothing_running(desk: Desk) -> None:
    tool = desk.tools.get("bash")
    assert tool is not None
    task = asyncio.create_task(tool.call({"command": "touch up; sleep 100"}, desk.context()))
    await desk.bench.shows("up")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not desk.bench.sandbox.busy


async def test_destructive_forms_are_refused_with_a_reason(desk: Desk) -> None:
    """TO-28, acceptance 7."""
    for name in ("bash", "background_run"):
        refused = await desk.use(name, command="rm -rf /*")
        assert refused.is_error and refused.text == "refused: rm -rf /* would delete everything"
    assert (await desk.use("bash", command='echo "$(echo in)"; echo sudo')).text == "in\nsudo"
    assert desk.bench.sandbox.background.poll_all() == []


@pytest.mark.parametrize(
    "command", ["ls\nid", "ls & id", "ls $(id)", "ls | sh", "./ls", "id", "ls; id", "", "ls 'x"]
)
async def test_with_a_list_of_commands_nothing_else_runs(tmp_path: Path, command: str) -> None:
    """TO-27, SB-42, acceptance 7."""
    async with bench_of(tmp_path, {"ls": "#!/bin/sh\ntouch ran\n"}) as bench:
        await bench.branch.set_executable("ls", True)
        desk = Desk(bench, ProcessSettings(allowed_commands=("ls",)))
        for name in ("bash", "background_run"):
            refused = await desk.use(name, command=command)
            assert refused.is_error and refused.text.startswith("refused: ")
        assert await bench.branch.stat("ran") is None
        assert (await desk.use("bash", command="ls -d .")).text == "."
        assert (await desk.use("bash", command="ls > out")).data["exit_code"] == 2  # type: ignore[index]
        assert await bench.branch.stat("out") is None


async def test_what_a_command_wrote_is_read_before_it_is_written_over(desk: Desk) -> None:
    """TO-22: the user may have saved before the command did."""
    await desk.use("read_file", path="a.txt")
    await desk.use("bash", command="echo two >> a.txt")
    refused = await desk.use("write_file", path="a.txt", content="three\n")
    assert "you have not read" in refused.text
    await desk.use("read_file", path="a.txt")
    assert not (await desk.use("write_file", path="a.txt", content="three\n")).is_error
    assert (await desk.use("bash", command="cat a.txt")).text == "three"


async def test_run_python_runs_fresh_and_says_the_failing_line(desk: Desk) -> None:
    """TO-25."""
    failed = await desk.use("run_python", code="x = 1\nprint(x)\nx.y", stdin="")
    assert failed.data is not None and failed.data["line"] == 3 and failed.data["exit_code"] == 1
    assert "AttributeError" in failed.text and failed.text.endswith("[exit code 1]")
    await desk.use("write_file", path="s.py", content="import sys\nprint(sys.argv[1:], input())\n")
    done = await desk.use("run_python", path="s.py", args=["a"], stdin="typed\n")
    assert done.text == "['a'] typed"
    for arguments in ({}, {"code": "1", "path": "s.py"}):
        refused = await desk.use("run_python", **arguments)
        assert refused.is_error and "exactly one" in refused.text


async def test_background_tools_start_show_and_end(desk: Desk) -> None:
    """TO-26, DE-27, DE-28."""
    started = await desk.use("background_run", command="echo up; touch up; sleep 100")
    assert started.data is not None and list(started.data) == ["task_id"]
    task = started.data["task_id"]
    await desk.bench.shows("up")
    shown = await desk.use("check_background", task_id=task)
    assert shown.data is not None and shown.data["status"] == "running" and shown.text.endswith("up")
    every = await desk.use("check_background")
    assert every.data is not None and [t["task_id"] for t in every.data["tasks"]] == [task]
    ended = await desk.use("cancel_background", task_id=task)
    assert ended.data is not None and ended.data["status"] == "killed"
    for name in ("check_background", "cancel_background"):
        unknown = await desk.use(name, task_id="bg_none")
        assert unknown.is_error and task in unknown.text


async def test_without_a_tier_the_tools_are_absent_and_a_call_says_why(tmp_path: Path) -> None:
    async with bench_of(tmp_path, needs=None) as bench:
        host = SandboxHost(tmp_path / "data", SandboxSettings(tier="none"))
        found = await processes_of(host, ProcessSettings(), bench.branch)
        status = await host.status()
        reason = processes_unavailable(status)
        await host.close()
    assert found.tools == () and set(found.absent) == set(PROCESS_TOOLS)
    assert reason is not None and "sandbox.minimum" in reason
    tools = Toolset(found.tools, absent=found.absent)
    assert tools.why_absent("execute") == reason == tools.without("x").why_absent("bash")
    assert tools.why_absent("read_file") is None
    assert found.line == sandbox_line(status) and "no commands can run" in found.line


async def test_the_prompt_line_names_tier_and_network(desk: Desk) -> None:
    status = await desk.bench.host.status()
    assert "tier overlay" in sandbox_line(status) and "no network" in sandbox_line(status)
    assert "a.test, *.b.test" in sandbox_line(status, "allowlist", ("a.test", "*.b.test"))
