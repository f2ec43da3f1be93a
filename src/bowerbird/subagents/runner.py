"""The seam between subagents and whoever runs them: in this process, or as durable sessions.

Here: one job, how it ends, the protocol `ChildRunner`, what an end means for the record. Not here:
`in_process`, `bowerbird.sessions.subagents.runner`.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bowerbird.agent.delegates import Caller, Delegate
from bowerbird.agent.stop import StopSignal
from bowerbird.core.events import RunError
from bowerbird.core.usage import Usage
from bowerbird.subagents.checks import Check
from bowerbird.subagents.entries import Wanted
from bowerbird.subagents.records import Child
from bowerbird.subagents.roles import AgentType
from bowerbird.subagents.shared_budget import Purse

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

RunCheck = Callable[["Branch", str], Awaitable[Check]]
COMPLETED = frozenset(("completed", "plan_ready"))


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A subagent about to run, or to be resumed.

    Args:
        child: its record. fork: its branch. kind: its type. caller: whose it is.
        wanted: as asked for; its `tier` and `model` win over those of type and settings.
        stop: ends it. purse: what it shares. delegate: runs its own subagents, None = it has none.
        seconds: its longest run.
    """

    child: Child
    fork: "Branch"
    kind: AgentType
    wanted: Wanted
    caller: Caller
    stop: StopSignal
    purse: Purse
    delegate: Delegate | None
    seconds: float


class ChildEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a subagent's run ended; `stop` as in AG-34."""

    stop: str
    text: str = ""
    error: RunError | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    tool_count: int = 0


class ChildRunner(Protocol):
    """Runs subagents."""

    @property
    def lasting(self) -> bool:
        """Whether they outlive the process of their caller, which finds them again when it is resumed."""
        ...

    async def refusal(self, wanted: Wanted, kind: AgentType) -> str | None:
        """Return why it cannot be started (say an unknown model tier), None when it can."""
        ...

    async def lacking(self, provider: str) -> str | None:
        """Return why another vendor's agent cannot work on a fork here, None when it can."""
        ...

    async def fork(self, caller: Caller, names: list[str]) -> "list[Branch]":
        """Return forks of the caller's branch, all of the same frozen state."""
        ...

    async def open(self, child: Child) -> "Branch":
        """Return a subagent's fork."""
        ...

    async def run(self, job: Job) -> ChildEnd:
        """Run, or resume, a subagent until it ends; setting `job.stop` ends it within 100 ms.

        Raises:
            Exception: it could not be run; the message is told to its caller.
        """
        ...

    async def forget(self, child: Child) -> None:
        """Free a subagent's fork and what else is kept of it."""
        ...

    def checking(self, branch: "Branch") -> "AbstractAsyncContextManager[RunCheck]":
        """Give a function (fork, command) → `Check` that runs commands without network.

        Raises:
            SandboxUnavailable: no command can run on this host.
        """
        ...


def outcome(end: ChildEnd) -> dict[str, Any]:
    """Return the fields of the record that follow from an end. Pure.

    >>> outcome(ChildEnd(stop="completed", text="done"))["state"]
    'finished'
    """
    facts: dict[str, Any] = {"usage": end.usage, "tool_count": end.tool_count}
    if end.stop in COMPLETED:
        return {**facts, "state": "finished", "result": end.text, "error": None}
    if end.stop == "model_error" and end.error is not None:
        return {**facts, "state": "failed", "error": f"{end.error.type}: {end.error.message}"}
    why = end.error.message if end.error is not None else "the subagent was ended before it was done"
    partial = f"\nIts answer so far:\n{end.text}" if end.text else ""
    return {**facts, "state": "failed", "error": f"{end.stop}: {why}{partial}"}
