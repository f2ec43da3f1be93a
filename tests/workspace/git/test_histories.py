"""GI-4: no command of ours, forced or not, makes a commit, a stash or a reflog line of the user unreachable."""

from pathlib import Path

import pytest
from support.git_histories import one_history


@pytest.mark.parametrize("seed", range(3))
def test_no_commit_of_the_user_goes_out_of_reach(tmp_path: Path, seed: int) -> None:
    """Random steps of a user and of two sessions; `benchmarks/git_histories.py` runs thousands."""
    one_history(seed, 14, tmp_path)
