"""Telegram's limits, kept by ourselves (AS-19)."""

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.channels.telegram.limits import Limits

STEPS = st.lists(st.tuples(st.sampled_from([1, 2, -1, -2]), st.booleans(), st.floats(0, 2)), max_size=200)


@given(STEPS)
def test_no_window_holds_more_than_telegram_allows(steps: list[tuple[int, bool, float]]) -> None:
    """AS-19: 1 a second per private chat, 20 a minute per group, 30 a second in all."""
    limits, now = Limits(), 0.0
    sent: list[tuple[float, int]] = []
    for chat, is_edit, later in steps:
        now += later
        delay = limits.delay(chat, now, is_edit=is_edit)
        if is_edit and delay > 0:
            continue  # dropped
        now += delay
        limits.take(chat, now)
        sent.append((now, chat))
    for begin, chat in sent:
        minute = [
            at for at, other in sent if other == chat and begin <= at < begin + (60 if chat < 0 else 1) - 1e-6
        ]
        assert len(minute) <= (20 if chat < 0 else 1)
        assert len([at for at, _ in sent if begin <= at < begin + 1 - 1e-6]) <= 30


def test_edits_leave_room_for_answers() -> None:
    """AS-19: a group whose edits have used their share still takes five messages at once."""
    limits = Limits()
    edits = 0
    while not limits.delay(-1, 10.0 + edits, is_edit=True) and edits < 30:
        limits.take(-1, 10.0 + edits)
        edits += 1
    assert edits == 15
    for _ in range(5):
        assert not limits.delay(-1, 30.0)
        limits.take(-1, 30.0)
    assert limits.delay(-1, 30.0) > 0


def test_memory_is_bounded() -> None:
    """AS-19: chats that are quiet are forgotten."""
    limits = Limits()
    for chat in range(1, 10_000):
        limits.take(chat, chat * 1.0)
        limits.keep_quiet(chat, chat * 1.0)
    assert len(limits._chats) <= 1_001 and len(limits._quiet) <= 1_001
