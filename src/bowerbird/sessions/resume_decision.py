"""What becomes of each unfinished call when a turn is driven again (SE-25 … SE-27). Pure.

Here: the decision, from the ledger alone. Not here: reading the ledger, rolling a branch back,
writing outcomes, running tools.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from bowerbird.store.journal.journal import LedgerClass

STEP_MARK = "step:"  # marks of one call's saved entries; others (`m_…`) are marks of the whole branch

EffectAnswer = Literal["happened", "did_not_happen", "run_again"]

ABANDONED_TEXT = (
    "The process stopped while this call was running. It may have happened, completely or in part; it was "
    "not repeated. Check before doing it again."
)
HAPPENED_TEXT = "The process stopped while this call was running. A person confirmed that it happened."
DID_NOT_HAPPEN_TEXT = (
    "The process stopped while this call was running. A person confirmed that it did not happen."
)
INTERRUPTED_TEXT = (
    "The process stopped while this call was running. Its changes were kept, because a later call had "
    "already finished on top of them."
)
NO_MARK_TEXT = (
    "The process stopped while this call was running, and there is no point to go back to. Its changes "
    "so far were kept."
)


class LedgerCall(msgspec.Struct, frozen=True):
    """What the ledger knows of one call of the unfinished turn.

    Attributes:
        ledger_class, mark, intent_seq: of the newest intent; None when it was never started.
        outcome_seq: its outcome's record, None when there is none.
        batch: which assistant record asked for it; calls of one batch are siblings.
        answer: a person's word about an external call, if one was asked.
    """

    call: str
    tool: str
    batch: int = 0
    ledger_class: LedgerClass | None = None
    mark: str | None = None
    intent_seq: int | None = None
    outcome_seq: int | None = None
    answer: EffectAnswer | None = None


class Replay(msgspec.Struct, frozen=True):
    """The outcome is on record: it is used, never made again."""

    call: str


class RunAgain(msgspec.Struct, frozen=True):
    """Run the call; first, if `rollback` is given, take the branch back to that mark."""

    call: str
    rollback: str | None = None


class Close(msgspec.Struct, frozen=True):
    """Do not run the call; record this outcome. `changed_since` asks for the paths changed after it."""

    call: str
    status: Literal["abandoned", "interrupted", "ok"]
    text: str
    changed_since: str | None = None


class AskPerson(msgspec.Struct, frozen=True):
    """A person must say what happened; until then the turn waits for `effect`."""

    call: str


Decision = Replay | RunAgain | Close | AskPerson


def decide_resume(calls: Sequence[LedgerCall], external: Literal["tell", "ask"] = "tell") -> list[Decision]:
    """Return what to do with each call, in the given order.

    Args:
        calls: all calls of the turn's last batch (earlier batches are finished by construction,
            and would be replayed).
        external: setting `resume.external`.

    Example:
        >>> decide_resume([LedgerCall("c1", "write_file", 0, "branch", "step:c1", 7)])
        [RunAgain(call='c1', rollback='step:c1')]
    """
    return [_decide(call, calls, external) for call in calls]


def rollbacks(decisions: Sequence[Decision], calls: Sequence[LedgerCall]) -> list[str]:
    """Return the marks to go back to, the newest first, each once."""
    started = {call.call: call.intent_seq or 0 for call in calls}
    marked = [d for d in decisions if isinstance(d, RunAgain) and d.rollback is not None]
    marked.sort(key=lambda d: started.get(d.call, 0), reverse=True)
    return list(dict.fromkeys(d.rollback for d in marked if d.rollback is not None))


def _decide(call: LedgerCall, calls: Sequence[LedgerCall], external: str) -> Decision:
    if call.outcome_seq is not None:
        return Replay(call.call)
    if call.intent_seq is None or call.ledger_class in ("read", "store", "keyed"):
        # Never started; or harmless; or its effect and its outcome are one transaction, so there
        # was none; or the receiver knows the key.
        return RunAgain(call.call)
    if call.ledger_class == "branch":
        return _decide_branch(call, call.intent_seq, calls)
    return _decide_external(call, external)


def _decide_branch(call: LedgerCall, intent_seq: int, calls: Sequence[LedgerCall]) -> Decision:
    if call.mark is None:
        return Close(call.call, "interrupted", NO_MARK_TEXT)
    if call.mark.startswith(STEP_MARK):
        return RunAgain(call.call, call.mark)  # its own saved entries: siblings are not touched
    finished_after = any(
        other.outcome_seq is not None and other.outcome_seq > intent_seq
        for other in calls
        if other.call != call.call and other.batch == call.batch
    )
    if finished_after:
        return Close(call.call, "interrupted", INTERRUPTED_TEXT, changed_since=call.mark)
    return RunAgain(call.call, call.mark)


def _decide_external(call: LedgerCall, external: str) -> Decision:
    if call.answer == "run_again":
        return RunAgain(call.call)
    if call.answer == "happened":
        return Close(call.call, "ok", HAPPENED_TEXT)
    if call.answer == "did_not_happen":
        return Close(call.call, "interrupted", DID_NOT_HAPPEN_TEXT)
    return AskPerson(call.call) if external == "ask" else Close(call.call, "abandoned", ABANDONED_TEXT)
