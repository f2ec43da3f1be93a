"""When is repeating being stuck (AG-50)."""

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.agent.turn_loop.stuck import Round, judge, round_of
from bowerbird.core.events import ToolOutcome
from bowerbird.core.messages import ToolUseBlock

A, B = Round(b"a"), Round(b"b")


def test_three_equal_rounds_warn_once_and_five_stop() -> None:
    assert [judge([A] * n) for n in range(1, 6)] == ["fine", "fine", "warn", "fine", "stop"]


def test_rounds_that_only_read_may_be_equal_nine_times() -> None:
    look = Round(b"p", reads=True)
    assert judge([look] * 9) == "fine"
    assert judge([look] * 10) == "warn"
    assert judge([look] * 12) == "stop"


def test_two_rounds_by_turns_are_stuck_at_the_tenth_of_one() -> None:
    verdicts = [judge(([A, B] * 13)[:n]) for n in range(1, 25)]
    assert verdicts.index("warn") == 18 and verdicts.index("stop") == 22
    assert verdicts[:18] == ["fine"] * 18


def test_what_is_looked_at_again_after_each_change_is_not_stuck() -> None:
    rounds: list[Round] = []
    for number in range(40):
        rounds += [Round(b"failed"), Round(str(number).encode())]
        assert judge([*rounds, Round(b"failed")]) == "fine"


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
