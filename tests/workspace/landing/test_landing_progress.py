"""What a landing and its undo tell while they run (reliability 7): every phase, file by file."""

from itertools import groupby
from pathlib import Path

import pytest

from bowerbird.core.errors import LandingRefused
from bowerbird.core.events import LandingProgress
from bowerbird.workspace import Branch, Workspace

PHASES = ["checking", "saving", "writing", "placing", "recording"]


async def changed(workspace: Workspace, root: Path) -> Branch:
    """12 files: made, changed, deleted; one in new directories, which are no files."""
    for number in range(8):
        (root / f"{number}.txt").write_text("old\n")
    branch = workspace.branch()
    for number in range(4):
        await branch.write_file(f"{number}.txt", "new\n")
        await branch.delete(f"{number + 4}.txt")
        await branch.write_file(f"made/deep/{number}.txt", "new\n")
    return branch


def by_phase(told: list[LandingProgress]) -> dict[str, list[LandingProgress]]:
    return {phase: list(found) for phase, found in groupby(told, key=lambda progress: progress.phase)}


def check(told: list[LandingProgress]) -> None:
    phases = by_phase(told)
    assert list(phases) == PHASES, "each once, in order"
    for found in phases.values():
        totals = {progress.total for progress in found}
        assert len(totals) == 1
        assert [progress.done for progress in found] == list(range(found[-1].total + 1)), (
            "one by one, to the end"
        )
    assert phases["writing"][-1].total == phases["placing"][-1].total == 12, "directories are no files"


async def test_a_landing_and_its_undo_tell_each_file_of_each_phase(tmp_path: Path) -> None:
    """Reliability 7: an undo told nothing at all."""
    root = tmp_path / "work"
    root.mkdir()
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = await changed(workspace, root)
        told: list[LandingProgress] = []
        landing = branch.land(told=told.append)
        check(told)
        assert {(progress.kind, progress.undoes) for progress in told} == {("land", None)}
        for through_workspace in (False, True):
            told.clear()
            if through_workspace:
                workspace.undo(landing.id, told=told.append)
            else:
                landing.undo(told=told.append)
            check(told)
            assert {(progress.kind, progress.undoes) for progress in told} == {("undo", landing.id)}
            landing = branch.land()


async def test_who_listens_takes_nothing_from_the_points_of_a_landing(tmp_path: Path) -> None:
    """`told` once stood in the place of the points where tests kill a landing."""
    root = tmp_path / "work"
    root.mkdir()
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = await changed(workspace, root)
        points: list[str] = []
        workspace._shared.landings.checkpoint = points.append  # pyright: ignore -- the seam for this test
        told: list[LandingProgress] = []
        branch.land(told=told.append)
        assert told and {"prepared", "applying", "settle", "done"} <= set(points)


async def test_what_is_taken_back_is_told_too(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = await changed(workspace, root)

        def meddle(point: str) -> None:
            if point.startswith("place"):
                (root / "3.txt").write_text("mine, written meanwhile\n")

        workspace._shared.landings.checkpoint = meddle  # pyright: ignore -- the seam for this test
        told: list[LandingProgress] = []
        with pytest.raises(LandingRefused):
            branch.land(told=told.append)
        back = by_phase(told)["taking_back"]
        assert (back[0].done, back[-1].done, back[-1].total) == (0, 12, 12)
