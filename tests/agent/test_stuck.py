"""When is repeating being stuck (AG-50)."""

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.agent.turn_loop.stuck import Round, judge, round_of
from bowerbird.core.events import ToolOutcome
from bowerbird.core.messages import ToolUseBlock

A, B = Round(b"a"), Round(b"b")


def test_three_equal_rounds_warn_once_and_five_stop() -> None:
    assert [judge([A] * n) for n in range(1, 6)] == ["fine", "fine", "warn", "fine", "stop"]


def test_four_alternations_warn_and_six_stop() -> None:
    verdicts = [judge(([A, B] * 7)[:n]) for n in range(1, 13)]
    assert verdicts.index("warn") == 7 and verdicts[11] == "stop"
    assert verdicts[:7] == ["fine"] * 7 and verdicts[8:11] == ["fine"] * 3


def test_patient_tools_may_be_asked_ten_times() -> None:
    patient = Round(b"p", patient=True)
    assert judge([patient] * 9) == "fine"
    assert judge([patient] * 10) == "warn"
    assert judge([patient] * 12) == "stop"


def test_another_result_is_another_round() -> None:
    use = ToolUseBlock("1", "read_file", {"path": "a"})
    other = ToolUseBlock("2", "read_file", {"path": "a"})
    same = round_of([use], [ToolOutcome("1", "read_file", "ok", "x")])
    assert same == round_of([other], [ToolOutcome("2", "read_file", "ok", "x", ms=9)])
    assert same != round_of([use], [ToolOutcome("1", "read_file", "ok", "y")])


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=30))
def test_the_newest_round_alone_decides_when_it_is_new(signatures: list[bytes]) -> None:
    rounds = [Round(s) for s in signatures]
    assert judge([*rounds, Round(b"new")]) == "fine"
