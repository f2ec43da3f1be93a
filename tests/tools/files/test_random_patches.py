"""Patches as models write them, made from commits; at length in `drills/patches.py`."""

import random
import shutil
from functools import partial
from pathlib import Path

from support.random_patches import FAULTS, commits, git, is_harmless, judge, of_history, of_versions

ROOT = Path(__file__).parents[3]


def small_history(root: Path) -> Path:
    """A repository of some of our files, whose commits change, insert and take away lines of them."""
    chance = random.Random(1)
    shutil.copytree(ROOT / "src/bowerbird/core", root, ignore=shutil.ignore_patterns("__pycache__"))
    files = sorted(root.rglob("*.py"))
    for number in range(12):
        for file in chance.sample(files, 3) if number else ():
            lines = file.read_text().splitlines(keepends=True)
            for _ in range(chance.randint(1, 4)):
                at = chance.randrange(len(lines) + 1)
                lines[at : at + chance.randint(0, 2)] = [f"# line {chance.random()}\n"] * chance.randint(0, 2)
            file.write_text("".join(lines))
        if number == 0:
            git(root, "init", "-q")
        git(root, "add", "-A")
        who = ("-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "commit.gpgsign=false")
        git(root, *who, "commit", "-qm", f"change {number}", "--allow-empty")
    return root


def test_a_patch_is_applied_as_the_commit_or_refused_with_every_file_as_it_was(tmp_path: Path) -> None:
    root = ROOT if commits(ROOT) else small_history(tmp_path / "history")
    outcomes = judge(tmp_path, range(2 * len(FAULTS)), partial(of_history, root))
    wrong = [one for one in outcomes if one.kind == "wrong"]
    assert not wrong, wrong[0]
    refused = [one for one in outcomes if one.kind == "refused" and is_harmless(one.fault)]
    assert all("places, lines" in one.told for one in refused), refused[0]


def test_a_small_history_of_our_own_serves_where_the_files_came_without_one(tmp_path: Path) -> None:
    history = small_history(tmp_path / "history")
    outcomes = judge(tmp_path, range(len(FAULTS)), partial(of_history, history))
    assert len(commits(history)) == 11 and not [one for one in outcomes if one.kind == "wrong"]


def test_two_versions_of_a_directory_serve_where_there_is_no_history(tmp_path: Path) -> None:
    for name, text in {"old": "one\ntwo\n", "new": "one\nthree\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text)
    changes = partial(of_versions, tmp_path / "old", tmp_path / "new")
    (outcome,) = judge(tmp_path, [0], changes)
    assert (outcome.kind, outcome.told) == ("right", "changed a.txt, 1 hunk")
