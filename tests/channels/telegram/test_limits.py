"""Telegram's limits, kept by ourselves (AS-19)."""

from hypothesis import given
from hypothesis import strategies as st

from bowerbird.channels.telegram.limits import FLIGHT_S, Limits, Slot

SECONDS = st.floats(0, 2)
STEPS = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, -1, -2]), st.booleans(), SECONDS, SECONDS, st.floats(0, 1)),
    max_size=200,
)


@given(STEPS)
def test_no_window_holds_more_than_telegram_allows(
    steps: list[tuple[int, bool, float, float, float]],
) -> None:
    """AS-19: 1 a second per private chat, 20 a minute per group, 30 a second in all, as they arrive there.

    Each message is on its way as long as it likes, and arrives at any moment of that.
    """
    limits, now = Limits(), 0.0
    flying: list[tuple[float, Slot]] = []
    arrived: list[tuple[float, int]] = []

    def pass_to(at: float) -> None:
        flying.sort(key=lambda one: one[0])
        while flying and flying[0][0] <= at:
            ends, slot = flying.pop(0)
            slot.ended = ends

    for chat, is_edit, later, takes, where in steps:
        now += later / 20
        pass_to(now)
        while (delay := limits.delay(chat, now, is_edit=is_edit)) > 0 and not is_edit:
            now += delay
            pass_to(now)
        if delay > 0:
            continue  # an edit is dropped
        flying.append((now + takes, limits.take(chat, now)))
        arrived.append((now + takes * where, chat))
    for begin, chat in arrived:
        length = (60 if chat < 0 else 1) - 1e-6
        own = [at for at, other in arrived if other == chat and begin <= at < begin + length]
        assert len(own) <= (20 if chat < 0 else 1)
        assert len([at for at, _ in arrived if begin <= at < begin + 1 - 1e-6]) <= 30


def test_calls_that_hang_hold_a_place_for_a_while_only() -> None:
    """AS-19, AS-3: thirty chats whose calls are not answered do not silence the others."""
    limits = Limits()
    for chat in range(1, 31):
        limits.take(chat, 0.0)
    assert limits.delay(99, 3.0) > 0
    assert not limits.delay(99, FLIGHT_S + 1.0)


def test_edits_leave_room_for_answers() -> None:
    """AS-19: a group whose edits have used their share still takes five messages at once."""
    limits = Limits()
    edits = 0
    while not limits.delay(-1, 10.0 + edits, is_edit=True) and edits < 30:
        limits.take(-1, 10.0 + edits).ended = 10.0 + edits
        edits += 1
    assert edits == 15
    for _ in range(5):
        assert not limits.delay(-1, 30.0)
        limits.take(-1, 30.0).ended = 30.0
    assert limits.delay(-1, 30.0) > 0


def test_memory_is_bounded() -> None:
    """AS-19: chats that are quiet are forgotten."""
    limits = Limits()
    for chat in range(1, 10_000):
        limits.take(chat, chat * 1.0).ended = chat * 1.0
        limits.keep_quiet(chat, chat * 1.0)
    assert len(limits._chats) <= 1_001 and len(limits._quiet) <= 1_001
