"""What the loop knows of subagents: who asks for them, and the seam to whoever runs them.

Here: `Caller`, the calling run as its children see it, `ChildRun`, how a child's run differs from any
other, and the protocols. Not here: any implementation (`bowerbird.subagents`), the tools.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Mode, Policy
from bowerbird.agent.stop import StopSignal
from bowerbird.core.events import ApprovalAnswer, ApprovalRequest, SubagentEnd, SubagentStart
from bowerbird.core.usage import Usage
from bowerbird.models.budget import Budget, PriceOf
from bowerbird.tools.together.delegation import Subagents

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model
    from bowerbird.tools.processes.family import ProcessSetup
    from bowerbird.workspace import Branch


class Approver(Protocol):
    """Where a person can answer. A run without one denies what would ask."""

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer | None:
        """Return the answer to `request`, or None when nobody answered in time.

        The request's event was yielded, hence committed, before this is called.
        """
        ...


def free(_usage: Usage) -> float | None:
    """The price where money is not limited."""
    return 0.0


def untold(_event: SubagentStart | SubagentEnd) -> None:
    """Tell nobody: a program called, and has the result."""


async def nothing_earlier() -> None:
    """No call was started before."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The calling run at the moment of a call: what its children inherit, and whom they tell.

    Args:
        branch: of the run, bound to turn and call: children fork it, merges go into it.
        session, turn, call, agent: ids of the caller and its name.
        mode, policy: as they stand, approvals given meanwhile included.
        limits, spent: of the turn: children share what is left.
        stop: setting it stops the children too. approver: answers their questions.
        returns: after a kill -9 the same call is made again and finds its children.
        price: USD of a usage of the caller's model, asked where money is limited.
        emit: takes the events of the children's beginnings and ends.
    """

    branch: "Branch"
    session: str
    turn: str
    call: str
    agent: str = "agent"
    mode: Mode = "normal"
    policy: Policy = msgspec.field(default_factory=Policy)
    limits: Limits = msgspec.field(default_factory=Limits)
    spent: Usage = msgspec.field(default_factory=Usage)
    stop: StopSignal = msgspec.field(default_factory=StopSignal)
    approver: Approver | None = None
    returns: bool = True
    price: PriceOf = free
    emit: Callable[[SubagentStart | SubagentEnd], None] = untold
    earlier: Callable[[], Awaitable[None]] = nothing_earlier


class Delegate(Protocol):
    """Runs subagents for one session: what `TurnRun.delegate` is."""

    @property
    def offers(self) -> Sequence[str]:
        """Names of the tools that a run of this session is offered."""
        ...

    @property
    def guidance(self) -> str:
        """What the system prompt says of the types of subagents; "" for nothing."""
        ...

    def calls(self, caller: Caller) -> Subagents:
        """Return what one tool call uses."""
        ...


class LibraryDelegate(Delegate, Protocol):
    """What an `Agent` needs beyond that."""

    async def ended(self, turn: str) -> None:
        """Wait until every subagent of a turn that ends has stopped and is on record."""
        ...

    def branches(self, session: str) -> "Mapping[str, Branch]":
        """Return the branches of a session's subagents by handle."""
        ...


class ChildRun(msgspec.Struct, frozen=True, kw_only=True):
    """How a subagent's run differs from its agent's other runs.

    Args:
        session: its id. stop: set by its caller's, too.
        delegate: runs its own subagents; None = it has none.
        setup: how it runs processes, as its caller does.
        budget: what it shares with its caller, once its model is known. without: tools it is not offered.
    """

    session: str
    stop: StopSignal
    setup: "ProcessSetup"
    delegate: Delegate | None = None
    budget: "Callable[[Model], Budget] | None" = None
    without: frozenset[str] = frozenset()
