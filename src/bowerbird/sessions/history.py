"""What the journal says about a session: the model's history, and where its turn stands. Pure.

Here: records folded into the loop's `History` and into the state of one turn. Not here:
reading records (`store`), deciding about unfinished calls (`resume.py`), the loop's sent view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bowerbird.agent.history import PARTIAL, History
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
from bowerbird.sessions.records import MessageSeqs, events_of, ledger_class
from bowerbird.sessions.resume import EffectAnswer, LedgerCall
from bowerbird.sessions.values import DISCONNECTED
from bowerbird.store.journal import Record

_EFFECT_ANSWERS: dict[str, EffectAnswer] = {
    "happened": "happened",
    "did_not_happen": "did_not_happen",
    "run_again": "run_again",
}
_COMPLETE = ("end_turn", "stop_sequence")


@dataclass(frozen=True, slots=True)
class TurnState:
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
    answers: dict[str, ApprovalAnswer] = field(default_factory=dict[str, ApprovalAnswer])
    open_requests: tuple[ApprovalRequest, ...] = ()
    used: Usage = field(default_factory=Usage)
    tier: str = ""
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    final: bool = False
    is_tainted: bool = False
    text: str = ""
    last_intent: str = ""
    plan_text: str = ""
    plan_answer: ApprovalAnswer | None = None
    budget_answer: ApprovalAnswer | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
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
    seqs = MessageSeqs()
    return load_pairs(events_of(records, seqs), seqs, turn_id)


def load_pairs(pairs: Sequence[tuple[Record, StepEvent | None]], seqs: MessageSeqs, turn_id: str) -> Loaded:
    """Return what `load` returns of records that were read and decoded before."""
    unsent = _unsent(pairs, turn_id)
    history = History.of((event for _, event in pairs if event is not None), unsent)
    mine = [(record, event) for record, event in pairs if record.turn == turn_id]
    return Loaded(history, _turn_state(mine), seqs)


def _unsent(pairs: Sequence[tuple[Record, StepEvent | None]], turn_id: str) -> set[str]:
    """Partial answers of attempts that failed and were run again (MO-32)."""
    failed: dict[str | None, list[str]] = {}
    partial: dict[str | None, list[str]] = {}
    unsent: set[str] = set()
    for record, event in pairs:
        unsent.update(failed.pop(record.turn, ()))  # the turn goes on after it failed
        if isinstance(event, AssistantStep) and event.stop_reason == PARTIAL:
            partial.setdefault(record.turn, []).append(event.message.id)
        if record.type == "turn_ended":
            ended = partial.pop(record.turn, [])
            if record.body.get("state") == "failed" or record.body.get("stop_reason") == DISCONNECTED:
                failed[record.turn] = ended
    unsent.update(failed.get(turn_id, ()))
    return unsent


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
                    answers |= dict.fromkeys(asked.calls, event)
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
    return replace(
        call,
        ledger_class=ledger_class(intent.effect, intent.key),
        mark=intent.mark,
        intent_seq=seq,
        answer=None if said is None else _EFFECT_ANSWERS.get(said.decision),
    )
