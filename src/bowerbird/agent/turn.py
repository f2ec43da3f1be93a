"""What one turn of the loop is given: values, and the few protocols its owner implements.

Here: `TurnRun` and the seams towards sessions, doors and delegation. Not here: what the loop does
with them (`turn_loop/loop`), and any implementation (`api`, `sessions`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from bowerbird.agent.context.history import History
from bowerbird.agent.delegates import Approver, Delegate
from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Mode, Policy
from bowerbird.agent.stop import StopSignal
from bowerbird.core.events import ApprovalAnswer, Injected, UserStep
from bowerbird.core.messages import Message
from bowerbird.core.requests import Purpose, Thinking
from bowerbird.core.usage import Usage
from bowerbird.models.budget import Budget, BudgetRefusal, Reservation

if TYPE_CHECKING:
    from bowerbird.models.protocol import Model
    from bowerbird.tools import ReadTracker, Tool, ToolResult, Toolset
    from bowerbird.workspace import Branch

__all__ = [
    "Approver", "Budget", "BudgetRefusal", "Changes", "Delegate", "Found", "History", "Inbox", "Limits",
    "Mode", "MoreTools", "Notices", "OutputSpec", "Policy", "Reservation", "Sampling", "StopSignal",
    "Storage", "Summaries", "Transcripts", "TurnRun", "Who",
]  # fmt: skip


class Inbox(Protocol):
    """What arrives while the turn runs: notices, mail, steer messages."""

    async def poll(self) -> Sequence[Injected | UserStep]:
        """Return what came since the last poll, oldest first; never waits for more."""
        ...


class Notices(Protocol):
    """What happened beside the conversation, say background commands that ended."""

    async def poll(self) -> Sequence[Injected]:
        """Return what nobody told the model yet, oldest first; never waits for more."""
        ...

    async def told(self) -> None:
        """Say that what `poll` gave last is stored: it is not given again."""
        ...


class Found(msgspec.Struct, frozen=True):
    """What servers of tools offer this turn.

    Attributes:
        tools: in the order they are offered, after the run's own; those whose name is taken are left out.
        absent: why a tool they have is not offered, by name; told when a model calls it all the same.
        warnings: what a person should see, say a server that is left out; one sentence each.
    """

    tools: "tuple[Tool, ...]" = ()
    absent: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()


class MoreTools(Protocol):
    """Tools that other programs offer, known only once these run."""

    async def gather(self) -> Found:
        """Return what is offered now; asked once, when the turn begins, and waits only so long."""
        ...


class Changes(Protocol):
    """Where a change of the store and its call's outcome become one transaction."""

    async def run(self, call: str, tool: str, change: "Callable[[Any], ToolResult]") -> "ToolResult":
        """Run `change` on the store's connection and record what it returns as the outcome of `call`.

        Raises:
            Exception: what `change` raises; nothing is stored then, and the call has no outcome yet.
        """
        ...


class Transcripts(Protocol):
    """Where the full history goes before a summary stands for it."""

    async def save(self, messages: Sequence[Message]) -> str:
        """Store `messages` as JSON lines; return the path that `read_file` takes."""
        ...


class Router(Protocol):
    """A model with tiers: what `switch_model` needs of it."""

    def switch(self, tier: str) -> "Model":
        """Return the model that answers from the next call on."""
        ...


class OutputSpec(msgspec.Struct, frozen=True):
    """A structured answer.

    Args:
        schema: JSON Schema that the answer satisfies.
        convert: makes the value the caller wants (a `data_model` instance); raises ValueError.
        system: system blocks of the call that only writes the answer; None = the run's own.
    """

    schema: dict[str, Any]
    convert: Callable[[Any], Any] | None = None
    system: tuple[str, ...] | None = None


class Who(msgspec.Struct, frozen=True, kw_only=True):
    """Whose turn it is.

    Args:
        session, turn: ids. agent: its name. purpose: of its model calls, in the books.
        configurable: `channel`, `chat_id`, `user_id` of the door, for tools.
        identity: who this agent is in its team; put before what is sent.
        awaiting: whether a plan of it waits for an answer, so that it may only read.
    """

    session: str = ""
    turn: str = ""
    agent: str = "agent"
    purpose: Purpose = "main"
    configurable: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    identity: str = ""
    awaiting: Callable[[], bool] = lambda: False


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are made: by provider's thinking, or by thinking aloud (`chain_of_thought`)."""

    temperature: float | None = None
    thinking: Thinking | None = None
    chain_of_thought: bool = False

    def at(self, temperature: float | None) -> "Sampling":
        """Return the same at another temperature; None = as it is."""
        return self if temperature is None else msgspec.structs.replace(self, temperature=temperature)


