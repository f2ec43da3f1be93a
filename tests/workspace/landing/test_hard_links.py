"""Files of the workspace with more names than one: a landing splits them, and says so before and after (GI-1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.landing.hard_links import split_note
from bowerbird.workspace.marks.flags import FlagRules


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "a.txt").write_text("old\n")
    (made / "other.txt").hardlink_to(made / "a.txt")
    return made


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened


async def changed(workspace: Workspace) -> Branch:
    branch = workspace.branch()
    await branch.write_file("a.txt", "new\n")
    return branch


async def test_a_person_sees_it_and_an_automatic_landing_leaves_it(workspace: Workspace) -> None:
    """GI-1."""
    branch = await changed(workspace)
    entry = branch.plan_landing().entries[0]
    assert (entry.flags, entry.grade, entry.links) == (("hard-link",), "held", 2)
    left = branch.land(partial=True, automatic=True).refused
    assert [(row.path, row.reason) for row in left] == [("/a.txt", "held: hard-link")]


async def test_a_landing_says_what_it_split_and_an_undo_what_stays_so(
    workspace: Workspace, root: Path
) -> None:
    """GI-1."""
    landing = (await changed(workspace)).land()
    assert landing.history[0].notes == ("a.txt had other names (hard links): they keep the old bytes",)
    assert [(root / name).read_text() for name in ("a.txt", "other.txt")] == ["new\n", "old\n"]
    undone = landing.undo()
    assert (root / "a.txt").read_text() == "old\n"
    assert not (root / "a.txt").samefile(root / "other.txt")
    (said,) = undone.history[0].notes
    assert (
        said
        == "a.txt: the old bytes are back, but not the hard links to other names, which the landing split"
    )


async def test_settings_can_say_that_hard_links_do_not_matter(root: Path, tmp_path: Path) -> None:
    """GI-1: whoever keeps backups as hard links wants them split."""
    rules = FlagRules(unflag=("a.txt",))
    with Workspace(root, data_dir=tmp_path / "data", rules=rules) as workspace:
        entry = (await changed(workspace)).plan_landing().entries[0]
    assert entry.flags == ()


def test_a_name_begins_no_line_of_its_own() -> None:
    """GI-1: an agent chooses names; a note is one line."""
    assert split_note(["/a\nlanded everything"]).startswith("a\\nlanded everything had other names")
