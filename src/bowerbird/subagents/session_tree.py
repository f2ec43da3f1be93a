"""What all subagents below one session share, and running one of them (DE-16 … DE-18).

Here: slots, purses, who runs; a subagent from its start to its record. Not here: which are started and
what their callers are told (`calls`), how a run is made (`runner.ChildRunner`).
"""

import asyncio
import time
from collections.abc import Sequence

import msgspec

from bowerbird.agent.delegates import Caller
from bowerbird.agent.stop import Stopped
from bowerbird.core.events import RunError, SubagentEnd, SubagentStart
from bowerbird.core.timestamps import now_iso
from bowerbird.subagents.checks import TEST_GLOBS
from bowerbird.subagents.entries import Caps
from bowerbird.subagents.records import Child, Records
from bowerbird.subagents.roles import AgentType, agent_types
from bowerbird.subagents.runner import ChildEnd, ChildRunner, Job, outcome
from bowerbird.subagents.shared_budget import Purse
from bowerbird.subagents.slots import Slot, Slots

SUMMARY_CHARS = 2_000
_MOST_PURSES = 8
_MOST_GROUPS = (
    64  # of sessions whose subagents do not run; each comes back as it was, but for turns long over
)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What settings say of subagents.

    Args:
        max_depth: how deep they may nest. types: custom ones. checks: of tournaments.
        test_globs: files that checks read.
    """

    max_depth: int = 1
    caps: Caps = msgspec.field(default_factory=Caps)
    types: tuple[AgentType, ...] = ()
    checks: tuple[str, ...] = ()
    test_globs: Sequence[str] = TEST_GLOBS


class Running(msgspec.Struct, frozen=True):
    """A subagent that runs in this process."""

    job: Job
    task: "asyncio.Task[Child]"


class Group:
    """What one root session and everything below it share; belongs to one event loop."""

    def __init__(self, parallel: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.slots = Slots(parallel)
        self.admission = asyncio.Lock()
        self._purses: dict[str, Purse] = {}

    def purse(self, caller: Caller) -> Purse:
        """Return the purse of the caller's turn; `caller` is the root session's own run."""
        if caller.turn not in self._purses:
            while len(self._purses) >= _MOST_PURSES:  # of turns long over
                del self._purses[next(iter(self._purses))]
            self._purses[caller.turn] = Purse(caller.limits, caller.spent.subagents)
        purse = self._purses[caller.turn]
        purse.note(caller.spent)
        return purse


class Tree:
    """Shared by a session's delegation and those of everything below it."""

    def __init__(self, runner: ChildRunner, records: Records, rules: Rules) -> None:
        self.runner = runner
        self.records = records
        self.rules = rules
        self.types = agent_types(rules.types)
        self.running: dict[str, Running] = {}
        self._groups: dict[str, Group] = {}
        self._slot_of: dict[str, Slot] = {}

    def use(self, rules: Rules) -> None:
        """Follow other rules from now on; how many run at once stays what a session began with."""
        self.rules, self.types = rules, agent_types(rules.types)

    def group(self, root: str) -> Group:
        """Return what the sessions below `root` share; a program's next event loop begins anew."""
        found = self._groups.pop(root, None)
        if found is None or found.loop is not asyncio.get_running_loop():
            found = Group(self.rules.caps.parallel)
            self._forget_idle()
        self._groups[root] = found  # the last of them: the one used last
        return found

    def _forget_idle(self) -> None:
        """Make room for one more: a server meets new sessions for as long as it lives."""
        if len(self._groups) < _MOST_GROUPS:
            return
        busy = {running.job.child.root for running in self.running.values()}
        for root, group in list(self._groups.items()):
            if root not in busy and not group.admission.locked():
                del self._groups[root]
                return

    def slot(self, session: str) -> Slot | None:
        """Return the slot of a subagent that runs, None for a session that needs none."""
        return self._slot_of.get(session)

    def start(self, job: Job) -> Running:
        """Start a subagent; its task ends with its record, whatever happens to its caller."""
        found = self.running.get(job.child.session)
        if found is not None:
            return found
        task = asyncio.create_task(self._run(job), name=f"subagent {job.child.session}")
        running = self.running[job.child.session] = Running(job, task)
        task.add_done_callback(lambda _task: self.running.pop(job.child.session, None))
        return running

    async def stop(self, session: str) -> None:
        """Stop a subagent, if it runs, and wait until its record says so."""
        found = self.running.get(session)
        if found is not None:
            found.job.stop.set("cancelled")
            await asyncio.wait([found.task])

    async def quiet(self, root_turn: str) -> None:
        """Wait until no subagent of a turn runs."""
        while mine := [r.task for r in self.running.values() if r.job.child.root_turn == root_turn]:
            await asyncio.wait(mine)

    async def _run(self, job: Job) -> Child:
        caller, child, started = job.caller, job.child, None
        try:
            async with self.group(child.root).slots.held(job.stop) as slot:
                self._slot_of[child.session] = slot
                started = time.monotonic()
                caller.emit(_start(child))
                end = await self._end(job)
        except Stopped as stopped:
            end = ChildEnd(stop=stopped.reason)
        finally:
            self._slot_of.pop(child.session, None)
        elapsed = 0.0 if started is None else round(time.monotonic() - started, 3)
        done = msgspec.structs.replace(
            child, **outcome(end), elapsed=child.elapsed + elapsed, ended=now_iso()
        )
        await self.records.put(done)
        if started is not None:
            caller.emit(_end(done))
        return done

    async def _end(self, job: Job) -> ChildEnd:
        try:
            return await self.runner.run(job)
        except Exception as error:  # noqa: BLE001 - a failure is its caller's message, and its siblings go on
            return ChildEnd(stop="model_error", error=RunError(type(error).__name__, str(error)))


def _start(child: Child) -> SubagentStart:
    kind = child.provider or child.agent_type
    return SubagentStart(child.session, child.task, kind, child.handle, child.parent)


def _end(child: Child) -> SubagentEnd:
    return SubagentEnd(
        subagent_id=child.session,
        summary=(child.result if child.result is not None else child.error or "")[:SUMMARY_CHARS],
        agent_type=child.provider or child.agent_type,
        usage=child.usage,
        handle=child.handle,
        parent_id=child.parent,
        status=child.state,
        tool_count=child.tool_count,
        elapsed=child.elapsed,
    )
