"""A user who saves at any moment of a merge; what was merged then lands, or is in conflict with what was saved."""

import contextlib
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from support.user_saves import save_at

from bowerbird.core.errors import NotDirectory
from bowerbird.workspace import Branch, Workspace

SAVED = "the user's\n"


def nothing(place: Path) -> None:
    pass


def a_file(place: Path) -> None:
    place.write_text("old\n")


def a_link(place: Path) -> None:
    place.symlink_to("elsewhere")


def a_directory(place: Path) -> None:
    place.mkdir()


async def writes(child: Branch) -> None:
    await child.write_file("x", "the child's\n")


async def makes_a_directory(child: Branch) -> None:
    await child.write_file("x/y", "the child's\n")


async def deletes(child: Branch) -> None:
    await child.delete("x", recursive=True)


async def replaces(child: Branch) -> None:
    await deletes(child)
    await writes(child)


def save(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.write_text(SAVED)


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (nothing, writes), (nothing, makes_a_directory), (a_file, writes), (a_file, deletes),
        (a_link, deletes), (a_link, replaces), (a_directory, deletes), (a_directory, replaces),
    ],
)  # fmt: skip
@pytest.mark.parametrize("force", [False, True])
async def test_what_a_user_makes_at_any_moment_of_a_merge_is_not_landed_over(
    before: Callable[[Path], None], change, force: bool, tmp_path: Path
) -> None:
    for event in count():
        root = tmp_path / f"ws{event}"
        root.mkdir()
        before(root / "x")
        with Workspace(root, data_dir=tmp_path / f"data{event}") as workspace:
            parent = workspace.branch()
            child = parent.fork()
            await change(child)
            with save_at(event, lambda at=root / "x": save(at)) as came:
                with contextlib.suppress(NotDirectory):  # told so, and nothing was merged
                    parent.merge(child, force=force)
                if not came():
                    break
            parent.land(partial=True)
        assert (root / "x").is_file() and (root / "x").read_text() == SAVED, f"saved at event {event}"
    assert event > 20


@pytest.mark.parametrize("edits_again", [False, True])
async def test_a_forced_merge_gives_up_nothing_that_its_user_has_in_the_workspace(
    edits_again, tmp_path
) -> None:
    """Neither what was saved before the merge, nor what an earlier landing joined with the branch's lines."""
    lines = [f"line {n}\n" for n in range(9)]
    root = tmp_path / "ws"
    root.mkdir()
    file = root / "x"
    file.write_text("".join(lines))
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        parent = workspace.branch()
        child = parent.fork()
        await child.edit_file("x", "line 4", "the child's")
        await parent.edit_file("x", "line 8", "the parent's")
        file.write_text("".join([SAVED, *lines]))
        parent.land()
        if edits_again:
            await parent.edit_file("x", "line 6", "once more")
        await parent.edit_file("x", "line 4", "the parent's")
        assert parent.merge(child, force=True).conflicts == ("/x",)
        parent.land(partial=True)
        assert SAVED in file.read_text()
        assert parent.conflict("x").reason == "uncertain_base"


async def test_what_a_fork_wrote_over_unread_stays_in_conflict_however_it_is_merged(tmp_path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "x").write_text(SAVED)
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        parent = workspace.branch()
        child = parent.fork()
        await child.write_file("x", "the child's\n", seen="")
        assert parent.merge(child, force=True).written == ("/x",)
        assert [row.reason for row in parent.land(partial=True).refused] == ["uncertain_base"]
    assert (root / "x").read_text() == SAVED
