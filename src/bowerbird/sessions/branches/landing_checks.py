"""What the command of `landing.check` finds on branches, before somebody lands them (UI-27).

Here: one run at a time for each branch, the newest finding of each while this process lives.
Not here: running a command on a throw-away fork (`bowerbird.subagents.forking`), landing itself: a finding
advises, it bars nothing.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.subagents.checks import Check
    from bowerbird.subagents.runner import RunCheck
    from bowerbird.workspace import Branch

MOST_KEPT = 1_000
PARALLEL = 2  # a check may be a whole test suite: turns need the machine, too

Checking = Callable[["Branch"], AbstractAsyncContextManager["RunCheck"]]


class Finding(msgspec.Struct, frozen=True):
    """One check of a branch.

    Attributes:
        command: what was run, in the branch's sandbox without network.
        plan: name of the landing plan that it was run on; another one now means that something changed since.
        state: `unable` = the command could not run; `error` says why. `none` = nothing was checked yet.
        check: exit code, seconds and the end of the output, once it has ended.
    """

    command: str
    plan: str | None
    state: Literal["none", "running", "passed", "failed", "unable"] = "running"
    check: "Check | None" = None
    error: str | None = None

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        check = self.check
        return {
            "command": self.command,
            "state": self.state,
            "plan": self.plan,
            "exit_code": check.exit_code if check is not None else None,
            "seconds": check.seconds if check is not None else None,
            "output_tail": check.output_tail if check is not None else "",
            "error": self.error,
        }


async def _ended(begun: Finding, checking: Checking, branch: "Branch") -> Finding:
    try:
        async with checking(branch) as run:
            check = await run(branch, begun.command)
    except BowerbirdError as error:  # no sandbox here, a branch that is busy or gone
        return msgspec.structs.replace(begun, state="unable", error=str(error))
    return msgspec.structs.replace(begun, state="passed" if check.passed else "failed", check=check)


class LandingChecks:
    """The newest check of each branch; belongs to one event loop.

    Args:
        checking: gives what runs commands without network, such as `Children.checking`.
    """

    def __init__(self, checking: Checking) -> None:
        self._checking = checking
        self._newest: OrderedDict[str, Finding] = OrderedDict()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(PARALLEL)

    def newest(self, branch_id: str) -> Finding | None:
        """Return what is known of a branch, None when this process has not checked it."""
        return self._newest.get(branch_id)

    async def begin(self, branch: "Branch", command: str) -> Finding:
        """Start a check and return it running; the one that runs already, if one does.

        Raises:
            WorkspaceError: the branch has no workspace to land in.
        """
        plan = await to_thread(branch.plan_landing)
        known = self._newest.get(branch.id)
        if known is not None and branch.id in self._running:
            return known
        begun = Finding(command, plan.id)
        self._keep(branch.id, begun)
        task = asyncio.create_task(self._run(branch, begun), name=f"check of {branch.id}")
        self._running[branch.id] = task
        task.add_done_callback(lambda _: self._running.pop(branch.id, None))
        return begun

    async def ended(self, branch_id: str) -> Finding | None:
        """Return what is known of a branch once nothing runs on it any more; a check outlives who waits."""
        if (task := self._running.get(branch_id)) is not None:
            await asyncio.wait([task])
        return self.newest(branch_id)

    async def stop(self, branch_id: str) -> None:
        """End the check of a branch that is about to go."""
        task = self._running.get(branch_id)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._newest.pop(branch_id, None)

    async def aclose(self) -> None:
        """End what runs: its result would reach nobody."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, branch: "Branch", begun: Finding) -> None:
        found = msgspec.structs.replace(begun, state="unable", error="the check was ended before it was done")
        try:
            async with self._room:
                found = await _ended(begun, self._checking, branch)
        finally:
            self._keep(branch.id, found)

    def _keep(self, branch_id: str, finding: Finding) -> None:
        self._newest[branch_id] = finding
        self._newest.move_to_end(branch_id)
        while len(self._newest) > MOST_KEPT:
            self._newest.popitem(last=False)
