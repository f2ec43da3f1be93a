"""A few of the random histories of `drills/user_saves.py`: a user saves inside of any call, and loses nothing."""

import random

from support.user_saves import run_file_history

HISTORIES = 80


async def test_no_line_that_a_user_saves_during_any_call_is_lost_without_a_conflict(tmp_path):
    first = random.randrange(10**6)
    for seed in range(first, first + HISTORIES):
        place = tmp_path / str(seed)
        place.mkdir()
        assert await run_file_history(place, seed) == [], f"seed {seed}"
