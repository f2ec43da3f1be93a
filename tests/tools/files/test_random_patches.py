"""Patches as models write them, made from this repository's own commits; at length in `drills/patches.py`."""

from functools import partial
from pathlib import Path

import pytest
from support.random_patches import FAULTS, commits, is_harmless, judge, of_history, of_versions

ROOT = Path(__file__).parents[3]


def test_a_patch_is_applied_as_the_commit_or_refused_with_every_file_as_it_was(tmp_path: Path) -> None:
    if not commits(ROOT):
        pytest.skip("there is no history here to make patches from")
    outcomes = judge(tmp_path, range(2 * len(FAULTS)), partial(of_history, ROOT))
    wrong = [one for one in outcomes if one.kind == "wrong"]
    assert not wrong, wrong[0]
    refused = [one for one in outcomes if one.kind == "refused" and is_harmless(one.fault)]
    assert all("places, lines" in one.told for one in refused), refused[0]


def test_two_versions_of_a_directory_serve_where_there_is_no_history(tmp_path: Path) -> None:
    for name, text in {"old": "one\ntwo\n", "new": "one\nthree\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text)
    changes = partial(of_versions, tmp_path / "old", tmp_path / "new")
    (outcome,) = judge(tmp_path, [0], changes)
    assert (outcome.kind, outcome.told) == ("right", "changed a.txt, 1 hunk")
