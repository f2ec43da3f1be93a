"""A session's messages as the loop knows them, and what of them is sent to a model.

Here: the frozen history, the fold of step events into it (used by the loop and by whoever reads
a journal), orphaned calls (AG-47). Not here: which results are shortened and how summaries are
made (`compaction`), the journal's record form, any I/O.

Tool results are one user message directly after the assistant message that asked for them, in
call order, with an id derived from it: so a journal that holds only outcomes gives the same
messages as the run that wrote it.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import cast

import msgspec

from bowerbird.agent.context.sending import EFFECT_UNKNOWN, NOT_EXECUTED, Sending, closed, results_id
from bowerbird.core.events import (
    AssistantStep,
    Compaction,
    Injected,
    RunEvent,
    ToolIntent,
    ToolOutcome,
    UserStep,
)

__all__ = [
    "EFFECT_UNKNOWN", "NOT_EXECUTED", "PARTIAL", "History", "HistoryBuilder", "closed_calls", "result_block",
    "results_id",
]  # fmt: skip

from bowerbird.core.growing import Growing, Names
from bowerbird.core.messages import ImageBlock, Message, TextBlock, ToolResultBlock, ToolUseBlock

PARTIAL = "partial"  # stop reason of an assistant record that was cut by a stop or a failure (MO-32)


@dataclass(frozen=True, slots=True)
class History:
    """Everything said so far; compactions only say what is sent in place of what.

    Args:
        messages: in order; journal truth, never shortened.
        compactions: in order of their making.
        started: ids of calls whose tool was started (their intent is journalled).
        unsent: ids of messages that are shown but not sent, say the partial answer of a failed
            attempt that is run again.
        injected: ids of user messages that the runtime made; the user did not say these.
        last_context: input tokens of the newest model call since the last compaction, 0 = unknown.
        room: characters of what is sent before old results are replaced; see `Sending`.
        sending: what is sent of its beginning, worked out when it was built; never changed from then on.
    """

    messages: Sequence[Message] = ()
    compactions: tuple[Compaction, ...] = ()
    started: AbstractSet[str] = frozenset()
    unsent: frozenset[str] = frozenset()
    injected: AbstractSet[str] = frozenset()
    last_context: int = 0
    room: int | None = None
    sending: Sending | None = field(default=None, compare=False, repr=False)

    def recent(self, turns: int | None) -> "History":
        """Return the turn that it ends with and at most so many turns before it; None = all."""
        if turns is None:
            return self
        starts = [at for at, message in enumerate(self.messages) if self._is_asked(message)]
        if len(starts) <= turns + 1:
            return self
        kept = tuple(self.messages[starts[-1 - turns] :])
        ids = {message.id for message in kept}
        summed = tuple(made for made in self.compactions if made.from_id in ids and made.to_id in ids)
        return replace(self, messages=kept, compactions=summed, last_context=0, sending=None)

    def _is_asked(self, message: Message) -> bool:
        has_results = any(isinstance(block, ToolResultBlock) for block in message.content)
        return message.role == "user" and message.id not in self.injected and not has_results

    @classmethod
    def of(cls, events: Iterable[RunEvent], unsent: Iterable[str] = (), room: int | None = None) -> "History":
        """Return the history that these step events make; live events are passed over."""
        builder = HistoryBuilder(cls(unsent=frozenset(unsent), room=room))
        for event in events:
            builder.add(event)
        return builder.build()

    def within(self, room: int | None) -> "History":
        """Return the history with another room for what is sent of it."""
        known = self.sending
        if room == self.room:
            return self
        return replace(self, room=room, sending=None if known is None else known.within(room))

    @property
    def pending_calls(self) -> tuple[ToolUseBlock, ...]:
        """Calls of the last assistant message that have no result yet, if nothing was said since."""
        return _pending(self.messages)


@dataclass(slots=True)
class HistoryBuilder:
    """The history of a run while it grows; owned by one task."""

    base: History = field(default_factory=History)
    messages: Growing[Message] = field(init=False)
    compactions: list[Compaction] = field(init=False)
    started: Names = field(init=False)
    injected: Names = field(init=False)
    last_context: int = field(init=False)
    unsent: frozenset[str] = field(init=False)
    _sending: Sending | None = field(init=False)
    _is_shared: bool = True  # a history holds it too: copied before it grows
    _built: History | None = None

    def __post_init__(self) -> None:
        self.messages = Growing.of(self.base.messages)
        self.compactions = list(self.base.compactions)
        self.started = Names.of(self.base.started)
        self.injected = Names.of(self.base.injected)
        self.last_context = self.base.last_context
        self.unsent = self.base.unsent
        self._sending = self.base.sending

    def add(self, event: RunEvent) -> None:
        """Fold one event in; events that are no part of the dialogue change nothing."""
        self._built = None
        match event:
            case UserStep():
                self.messages = self.messages.plus((_with_header(event),))
            case Injected():
                self.messages = self.messages.plus((event.message,))
                self.injected = self.injected.plus((event.message.id,))
            case AssistantStep():
                if event.message.content:
                    self.messages = self.messages.plus((event.message,))
                self.last_context = event.usage.context_tokens or self.last_context
            case ToolIntent():
                self.started = self.started.plus((event.call,))
            case ToolOutcome():
                self._add_outcome(event)
            case Compaction():
                self.compactions.append(event)
                self.last_context = 0
            case _:
                pass

    def build(self) -> History:
        """Return the history so far as a value."""
        if self._built is None or self._built.unsent != self.unsent:
            self._built = History(
                messages=self.messages,
                compactions=tuple(self.compactions),
                started=self.started,
                unsent=self.unsent,
                injected=self.injected,
                last_context=self.last_context,
                room=self.base.room,
                sending=self._sent_so_far(),
            )
        return self._built

    @property
    def calls(self) -> Names:
        """Ids of every call so far."""
        sending = self._grown()
        rest = self.messages[sending.taken :] if sending else self.messages
        known = sending.calls if sending else Names()
        return known.plus(use.id for message in rest for use in message.tool_uses)

    def grow(self) -> None:
        """Work out now what is sent of what was added, so that `build` after many events is no long work."""
        self._grown()

    def _sent_so_far(self) -> Sending | None:
        known = self._grown()
        self._is_shared = self._is_shared or known is not None
        return known

    def _grown(self) -> Sending | None:
        """Return the sent form of all but a batch whose results are still coming."""
        compactions = tuple(self.compactions)
        known, pending = self._sending, self.pending_calls
        if known is not None and known.unsent < self.unsent:
            added = self.unsent - known.unsent
            if not any(message.id in added for message in self.messages[: known.taken]):
                known = self._own(known)
                known.unsent = self.unsent  # nothing of it was taken yet
        if known is None or known.compactions != compactions or known.unsent != self.unsent:
            if pending:
                return None  # a summary may stand for a part of what is still coming
            summed = None
            if known is not None and known.unsent == self.unsent and self.messages:
                summed = known.summed_up(compactions, self.messages[0].id)
            self._sending = known = summed or Sending.of(
                self.messages, compactions, self.unsent, self.started, self.base.room
            )
            self._is_shared = False
        end = len(self.messages)
        while pending and not self.messages[end - 1].tool_uses:
            end -= 1
        end -= bool(pending)
        if known.taken < end:
            known = self._own(known)
            known.extend(self.messages[known.taken : end], self.started)
        return known

    def _own(self, known: Sending) -> Sending:
        """Return the sent form as one that may change: what a history holds never does."""
        if self._is_shared:
            self._sending, self._is_shared = known.copy(), False
        return self._sending or known

    @property
    def pending_calls(self) -> tuple[ToolUseBlock, ...]:
        """Calls of the last assistant message that have no result yet."""
        return _pending(self.messages)

    def _add_outcome(self, outcome: ToolOutcome) -> None:
        at = next(
            (
                i
                for i in range(len(self.messages) - 1, -1, -1)
                if any(use.id == outcome.call for use in self.messages[i].tool_uses)
            ),
            None,
        )
        if at is None:
            return  # an outcome of a call nobody knows: kept in the journal, part of no dialogue
        if self._sending is not None and at < self._sending.taken:
            self._sending = None  # the end of a call that was given up
        asker = self.messages[at]
        order = [use.id for use in asker.tool_uses]
        block = result_block(outcome)
        following = self.messages[at + 1] if at + 1 < len(self.messages) else None
        if following is not None and following.id == results_id(asker):
            blocks = [r for r in following.tool_results if r.tool_use_id != outcome.call]
            blocks.append(block)
            blocks.sort(key=lambda r: order.index(r.tool_use_id))
            results = Message("user", tuple(blocks), following.id, following.ts)
            self.messages = self.messages.replaced(at + 1, results)
        else:
            results = Message("user", (block,), results_id(asker), asker.ts)
            self.messages = self.messages.upto(at + 1).plus((results, *self.messages[at + 1 :]))


def result_block(outcome: ToolOutcome) -> ToolResultBlock:
    """Return the block that tells a model how a call ended."""
    content = outcome.content
    if not isinstance(content, str):
        content = [b for b in content if isinstance(b, TextBlock | ImageBlock)]
    return ToolResultBlock(outcome.call, content, outcome.status != "ok", outcome.data)


def _with_header(event: UserStep) -> Message:
    """Return a user's message as the model gets it: behind who wrote it, where a door said so (AS-11)."""
    message = event.message
    if not event.header:
        return message
    return msgspec.structs.replace(message, content=(TextBlock(event.header), *message.content))


def closed_calls(messages: Sequence[Message], history: History) -> list[Message]:
    """Return `messages` with exactly one result directly after each call; see `sending.closed`."""
    return closed(messages, history.started)


def _pending(messages: Sequence[Message]) -> tuple[ToolUseBlock, ...]:
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if message.role == "assistant":
            done = {r.tool_use_id for m in messages[at + 1 :] for r in m.tool_results}
            return tuple(use for use in message.tool_uses if use.id not in done)
        if not all(isinstance(b, ToolResultBlock) for b in cast("tuple[object, ...]", message.content)):
            return ()
    return ()