class Summaries(msgspec.Struct, frozen=True, kw_only=True):
    """How a history that grew too long is summarised.

    Args:
        model: writes them, at `temperature`; None = the run's own, and none.
        notes: open tasks, plan and the like by heading, for what must not be lost.
    """

    model: "Model | None" = None
    temperature: float | None = None
    notes: Callable[[], Awaitable[Mapping[str, str]]] | None = None


class Storage(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn puts what is too large for a message; None = nowhere.

    Args:
        spill: stores a long output (call id, text) and returns the path that reads it.
        store_blob: keeps bytes of a media type and returns their id `sha256:…`; None = no images.
        read_blob: returns the bytes of such an id; None = the model was opened with a reader.
        transcripts: keeps the full history before a summary stands for it.
    """

    spill: Callable[[str, str], Awaitable[str]] | None = None
    store_blob: Callable[[bytes, str], Awaitable[str]] | None = None
    read_blob: Callable[[str], bytes] | None = None
    transcripts: Transcripts | None = None


class TurnRun(msgspec.Struct, frozen=True, kw_only=True):
    """One turn: everything the loop needs, nothing it must look up.

    Args:
        model, tools, branch: who answers, what may be called, what the calls act on.
        opening: gives what the model is told after the first message of a conversation, "" for nothing.
        full: whether all of `tools` are offered, or what `tools.names.offered_by_default` leaves of them.
        more_tools: joins `tools` when the turn begins and stays as it is until it ends.
        system: system blocks, built anew per turn (`prompt.build_system`); the loop adds the last
            one, which names the running model.
        history: what was said before. If it ends with calls without results, exactly these run
            first: step mode and resume after a crash are the same path.
        history_turns: how many turns before this one a session sends, None for all.
        new: messages that begin the turn; yielded as `UserStep`s. Empty when a turn is resumed.
        used: what earlier attempts of this turn used; its `model_calls` count as iterations.
        answers: decisions already journalled, by call id: those calls do not ask again.
        approver, notices, inbox, budget, delegate, changes: see the protocols; None = not there.
        stop: set it to end the run; see `StopSignal`.
        router, tier: for models with tiers; the tier active when the run begins.
        compact: summarise before the first call; the text is the focus, "" for none (a user's wish).
        switched: gives what people switched in the session since it was asked last: `enable_approval`,
            `enable_plan_mode`, `auto_approve`.
        one_step: after the pending calls one model call, and its calls are left pending.
        sampling, summaries, storage, who: see these.
        dated: the model is told the day of each message of a user.
        reads: what the agent knows of files from earlier turns; None = nothing.
    """

    model: "Model"
    tools: "Toolset"
    more_tools: MoreTools | None = None
    branch: "Branch | None" = None
    system: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    history: History = msgspec.field(default_factory=History)
    history_turns: int | None = None
    new: tuple[Message, ...] = ()
    limits: Limits = msgspec.field(default_factory=Limits)
    policy: Policy = msgspec.field(default_factory=Policy)
    mode: Mode = "normal"
    used: Usage = msgspec.field(default_factory=Usage)
    answers: Mapping[str, ApprovalAnswer] = msgspec.field(default_factory=dict[str, ApprovalAnswer])
    approver: Approver | None = None
    notices: Notices | None = None
    inbox: Inbox | None = None
    budget: Budget | None = None
    delegate: Delegate | None = None
    changes: Changes | None = None
    stop: StopSignal = msgspec.field(default_factory=StopSignal)
    output: OutputSpec | None = None
    router: Router | None = None
    tier: str = ""
    compact: str | None = None
    switched: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    one_step: bool = False
    dated: bool = False
    full: bool = True
    opening: Callable[[], Awaitable[str]] | None = None
    reads: "ReadTracker | None" = None
    sampling: Sampling = msgspec.field(default_factory=Sampling)
    summaries: Summaries = msgspec.field(default_factory=Summaries)
    storage: Storage = msgspec.field(default_factory=Storage)
    who: Who = msgspec.field(default_factory=Who)
