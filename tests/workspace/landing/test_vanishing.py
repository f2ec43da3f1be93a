"""WS-21: a file that is gone for a moment while it lands, as where an editor deletes and writes it anew."""

import os
from pathlib import Path

import pytest

from bowerbird.core.errors import LandingRefused
from bowerbird.workspace import Workspace
from bowerbird.workspace.tree.real_directory import Beneath, Gone


class DeletedAfterTheLook(Beneath):
    """A tree whose files go as soon as they were looked at."""

    def lstat(self, path: bytes) -> os.stat_result | None:
        found = super().lstat(path)
        if found is not None:
            (self.root / os.fsdecode(path)).unlink()
        return found


def test_a_file_that_goes_between_look_and_reading_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("x")
    with DeletedAfterTheLook(tmp_path) as tree:
        assert tree.version(b"a/file") is None
    with Beneath(tmp_path) as tree, pytest.raises(Gone) as error:
        tree.open(b"a/file")
    assert error.value.filename == "a/file"


@pytest.mark.parametrize("phase", ["saving", "writing", "placing"])
async def test_a_landing_names_the_file_that_went_meanwhile(tmp_path: Path, phase: str) -> None:
    """As "changed while landing", and the rest is as it was."""
    root = tmp_path / "work"
    root.mkdir()
    for number in range(40):
        (root / f"{number}.txt").write_text("old\n")
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        branch = workspace.branch()
        for number in range(40):
            await branch.write_file(f"{number}.txt", "new\n")
        told: list[str] = []

        def meddle(progress) -> None:
            if progress.phase == phase and phase not in told:
                (root / "33.txt").unlink(missing_ok=True)
            told.append(progress.phase)

        with pytest.raises(LandingRefused) as error:
            branch.land(told=meddle)
        assert phase in told
        assert [(row["path"], row["reason"]) for row in error.value.refused] == [
            ("/33.txt", "changed while landing")
        ]
        assert {path.read_text() for path in root.glob("*.txt")} == {"old\n"}
