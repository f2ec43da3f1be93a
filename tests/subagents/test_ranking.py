"""Who wins a tournament: a pure, total order (DE-22 … DE-24)."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.subagents.checks import Check, against, touches_checks
from bowerbird.subagents.ranking import Attempt, ranked, row, winner

CHECKS = 3


def checked(*codes: int) -> tuple[Check, ...]:
    return tuple(Check(f"check {n}", code, 0.1, "") for n, code in enumerate(codes))


attempts = st.lists(
    st.builds(
        Attempt,
        number=st.integers(0, 50),
        completed=st.booleans(),
        checks=st.lists(st.integers(0, 1), min_size=CHECKS, max_size=CHECKS).map(lambda c: checked(*c)),
        added=st.integers(0, 3),
        removed=st.integers(0, 3),
        touched_checks=st.booleans(),
        cost=st.none() | st.floats(0, 1),
        seconds=st.floats(0, 5),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda a: a.number,
)


@given(given=attempts, data=st.data())
def test_the_order_does_not_depend_on_who_ended_first(given: list[Attempt], data: st.DataObject) -> None:
    assert ranked(data.draw(st.permutations(given))) == ranked(given)


@given(given=attempts)
def test_each_criterion_decides_only_among_equals_of_those_before(given: list[Attempt]) -> None:
    """DE-23, word by word, as a comparison of neighbours."""
    for better, worse in zip(ranked(given), ranked(given)[1:], strict=False):
        criteria = [
            (a.completed, a.passed == CHECKS, a.passed, not a.touched_checks, -(a.added + a.removed),
             -math.inf if a.cost is None else -a.cost, -a.seconds, -a.number)
            for a in (better, worse)
        ]  # fmt: skip
        assert criteria[0] > criteria[1]


@given(given=attempts)
def test_a_winner_completed_and_passed_everything(given: list[Attempt]) -> None:
    """DE-24: no attempt passes, no winner."""
    best = winner(ranked(given))
    passing = [a for a in given if a.completed and a.passed == CHECKS]
    assert (best in passing) if passing else best is None


def test_a_row_has_what_people_judge_by() -> None:
    """DE-24, PR-39: the keys of `ranking`."""
    made = row(Attempt(number=2, completed=True, checks=checked(0, 1), cost=0.5), 1)
    assert list(made) == [
        "handle", "rank", "status", "passed", "failed", "checks", "files", "added", "removed",
        "touched_checks", "cost", "tokens", "seconds", "error", "agent",
    ]  # fmt: skip
    assert (made["handle"], made["passed"], made["failed"]) == ("subagent_2", 1, 1)
    assert made["agent"] == "self"
    assert list(made["checks"][0]) == ["command", "exit_code", "seconds", "output_tail", "baseline_failed"]


def test_only_failing_checks_that_failed_before_are_marked() -> None:
    """DE-22."""
    marked = against(checked(1, 1, 0), checked(0, 1, 1))
    assert [check.baseline_failed for check in marked] == [False, True, False]


@pytest.mark.parametrize(("path", "kind", "touched"), [
    ("/tests/deep/test_a.py", "modify", True), ("/test_a.py", "modify", True),
    ("/src/a.test.ts", "modify", True), ("/src/a.py", "modify", False),
    ("/tests/test_new.py", "create", False), ("/src/contest.py", "modify", False),
    ("/tests/__pycache__/test_a.cpython-311.pyc", "modify", False),
])  # fmt: skip
def test_changed_files_that_checks_read_are_noticed(path: str, kind: str, touched: bool) -> None:
    """DE-23."""
    assert touches_checks({"written": [{"path": path, "kind": kind}], "deleted": []}) is touched


def test_a_deleted_test_is_noticed_and_globs_can_be_configured() -> None:
    assert touches_checks({"written": [], "deleted": ["/a/test_b.py"]})
    assert not touches_checks({"written": [], "deleted": ["/a/test_b.py"]}, ["specs/**"])
    assert touches_checks({"written": [], "deleted": ["/specs/b"]}, ["specs/**"])
