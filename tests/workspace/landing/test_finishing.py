"""Landings that died half-way are finished before anybody looks at files (reliability 5, D-2)."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

import pytest

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace import Workspace

FILES = 30


def torn(root: Path, data: Path, at: int) -> None:
    """Leave what a process leaves that is killed while its landing puts files in place."""
    root.mkdir()
    for number in range(FILES):
        (root / f"f{number}.txt").write_text("old\n")
    child = os.fork()
    if child == 0:
        try:
            workspace = Workspace(root, data_dir=data)
            branch = workspace.branch()

            async def change() -> None:
                for number in range(FILES):
                    await branch.write_file(f"f{number}.txt", "new\n")

            asyncio.run(change())
            placed = 0

            def told(point: str) -> None:
                nonlocal placed
                placed += point.startswith("place")
                if placed == at:
                    os.kill(os.getpid(), signal.SIGKILL)

            workspace._shared.landings.checkpoint = told  # pyright: ignore -- the seam for this test
            branch.land()
        finally:
            os._exit(9)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def finished(data: Path) -> list[str]:
    with Workspace(data_dir=data) as workspace:
        return workspace.finish_landings()


def contents(root: Path) -> set[str]:
    return {path.read_text() for path in root.glob("f*.txt")}


def test_a_start_finishes_the_landings_of_every_workspace(tmp_path: Path) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        torn(root, tmp_path / "data", 10)
        assert contents(root) == {"old\n", "new\n"}
        assert [p.name[:13] for p in root.glob(".*")] == [".bowerbird-l_"], "one hidden place, nothing else"
    assert len(finished(tmp_path / "data")) == 2
    for root in roots:
        assert contents(root) == {"new\n"} and list(root.glob(".*")) == []
    assert finished(tmp_path / "data") == []


async def test_nobody_sees_the_hidden_place(tmp_path: Path) -> None:
    root = tmp_path / "one"
    torn(root, tmp_path / "data", 10)
    with Workspace(root, data_dir=tmp_path / "elsewhere") as workspace:
        assert list(root.glob(".bowerbird-l_*"))
        listed = await workspace.branch().list_files("**/*", include_ignored=True)
        assert listed["total"] == FILES


@pytest.mark.parametrize("broken", ["record.json", "steps.json"])
def test_one_that_cannot_be_read_stops_no_other(tmp_path: Path, broken: str) -> None:
    for name in ("one", "two"):
        torn(tmp_path / name, tmp_path / "data", 10)
    [first, _] = sorted((tmp_path / "data").glob("branches/*/landings/l_*"))
    (first / broken).write_text("{")
    assert len(finished(tmp_path / "data")) == 1
    with Workspace(tmp_path / "one", data_dir=tmp_path / "data") as workspace:
        assert asyncio.run(workspace.branch().list_files())["total"] == FILES


async def test_a_missing_layer_is_said_by_name(tmp_path: Path) -> None:
    """Reliability 12: it was an error without a name, and a 500 of the server."""
    (tmp_path / "ws").mkdir()
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        await branch.write_file("a.txt", "a")
        branch.end_turn("t_1")
    shutil.rmtree(next((tmp_path / "data").glob("branches/*/layers/1")))
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as workspace:
        with pytest.raises(WorkspaceError, match=r"layer 1 of branch b_.* is missing"):
            workspace.open(branch.id).diff()
        assert (await workspace.branch().list_files())["total"] == 0
