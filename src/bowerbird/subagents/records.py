"""The record of a subagent, and where records are kept (DE-4).

Here: `Child`, the protocol `Records`, records in memory for programs. Not here: the database's
(`bowerbird.sessions.subagents.runner`), what changes a record.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from bowerbird.core.usage import Usage
from bowerbird.subagents.checks import Check

State = Literal["running", "finished", "failed", "merged", "discarded"]
SELF = "self"
"""The name of Bowerbird itself beside those of other vendors' agents."""
OPEN: frozenset[State] = frozenset(("running", "finished", "failed"))


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """A tournament that a door began, as its attempts' records keep it: it goes on after a restart.

    Attributes:
        task, attempts, checks, models, agents, merge: as asked for.
        result: how it ended, or `{"error"}`; on the first attempt's record, None while it runs.
    """

    task: str
    attempts: int
    checks: tuple[str, ...]
    models: tuple[str, ...] = ()
    merge: str = "none"
    agents: tuple[str, ...] = ()
    result: dict[str, Any] | None = None


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """A subagent: an agent with one task on its own fork.

    Attributes:
        parent: session of the caller. number: counted up per caller. session: its own.
        root: the session whose caps it counts against. root_turn: that session's turn.
        turn, call, index: the caller's turn and call that made it, and its place in that call.
        name: `{parent}_sub{number}`. model: asked for, "" for the usual one.
        depth: 1 for the child of a session that is nobody's.
        tool_count, elapsed: tools it ran, seconds it took.
        checks, baseline: what a tournament's checks found on its fork and in the starting snapshot.
        contest: the tournament it is an attempt of, if no tool call waits for that.
        provider: another vendor's agent that does the task; "" = Bowerbird.
    """

    parent: str
    number: int
    session: str
    root: str
    root_turn: str
    turn: str
    call: str
    index: int
    name: str
    parent_branch: str
    fork: str
    snapshot: str
    task: str
    agent_type: str
    depth: int
    created: str
    model: str = ""
    state: State = "running"
    result: str | None = None
    error: str | None = None
    usage: Usage = msgspec.field(default_factory=Usage)
    ended: str | None = None
    tool_count: int = 0
    elapsed: float = 0.0
    checks: tuple[Check, ...] | None = None
    baseline: tuple[Check, ...] | None = None
    contest: Contest | None = None
    provider: str = ""

    @property
    def handle(self) -> str:
        """The name that its caller knows it by."""
        return handle_of(self.number)

    def record(self) -> dict[str, Any]:
        """Return the record as people and programs see it."""
        return {
            "handle": self.handle,
            "session": self.session,
            "parent_branch": self.parent_branch,
            "fork": self.fork,
            "snapshot": self.snapshot,
            "task": self.task,
            "agent_type": self.agent_type,
            "model": self.model,
            "state": self.state,
            "result": self.result,
            "error": self.error,
            "usage": msgspec.to_builtins(self.usage),
            "depth": self.depth,
            "created": self.created,
            "ended": self.ended,
            "agent": self.provider or SELF,
        }


def handle_of(number: int) -> str:
    """Return the handle of a caller's `number`-th subagent.

    >>> handle_of(0)
    'subagent_0'
    """
    return f"subagent_{number}"


class Records(Protocol):
    """Where the records of a tree of sessions are; each call is one transaction."""

    async def of(self, session: str) -> Sequence[Child]:
        """Return the subagents of a session, oldest first, discarded ones too."""
        ...

    async def next_number(self, session: str) -> int:
        """Return a number that no subagent of this session ever had."""
        ...

    async def open_count(self, root: str) -> int:
        """Return how many subagents below `root` are neither merged nor discarded."""
        ...

    async def turn_count(self, root: str, root_turn: str) -> int:
        """Return how many subagents a turn of `root` has made, its subagents' own included."""
        ...

    async def add(self, children: Sequence[Child]) -> None:
        """Store new records, all or none."""
        ...

    async def put(self, child: Child) -> None:
        """Replace a record."""
        ...


class MemoryRecords:
    """Records of one program; they end with it."""

    def __init__(self) -> None:
        self._children: dict[tuple[str, int], Child] = {}

    def now(self, session: str) -> list[Child]:
        """Return `of` without waiting."""
        return [child for child in self._children.values() if child.parent == session]

    async def of(self, session: str) -> Sequence[Child]:
        """See `Records`."""
        return self.now(session)

    async def next_number(self, session: str) -> int:
        """See `Records`."""
        return len(self.now(session))

    async def open_count(self, root: str) -> int:
        """See `Records`."""
        return sum(child.root == root and child.state in OPEN for child in self._children.values())

    async def turn_count(self, root: str, root_turn: str) -> int:
        """See `Records`."""
        found = self._children.values()
        return sum(child.root == root and child.root_turn == root_turn for child in found)

    async def add(self, children: Sequence[Child]) -> None:
        """See `Records`."""
        self._children.update({(child.parent, child.number): child for child in children})

    async def put(self, child: Child) -> None:
        """See `Records`."""
        self._children[child.parent, child.number] = child
