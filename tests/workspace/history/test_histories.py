"""Random histories beside a pure-Python model; `benchmarks/histories.py` runs 10,000 of them."""

from pathlib import Path

import pytest
from support.branch_histories import run_history

from bowerbird.workspace.tree.layers import Storage

HISTORIES = 64
EACH = 8


@pytest.mark.parametrize("first", range(0, HISTORIES, EACH))
def test_forks_edits_merges_landings_and_undos_equal_the_model(first: int, tmp_path: Path) -> None:
    """WS-40 … WS-56: view, changes, workspace and every result are compared after each step."""
    for seed in range(first, first + EACH):
        run_history(tmp_path / str(seed), seed)


def test_the_same_holds_where_whiteouts_cannot_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """WS-3: deletions are in `layers/<n>.json` then."""
    monkeypatch.setattr(
        "bowerbird.workspace.registry.registry.probe_storage", lambda _: Storage(False, "no whiteouts here")
    )
    for seed in range(1000, 1000 + EACH):
        run_history(tmp_path / str(seed), seed)
