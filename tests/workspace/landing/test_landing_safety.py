"""Landing and undo through `Branch` and `Workspace` (WS-49 … WS-58, acceptance 2, 3, 4, 9, 10, 12)."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.places import memory_place
from support.trees import read_tree, write_tree

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.tree.handles import exchange

LINES = b"".join(b"line %d\n" % n for n in range(1, 121))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "a.txt").write_bytes(LINES)
    (made / "b.txt").write_bytes(b"b\n")
    return made


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def branch(workspace: Workspace) -> Branch:
    return workspace.branch()


async def replace(branch: Branch, path: str, old: bytes, new: bytes) -> None:
    data = await branch.read_bytes(path)
    assert old in data
    await branch.write_file(path, data.replace(old, new))


async def test_a_link_swapped_in_while_landing_leads_nothing_outside(
    branch: Branch, root: Path, tmp_path: Path
) -> None:
    """Acceptance 6, the landing half."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "sub").mkdir()
    (tmp_path / "link").symlink_to(outside)
    here, there = (os.open(place, os.O_DIRECTORY) for place in (root, tmp_path))
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            with contextlib.suppress(FileNotFoundError):  # a landing is just replacing one of them
                exchange(here, b"sub", there, b"link")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for number in range(60):
            with contextlib.suppress(WorkspaceError):  # met the link, or no directory: refused
                await branch.write_file("sub/file", f"{number}\n")
                branch.land()
    finally:
        ended.set()
        swapper.join()
        os.close(here)
        os.close(there)
    assert list(outside.iterdir()) == []


# ------------------------------------------------------------------ kill -9


def killed_at(root: Path, data: Path, point: int, *, undo: bool) -> bool:
    """Land (or undo the newest landing) in a child that dies at its n-th write point."""
    child = os.fork()
    if child == 0:
        count = 0

        def checkpoint(_: str) -> None:
            nonlocal count
            count += 1
            if count == point:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            workspace = Workspace(root, data_dir=data)
            workspace._shared.landings.checkpoint = checkpoint  # pyright: ignore -- the seam for this test
            branch = workspace.open(workspace.branches()[0].id)
            if undo:
                workspace.landings()[-1].undo()
            else:
                branch.land(accept=["*"])
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.fixture
def memory() -> Iterator[Path]:
    with memory_place() as place:
        yield place


@pytest.mark.parametrize("undo", [False, True], ids=["landing", "undo"])
async def test_kill_9_at_write_points_of_a_50_path_landing(memory: Path, undo: bool) -> None:
    """Acceptance 2, with the branch's bases; `test_apply.py` visits every point of the engine."""
    root, data = memory / "ws", memory / "data"
    write_tree(root, {"a.txt": LINES, "b.txt": b"b\n"})
    with Workspace(root, data_dir=data) as workspace:
        branch = workspace.branch()
        for number in range(48):
            await branch.write_file(f"n{number % 5}/f{number}", f"{number}\n")
        await branch.delete("b.txt")
        await replace(branch, "a.txt", b"line 5\n", b"agent\n")
        if undo:
            branch.land(accept=["*"])
        before, pending = read_tree(root), branch.changes()
    outcomes: set[str] = set()
    point = 1
    while killed_at(root, data, point, undo=undo):
        with Workspace(root, data_dir=data) as workspace:
            branch = workspace.open(workspace.branches()[0].id)
            if read_tree(root) == before:
                outcomes.add("before")
                assert branch.changes() == pending, f"bases moved without files at point {point}"
            else:
                outcomes.add("after")
                assert branch.changes() != pending
                workspace.landings()[-1].undo()  # all of it is there, so all of it goes back
                assert read_tree(root) == before, f"torn at point {point}"
                assert branch.changes() == pending
        point += 7
    assert outcomes == {"before", "after"} and point > 60
