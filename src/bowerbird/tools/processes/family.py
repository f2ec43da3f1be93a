"""What one run or turn can do with processes: tools, or why there are none (SB-5, SB-6, TO-23).

Here: the choice that follows from the sandbox's status, a sandbox for the length of one run, and what a model
is told of background commands that ended.
Not here: the tools (`process_tools`), which settings the values come from.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.events import Injected
from bowerbird.core.messages import user_text
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.run.status import SandboxStatus
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.tools.processes.process_tools import (
    PROCESS_TOOLS,
    ProcessSettings,
    process_tools,
    processes_unavailable,
    sandbox_line,
)
from bowerbird.tools.processes.python_tools import PYTHON_TOOLS, cpython_tools, python_unavailable
from bowerbird.tools.tool import Tool

if TYPE_CHECKING:
    from bowerbird.sandbox.background import BackgroundRuns
    from bowerbird.sandbox.background_record import BackgroundRun
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.workspace import Branch


_RESULT_CHARS = 500


class BackgroundNotices:
    """Ends of a branch's background commands, for the loop of its agent.

    Args:
        host: whose sandbox they ran in. branch: the agent's.
    """

    def __init__(self, host: "SandboxHost", branch: "Branch") -> None:
        self._host = host
        self._branch = branch
        self._given: list[str] = []

    async def poll(self) -> Sequence[Injected]:
        """Return one message per end nobody was told of yet, oldest first."""
        runs = await self._runs()
        if runs is None:
            return []
        ended = runs.untold()
        self._given = [run.task_id for run in ended]
        return [Injected("background", user_text(end_text(run)), ids=(run.task_id,)) for run in ended]

    async def told(self) -> None:
        """Say that what `poll` gave last is in the record: it is not given again."""
        given, self._given = self._given, []
        runs = await self._runs() if given else None
        if runs is not None:
            await to_thread(runs.mark_told, given)

    async def _runs(self) -> "BackgroundRuns | None":
        if not await to_thread(self._host.had_background, self._branch):
            return None
        try:
            return (await self._host.sandbox(self._branch)).background
        except SandboxUnavailable:
            return None  # it is told with the first turn that can run commands again


def end_text(run: "BackgroundRun") -> str:
    """Return what a model is told of a command that ended."""
    code = "" if run.exit_code is None else f" exit_code={run.exit_code}"
    lost = (
        "\nThe server stopped while it ran; what it printed until then was kept."
        if run.state == "lost"
        else ""
    )
    result = run.output.strip()[-_RESULT_CHARS:] or "(no output)"
    where = f"\nWhole output: {run.spill}" if run.spill and len(run.output) > _RESULT_CHARS else ""
    return (
        f'<background_result task_id="{run.task_id}" status="{run.state}"{code}>\n'
        f"Command: {run.command[:80]}{lost}\n{result}{where}\n</background_result>"
    )


class Processes(msgspec.Struct, frozen=True):
    """What can be done with processes.

    Attributes:
        tools: that run commands. absent: why those that are missing are, by name.
        line: what the system prompt says of the sandbox. notices: ends of background commands.
        status: what the host gives; None when nobody asked.
    """

    tools: tuple[Tool, ...] = ()
    absent: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    line: str = ""
    notices: BackgroundNotices | None = None
    status: SandboxStatus | None = None


async def processes_of(
    host: SandboxHost,
    settings: ProcessSettings,
    branch: "Branch",
    allow: tuple[str, ...] | None = None,
    made: Callable[[str], Sequence[Tool]] | None = None,
) -> Processes:
    """Return what a turn on `branch` is offered.

    Args:
        allow: the allow-list that a person set for this session; None = the host's own.
        made: gives the tools for a network, made before for all turns of a process; None makes them.
    """
    status = await host.status()
    reason = processes_unavailable(status)
    if reason is not None:
        absent = dict.fromkeys(PROCESS_TOOLS, reason)
        without = python_unavailable()
        if without is not None:
            absent |= dict.fromkeys(PYTHON_TOOLS, f"{without}; {reason}")
        return Processes((), absent, sandbox_line(status), status=status)
    sandbox = await host.sandbox(branch)
    network = sandbox.network
    wanted = host.settings.allow if allow is None else allow
    if status.tier == "overlay" and network.allow != wanted:
        await network.change(await host.network_rules(wanted))
    tools = made(network.mode) if made is not None else tools_on(host, settings, network.mode)
    line = sandbox_line(status, network.mode, network.allow, sandbox.root if sandbox.tier == "copy" else None)
    missing = await to_thread(branch.processes().git_not_shown, asked=False)
    return Processes(
        tuple(tools),
        {},
        f"{line}\nGit: {missing}" if missing else line,
        BackgroundNotices(host, branch),
        status,
    )


def tools_on(host: SandboxHost, settings: ProcessSettings, network: str) -> tuple[Tool, ...]:
    """Return every tool that runs processes of `host`."""
    tools = process_tools(host, settings, network=network)
    return (*tools, *(cpython_tools(host) if python_unavailable() is not None else ()))


class ProcessSetup(msgspec.Struct, frozen=True):
    """Settings of processes for runs of a program: `sandbox` of isolation, `tools` of the tools.

    Attributes:
        status: what an earlier run found out about this host, to spare the probe.
    """

    sandbox: SandboxSettings = msgspec.field(default_factory=SandboxSettings)
    tools: ProcessSettings = msgspec.field(default_factory=ProcessSettings)
    status: SandboxStatus | None = None


@asynccontextmanager
async def processes_of_run(branch: "Branch", setup: ProcessSetup) -> AsyncGenerator[Processes, None]:
    """Give a run its sandbox, which ends with it: background commands, too."""
    host = SandboxHost(branch.processes().data_dir, setup.sandbox, status=setup.status, remember=True)
    try:
        yield await processes_of(host, setup.tools, branch)
    finally:
        await host.close()
