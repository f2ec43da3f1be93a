"""The resume decision against an independent model (SE-25 … SE-27)."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.sessions.resume_decision import (
    AskPerson,
    Close,
    Decision,
    LedgerCall,
    Replay,
    RunAgain,
    decide_resume,
    rollbacks,
)

CLASSES = st.sampled_from(["read", "branch", "store", "keyed", "external"])
MARKS = st.sampled_from(["step", "mark", None])
ANSWERS = st.sampled_from([None, None, "happened", "did_not_happen", "run_again"])


@st.composite
def ledgers(draw: st.DrawFn) -> list[LedgerCall]:
    """A batch as the loop makes it: all intents in call order, then outcomes in any order."""
    count = draw(st.integers(1, 6))
    started = draw(st.integers(0, count))
    finished = draw(st.permutations(range(started)))[: draw(st.integers(0, started))]
    calls: list[LedgerCall] = []
    for index in range(count):
        if index >= started:
            refused = draw(st.booleans())  # a denied call has an outcome and no intent
            calls.append(LedgerCall(f"c{index}", "t", 1, outcome_seq=2 if refused else None))
            continue
        kind = draw(CLASSES)
        form = draw(MARKS)
        mark = {"step": f"step:c{index}", "mark": f"m_{index}", None: None}[form]
        outcome = 100 + finished.index(index) if index in finished else None
        answer = draw(ANSWERS) if kind == "external" and outcome is None else None
        calls.append(LedgerCall(f"c{index}", "t", 1, kind, mark, 10 + index, outcome, answer))
    return calls


def told_by_the_table(call: LedgerCall, calls: list[LedgerCall], external: str) -> str:
    """SE-25 read line by line, in words."""
    if call.outcome_seq:
        return "replay"
    if not call.intent_seq:
        return "run"
    if call.ledger_class in ("read", "store", "keyed"):
        return "run"
    if call.ledger_class == "branch":
        if call.mark is None:
            return "interrupted"
        if call.mark == f"step:{call.call}":
            return f"roll back {call.mark}, run"
        siblings = [c for c in calls if c is not call and c.outcome_seq and c.outcome_seq > call.intent_seq]
        return "interrupted with paths" if siblings else f"roll back {call.mark}, run"
    if call.answer == "run_again":
        return "run"
    if call.answer == "happened":
        return "ok"
    if call.answer == "did_not_happen":
        return "interrupted"
    return "ask" if external == "ask" else "abandoned"


def in_words(decision: Decision) -> str:
    match decision:
        case Replay():
            return "replay"
        case RunAgain(rollback=None):
            return "run"
        case RunAgain(rollback=mark):
            return f"roll back {mark}, run"
        case AskPerson():
            return "ask"
        case Close(status=status, changed_since=mark):
            return status if mark is None else f"{status} with paths"


@given(calls=ledgers(), external=st.sampled_from(["tell", "ask"]))
def test_the_decision_is_the_table_of_the_chapter(calls: list[LedgerCall], external: str) -> None:
    """SE-25, SE-27."""
    decisions = decide_resume(calls, external)  # type: ignore[arg-type]
    assert [d.call for d in decisions] == [c.call for c in calls]
    assert [in_words(d) for d in decisions] == [told_by_the_table(c, calls, external) for c in calls]


@given(calls=ledgers(), external=st.sampled_from(["tell", "ask"]))
def test_what_has_an_outcome_never_runs_and_external_calls_never_run_unasked(
    calls: list[LedgerCall], external: str
) -> None:
    """SE-26; acceptance 1: each external tool ran at most once."""
    by_call = {d.call: d for d in decide_resume(calls, external)}  # type: ignore[arg-type]
    for call in calls:
        runs = isinstance(by_call[call.call], RunAgain)
        if call.outcome_seq is not None:
            assert not runs
        if call.ledger_class == "external" and call.answer != "run_again":
            assert not runs


@given(calls=ledgers())
def test_deciding_again_after_acting_changes_nothing(calls: list[LedgerCall]) -> None:
    """A crash between the decision's own commits is harmless."""
    first = decide_resume(calls)
    acted = [
        msgspec.structs.replace(call, outcome_seq=500) if isinstance(decision, Close) else call
        for call, decision in zip(calls, first, strict=True)
    ]
    again = {d.call: d for d in decide_resume(acted)}
    for call, decision in zip(calls, first, strict=True):
        if isinstance(decision, Close):
            assert again[call.call] == Replay(call.call)


@given(calls=ledgers())
def test_rollbacks_go_from_the_newest_mark_to_the_oldest_each_once(calls: list[LedgerCall]) -> None:
    decisions = decide_resume(calls)
    marks = rollbacks(decisions, calls)
    wanted = [d.rollback for d in decisions if isinstance(d, RunAgain) and d.rollback]
    assert marks == list(reversed(wanted))
