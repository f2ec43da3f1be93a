"""Directories nested deeper than Python's stack, and than a path can name (issue 10; SB-54).

Work is counted, not timed, so that a busy machine does not matter.
"""

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.branches import branch_of

from bowerbird.workspace.tree import handles, owned
from bowerbird.workspace.tree.descent import Descent
from bowerbird.workspace.tree.hiding import Hiding
from bowerbird.workspace.tree.open_layer import discard

DEEPER_THAN_THE_STACK = 1100


@pytest.fixture
def place(tmp_path: Path) -> Generator[Path]:
    """Give a directory that is emptied whatever happens: pytest's own removal recurses."""
    yield tmp_path
    for item in tmp_path.iterdir():
        discard(item)


def nest(directory: Path, levels: int, beside: tuple[str, ...] = ()) -> None:
    """Make directories one in the other, in each those of `beside`, and a file in the last."""
    fd = os.open(directory, handles.DIRECTORY)
    for _ in range(levels):
        for name in ("deep", *beside):
            os.mkdir(name, dir_fd=fd)
        inner = os.open("deep", handles.DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


async def opened(place: Path, levels: int, where: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many directories a listing and the mask of hidden names open."""
    place.mkdir()
    count = 0
    real = os.open

    def counted(*given: Any, **options: Any) -> int:
        nonlocal count
        count += 1
        return real(*given, **options)

    with branch_of(place, {"f": "1"}, hide=[".env"]) as branch, monkeypatch.context() as patched:
        below = place / "ws" if where == "workspace" else branch.processes().dirs().upper
        nest(below, levels, beside=("a", "z"))
        # One call of the kernel may walk a whole path; without it each name on the way is a call that counts.
        patched.setattr(handles, "_openat2", lambda: None)
        patched.setattr(os, "open", counted)
        found = await branch.list_files("**")
        branch.processes().dirs()
        branch.processes().capture()
    assert found["total"] == 2
    return count


@pytest.mark.parametrize("where", ["workspace", "branch"])
async def test_work_grows_with_the_depth_not_with_its_square(
    place: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3,000 levels cost each command 36 s: every directory was opened by its path from the top."""
    few = await opened(place / "few", 50, where, monkeypatch)
    many = await opened(place / "many", 200, where, monkeypatch)
    assert many < 5 * few, (few, many)


async def test_a_tree_deeper_than_the_stack_can_be_listed_reviewed_and_planned(place: Path) -> None:
    """Review and hiding asked each directory for the one above it, by recursion."""
    with branch_of(place, {"f": "1"}, hide=[".env", "/secret/*"]) as branch:
        nest(branch.processes().dirs().upper, DEEPER_THAN_THE_STACK)
        branch.processes().capture()
        branch.mark()  # now it lies in a frozen layer, whose files have paths too long for one call
        last = "/deep" * DEEPER_THAN_THE_STACK + "/bottom"
        assert last in (await branch.list_files("**"))["files"]
        assert last in {row.path for row in branch.diff().written}
        assert branch.plan_landing().entries
        assert branch.patches()


def test_hidden_names_are_found_at_any_depth() -> None:
    hides = Hiding([".env"])
    above = "/d" * 20_000
    assert hides(f"{above}/.env/x") and hides(f"{above}/.ENV") and not hides(f"{above}/x")


def test_a_directory_moved_while_it_is_gone_through_leads_nowhere(place: Path) -> None:
    (place / "tree/a/b").mkdir(parents=True)
    (place / "tree/a/c").mkdir()
    (place / "elsewhere/c").mkdir(parents=True)
    root = os.open(place / "tree", handles.DIRECTORY)
    way = Descent(root)
    try:
        assert way.open("") is not None and way.open("/a") is not None and way.open("/a/b") is not None
        (place / "tree/a/b").rename(place / "elsewhere/b")
        inner = way.open("/a/c")
        assert inner is not None and os.path.samestat(os.fstat(inner), (place / "tree/a/c").stat())
        assert way.open("/a/b") is None and way.open("/a/b/x") is None
    finally:
        way.close()
        os.close(root)


def test_directories_closed_at_every_level_are_opened_without_recursion(place: Path) -> None:
    nest(place, DEEPER_THAN_THE_STACK)
    root = os.open(place, handles.DIRECTORY)
    try:
        (place / "deep").chmod(0)
        fd = owned.open_beneath(root, "/deep" * DEEPER_THAN_THE_STACK)
        assert os.listdir(fd) == ["bottom"]
        os.close(fd)
    finally:
        os.close(root)


def test_several_may_delete_the_same_tree_at_once(tmp_path: Path) -> None:
    """A release and the next sandbox both clean up after one that is gone: neither fails, nothing is left."""
    for attempt in range(20):
        tree = tmp_path / f"tree{attempt}"
        for name in range(40):
            place = tree / f"d{name}" / "inner" / "innermost"
            place.mkdir(parents=True)
            (place / "file").write_text("x")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(discard, [tree] * 4))
        assert not tree.exists()
