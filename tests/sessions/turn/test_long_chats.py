"""What a turn of a long conversation does beside one of a fresh conversation (issue 10, must show 6)."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from support.long_chats import RECORDS_A_TURN, Chats, chats, model_server

RECORDS = 20_000
TURNS = 6


class Calls:
    """Counts the calls of Python functions in this thread and in those that begin while it counts."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self.seen += 1


@contextmanager
def counting() -> Iterator[Calls]:
    """Count while the block runs, wherever: what is long work is done in threads."""
    calls = Calls()
    threading.setprofile(calls)
    sys.setprofile(calls)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # as its own documentation says


async def fewest(home: Chats, thread: str, calls: Calls) -> int:
    """Return how many calls the shortest of a few turns makes: others may fall together with upkeep."""
    counts: list[int] = []
    for _ in range(TURNS):
        before = calls.seen
        await home.turn(thread)
        counts.append(calls.seen - before)
    return min(counts)


async def test_a_turn_of_a_long_conversation_does_what_one_of_a_fresh_one_does(tmp_path: Path) -> None:
    """Reliability 2 and 3: every message of the conversation was counted, compared and encoded for each call."""
    with model_server() as model, counting() as calls:
        async with chats(tmp_path, model) as home:
            long, fresh = await home.stored(RECORDS // RECORDS_A_TURN, 180), await home.fresh()
            for thread in (fresh, long):
                await home.turn(thread)  # what the first one loads serves the next
            few, many = await fewest(home, fresh, calls), await fewest(home, long, calls)
    assert many < 1.2 * few, (few, many)
