"""Whoever reads a branch while layers of it go away gets a whole answer of one state, never an error."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.trees import write_tree

from bowerbird.workspace import Branch, Workspace

LINES = "".join(f"line {n}\n" for n in range(40))
_at_layers: list[Callable[[], None]] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "os.scandir", "os.listdir") and _at_layers and "/layers/" in str(arguments[0]):
        _at_layers.pop()()


sys.addaudithook(_hook)


def _read_all(branch: Branch) -> bytes:
    with os.fdopen(branch.browse().open("/a.txt").fd, "rb") as file:
        return file.read()


READERS: dict[str, Callable[[Branch], object]] = {
    "review": lambda b: b.review()[0].record(),
    "diff": lambda b: b.diff().record(),
    "unified": lambda b: b.unified(),
    "changes": lambda b: b.changes(),
    "count": lambda b: b.count(),
    "plan": lambda b: b.plan_landing().id,
    "story": lambda b: b.git_story(),
    "files": lambda b: [(f.path, f.size, f.changed) for f in b.browse().files(100)[0]],
    "download": _read_all,
    "read": lambda b: asyncio.run(b.read_file("a.txt"))["content"],
    "bytes": lambda b: asyncio.run(b.read_bytes("a.txt")),
    "overlay": lambda b: b.read_overlay("a.txt"),
    "list": lambda b: asyncio.run(b.list_files())["files"],
    "search": lambda b: asyncio.run(b.search_files("of the branch"))["matches"],
}


def grown(workspace: Workspace) -> Branch:
    """A branch of several layers that the end of its turn makes one."""
    branch = workspace.branch()
    for number in range(4):
        asyncio.run(branch.write_file("a.txt", LINES.replace("line 7\n", f"of the branch {number}\n")))
        asyncio.run(branch.write_file(f"d/{number}.txt", f"of the branch {number}\n"))
        branch.mark()
    return branch


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same process", "another process"])
@pytest.mark.parametrize("name", READERS)
def test_a_reader_whose_layers_are_joined_on_the_way_tells_what_it_told_before(
    name: str, elsewhere: bool, tmp_path: Path
) -> None:
    root = write_tree(tmp_path / "ws", {"a.txt": LINES, "keep.txt": "kept\n"})
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        expected = READERS[name](grown(workspace))
        for nth in (0, 1, 2, 4, 7):
            branch = grown(workspace)
            if elsewhere:
                other = Workspace(root, data_dir=tmp_path / "data")
                reading = other.open(branch.id)
            else:
                other, reading = None, branch
            joined: list[threading.Thread] = []

            def join(branch: Branch = branch, joined: list[threading.Thread] = joined) -> None:
                ending = threading.Thread(target=branch.end_turn, args=("t_1",))
                joined.append(ending)
                ending.start()
                ending.join(0.3)

            _at_layers[:] = [join, *[lambda: None] * nth]
            try:
                found = READERS[name](reading)
                reached = not _at_layers
            finally:
                _at_layers.clear()
                for ending in joined:
                    ending.join()
                if other is not None:
                    other.close()
            assert found == expected or name in ("plan", "review"), nth
            if not reached:
                break
