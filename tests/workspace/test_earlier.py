"""Looks back: a branch at a snapshot, files before a branch changed them, what a landing did."""

import os
from pathlib import Path

import pytest

from bowerbird.core.errors import NotFound
from bowerbird.workspace import Workspace


def text_of(file: object) -> str:
    fd = file.fd  # type: ignore[attr-defined] - `OpenFile`, which no caller outside needs by name
    with os.fdopen(fd) as stream:
        return stream.read()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    place = tmp_path / "place"
    place.mkdir()
    (place / "a.txt").write_text("before\n")
    return Workspace(place, data_dir=tmp_path / "data")


async def test_a_look_at_a_snapshot_shows_files_as_they_were_then(workspace: Workspace) -> None:
    branch = workspace.branch()
    await branch.write_file("/a.txt", "first\n")
    then = branch.end_turn("t_1")
    await branch.write_file("/a.txt", "second\n")
    await branch.write_file("/b.txt", "new\n")
    assert [facts.path for facts in branch.browse(then.id).files(10)[0]] == ["/a.txt"]
    assert text_of(branch.browse(then.id).open("/a.txt")) == "first\n"
    assert text_of(branch.browse().open("/a.txt")) == "second\n"
    assert text_of(branch.open_base("/a.txt")) == "before\n"
    with pytest.raises(NotFound):
        branch.open_base("/b.txt")
    with pytest.raises(NotFound):
        branch.browse("s_unknown")
    workspace.close()


async def test_a_landing_tells_its_diff(workspace: Workspace) -> None:
    branch = workspace.branch()
    await branch.write_file("/a.txt", "after\n")
    await branch.write_file("/dir/b.txt", "new\n")
    landing = branch.land()
    told = landing.diff()
    assert [(row.path, row.kind) for row in told.written] == [
        ("/a.txt", "modify"),
        ("/dir/b.txt", "create"),
    ]
    assert told.written[0].hunks[0].text == "-before\n+after\n"
    landing.undo()
    assert landing.diff(["/a.txt"]).written == told.written[:1]
    workspace.close()
