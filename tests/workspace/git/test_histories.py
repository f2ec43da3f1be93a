"""GI-4: no command of ours, forced or not, makes a commit, a stash or a reflog line of the user unreachable."""

from pathlib import Path

import pytest
from support.git_histories import one_history


@pytest.mark.parametrize("seed", range(3))
def test_no_commit_of_the_user_goes_out_of_reach(tmp_path: Path, seed: int) -> None:
    """Random steps of a user and of two sessions; `benchmarks/git_histories.py` runs thousands."""
    one_history(seed, 14, tmp_path)


@pytest.mark.parametrize("seed", range(2))
def test_nor_where_the_repository_lies_outside_the_workspace(tmp_path: Path, seed: int) -> None:
    """GI-10: the user and both sessions work in a linked worktree."""
    one_history(seed, 14, tmp_path, linked=True)
