"""A few of the random answers of `drills/answers.py`: what ran is what was allowed, each call once."""

from pathlib import Path

import pytest
from support.patience import patience
from support.random_answers import walk_some
from support.typed_answers import walk_at_terminals

pytestmark = pytest.mark.timeout(patience(180))


async def test_what_ran_is_what_was_allowed_whatever_was_answered_where(tmp_path: Path) -> None:
    assert await walk_some(tmp_path, list(range(20))) == {}


async def test_what_ran_is_what_was_allowed_at_a_terminal(tmp_path: Path) -> None:
    assert await walk_at_terminals(tmp_path, [1, 2, 3]) == {}
