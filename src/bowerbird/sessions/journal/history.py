"""What the journal says about a session: the model's history, and where its turn stands. Pure.

Here: records folded into the loop's `History` and into the state of one turn. Not here:
reading records (`store`), deciding about unfinished calls (`resume_decision.py`), the loop's sent view.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from bowerbird.agent.context.history import PARTIAL, History, HistoryBuilder
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    ModeChange,
    ModelSwitch,
    StepEvent,
    ToolIntent,
    ToolOutcome,
)
from bowerbird.core.usage import Usage
from bowerbird.sessions.journal.events_as_records import MessageSeqs, events_of, ledger_class
from bowerbird.sessions.resume_decision import EffectAnswer, LedgerCall
from bowerbird.sessions.values import DISCONNECTED
from bowerbird.store.journal.journal import Record

_EFFECT_ANSWERS: dict[str, EffectAnswer] = {
    "happened": "happened",
    "did_not_happen": "did_not_happen",
    "run_again": "run_again",
}
KEPT_TURNS = 4  # whose records are kept after they are done
_COMPLETE = ("end_turn", "stop_sequence")


class TurnState(msgspec.Struct, frozen=True):
    """Where a turn stands according to its records.

    Attributes:
        is_started: its `turn_started` is there.
        calls: the calls of its newest batch, for the resume decision.
        answers: decisions by call id.
        open_requests: requests without an answer, oldest first.
        used: what its model calls used, from assistant records.
        tier: the model tier switched to in this turn, "" for the session's.
        changes: the settings changed during the turn, last value of each.
        final: its last record is a complete answer without calls: only the end is missing.
        is_tainted: untrusted text came into the context.
        text: that answer.
        last_intent: the newest intent, for people ("bash {…}").
        plan_text, plan_answer: the plan put before a person, and the decision about it.
        budget_answer: the newest decision about money, if nothing was done since.
    """

    is_started: bool = False
    calls: tuple[LedgerCall, ...] = ()
    answers: dict[str, ApprovalAnswer] = msgspec.field(default_factory=dict[str, ApprovalAnswer])
    open_requests: tuple[ApprovalRequest, ...] = ()
    used: Usage = msgspec.field(default_factory=Usage)
    tier: str = ""
    changes: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    final: bool = False
    is_tainted: bool = False
    text: str = ""
    last_intent: str = ""
    plan_text: str = ""
    plan_answer: ApprovalAnswer | None = None
    budget_answer: ApprovalAnswer | None = None


class Loaded(msgspec.Struct, frozen=True):
    """A session as a driver needs it."""

    history: History
    turn: TurnState
    seqs: MessageSeqs


def load(records: Sequence[Record], turn_id: str) -> Loaded:
    """Return the history of a session and the state of the turn `turn_id`.

    Args:
        records: all records of the session, a fork's inherited ones included.
        turn_id: the turn about to be driven.
    """
    fold = Fold()
    fold.add(records)
    return fold.at(turn_id)


class Fold:
    """A session's records folded as they come, so that a turn costs what was said since the last one.

    Example:
        >>> Fold().at("t_1").history.messages
        ()
    """

    def __init__(self) -> None:
        self._seqs = MessageSeqs()
        self._tools: dict[str, str] = {}
        self._history = HistoryBuilder()
        self._partials = _Partials()
        self._turns: dict[str, list[tuple[Record, StepEvent | None]]] = {}
        self._done: deque[str] = deque()

    def add(self, records: Sequence[Record]) -> None:
        """Fold in the records that follow."""
        for record, event in events_of(records, self._seqs, self._tools):
            if event is not None:
                self._history.add(event)
            self._partials.add(record, event)
            if record.turn is None:
                continue
            self._turns.setdefault(record.turn, []).append((record, event))
            if record.type == "turn_ended" and record.body.get("state") == "done":
                self._done.append(record.turn)
        # No attempt at these follows; their records would only fill memory.
        while len(self._done) > KEPT_TURNS:
            self._turns.pop(self._done.popleft(), None)
        self._history.unsent = self._partials.unsent("")
        self._history.grow()

    def at(self, turn_id: str) -> Loaded:
        """Return the history, and the state of the turn about to be driven."""
        self._history.unsent = self._partials.unsent(turn_id)
        history = self._history.build()
        # A driver adds to its places what it commits, under the names of its own messages.
        return Loaded(history, _turn_state(self._turns.get(turn_id, ())), self._seqs.over())


class _Partials:
    """Partial answers of attempts that failed and were run again."""

    def __init__(self) -> None:
        self._failed: dict[str | None, list[str]] = {}
        self._partial: dict[str | None, list[str]] = {}
        self._unsent: set[str] = set()

    def add(self, record: Record, event: StepEvent | None) -> None:
        """Take the next record."""
        if self._failed:
            self._unsent.update(self._failed.pop(record.turn, ()))  # the turn goes on after it failed
        if isinstance(event, AssistantStep) and event.stop_reason == PARTIAL:
            self._partial.setdefault(record.turn, []).append(event.message.id)
        if record.type == "turn_ended":
            ended = self._partial.pop(record.turn, [])
            if record.body.get("state") == "failed" or record.body.get("stop_reason") == DISCONNECTED:
                self._failed[record.turn] = ended

    def unsent(self, turn_id: str) -> frozenset[str]:
        """Return the ids of what must not be sent when the turn `turn_id` goes on now."""
        return frozenset((*self._unsent, *self._failed.get(turn_id, ())))


def _turn_state(mine: Sequence[tuple[Record, StepEvent | None]]) -> TurnState:
    used, tier = Usage(), ""
    changes: dict[str, Any] = {}
    answers: dict[str, ApprovalAnswer] = {}
    requests: dict[str, ApprovalRequest] = {}
    tainted, last_intent, plan_text = False, "", ""
    decided: dict[str, ApprovalAnswer] = {}
    for _, event in mine:
        match event:
            case AssistantStep():
                used += event.usage
                decided.clear()
            case ToolIntent():
                used += Usage(tool_calls=1)
                last_intent = f"{event.tool} {str(event.input)[:200]}"
            case ToolOutcome():
                tainted = tainted or event.tainted
            case ModelSwitch():
                tier = event.tier
            case ModeChange():
                changes |= event.changes
            case ApprovalRequest():
                requests[event.id] = event
                plan_text = event.text if event.kind == "plan" else plan_text
            case ApprovalAnswer():
                asked = requests.pop(event.id, None)
                if asked is not None:
                    answers |= {call: said_of(call, event, answers.get(call)) for call in asked.calls}
                    decided[asked.kind] = event
            case _:
                pass
    last = next((event for _, event in reversed(mine) if event is not None), None)
    final = isinstance(last, AssistantStep) and is_final(last)
    return TurnState(
        is_started=any(record.type == "turn_started" for record, _ in mine),
        calls=_last_batch(mine, answers),
        answers=answers,
        open_requests=tuple(requests.values()),
        used=used,
        tier=tier,
        changes=changes,
        final=final,
        is_tainted=tainted,
        text=last.message.text if isinstance(last, AssistantStep) and final else "",
        last_intent=last_intent,
        plan_text=plan_text,
        plan_answer=decided.get("plan"),
        budget_answer=decided.get("budget"),
    )


def is_final(step: AssistantStep) -> bool:
    """Whether a step is a complete answer: text without calls, not cut."""
    return step.stop_reason in _COMPLETE and not step.message.tool_uses and bool(step.message.text.strip())


def said_of(call: str, answer: ApprovalAnswer, before: ApprovalAnswer | None) -> ApprovalAnswer:
    """Return what holds of one call: a command that was edited stays so, say after "run it again"."""
    said = answer.of(call)
    if said.calls or before is None or not before.calls:
        return said
    return msgspec.structs.replace(said, calls=before.calls)


def _last_batch(
    mine: Sequence[tuple[Record, StepEvent | None]], answers: dict[str, ApprovalAnswer]
) -> tuple[LedgerCall, ...]:
    asker: AssistantStep | None = None
    batch = 0
    intents: dict[str, tuple[int, ToolIntent]] = {}
    outcomes: dict[str, int] = {}
    for record, event in mine:
        match event:
            case AssistantStep() if event.message.tool_uses:
                asker, batch = event, record.seq
            case ToolIntent():
                intents[event.call] = (record.seq, event)
            case ToolOutcome():
                outcomes[event.call] = record.seq
            case _:
                pass
    if asker is None:
        return ()
    return tuple(
        _ledger_call(LedgerCall(use.id, use.name, batch, outcome_seq=outcomes.get(use.id)), intents, answers)
        for use in asker.message.tool_uses
    )


def _ledger_call(
    call: LedgerCall, intents: dict[str, tuple[int, ToolIntent]], answers: dict[str, ApprovalAnswer]
) -> LedgerCall:
    if call.call not in intents:
        return call
    seq, intent = intents[call.call]
    said = answers.get(call.call)
    return msgspec.structs.replace(
        call,
        ledger_class=ledger_class(intent.effect, intent.key),
        mark=intent.mark,
        intent_seq=seq,
        answer=None if said is None else _EFFECT_ANSWERS.get(said.decision),
    )
