"""kill -9 while a fork is merged: all of it is there or nothing, and merging again completes it (WS-45, WS-59, DE-12)."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from bowerbird.core.errors import NotFound
from bowerbird.workspace import Branch, Workspace

FILES = [f"/d{n % 3}/f{n}.txt" for n in range(8)]

# Dies at the N-th pass of a point inside the merge, in a process of its own.
MERGE = """
import os, signal, sys
from pathlib import Path
from bowerbird.workspace import Workspace
from bowerbird.workspace.history import layer_builder, layer_shelf
from bowerbird.workspace.tree import manifest

root, data, parent, child, point, count = sys.argv[1:]
passes = 0

def dying(owner, name, after):
    original = getattr(owner, name)
    def wrapped(*args, **kwargs):
        global passes
        passes += 1
        hit = passes == int(count)
        if hit and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if hit:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, wrapped)

workspace = Workspace(Path(root), data_dir=Path(data))
branch = workspace.open(parent)
owner, name, when = point.split(":")
dying({"builder": layer_builder.LayerBuilder, "manifest": manifest.ManifestFile, "shelf": layer_shelf.LayerShelf}[owner], name,
      when == "after")
branch.merge(child)
"""


async def content(branch: Branch) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for path in FILES:
        with suppress(NotFound):
            found[path] = await branch.read_bytes(path)
    return found


@pytest.mark.parametrize(
    ("point", "count"),
    [
        ("builder:put:before", 1), ("builder:put:after", 1), ("builder:put:after", 5), ("builder:put:after", 8),
        ("shelf:_adopt:before", 1), ("manifest:update:before", 1), ("manifest:update:after", 1),
        ("manifest:update:before", 2), ("manifest:update:after", 2), ("shelf:_adopt:after", 1),
    ],
)  # fmt: skip
async def test_a_merge_that_is_killed_is_whole_or_not_there_and_can_be_repeated(
    tmp_path: Path, point: str, count: int
) -> None:
    root, data = tmp_path / "root", tmp_path / "data"
    (root / "d0").mkdir(parents=True)
    (root / "d0" / "f0.txt").write_text("of the workspace\n")
    with Workspace(root, data_dir=data) as workspace:
        parent = workspace.branch()
        await parent.write_file("/mine.txt", "the parent's\n")
        child = parent.fork()
        for path in FILES:
            await child.write_file(path, f"new {path}\n")
        wanted = await content(child)
        ids = parent.id, child.id
    done = subprocess.run(
        [sys.executable, "-c", MERGE, str(root), str(data), *ids, point, str(count)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == -9, f"{point} {count} was not passed: {done.stderr}"
    with Workspace(root, data_dir=data) as workspace:
        parent, child = workspace.open(ids[0]), workspace.open(ids[1])
        before = {"/d0/f0.txt": b"of the workspace\n"}
        assert await content(parent) in (before, wanted)
        assert await content(child) == wanted
        parent.merge(child)
        assert await content(parent) == wanted
        again = parent.merge(child)
        assert not again.written and not again.deleted and not again.conflicts
        assert await parent.read_bytes("/mine.txt") == b"the parent's\n"
    assert (root / "d0" / "f0.txt").read_text() == "of the workspace\n"
    assert sorted(path.name for path in root.rglob("*")) == ["d0", "f0.txt"]
