"""A renamed file or directory lands at both of its names or at none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bowerbird.core.errors import LandingRefused
from bowerbird.workspace import Branch, Workspace

TEXT = "".join(f"line {n}\n" for n in range(30))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "job.txt").write_text(TEXT)
    (made / "other.txt").write_text("other\n")
    return made


@pytest.fixture
def branch(root: Path, tmp_path: Path) -> Iterator[Branch]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened.branch()


@pytest.mark.parametrize("edited", [False, True], ids=["as it was", "and edited"])
async def test_a_rename_to_a_marked_name_stays_whole_and_discard_takes_no_only_copy(branch, root, edited):
    await branch.move("job.txt", ".github/workflows/job.yml")
    if edited:
        await branch.edit_file(".github/workflows/job.yml", "line 3\n", "line three\n")
    await branch.write_file("other.txt", "changed\n")
    landing = branch.land(partial=True)
    assert [entry.path for entry in landing.entries] == ["/other.txt"]
    assert [row.path for row in landing.refused] == ["/.github/workflows/job.yml", "/job.txt"]
    assert "/.github/workflows/job.yml" in landing.refused[1].reason
    branch.discard(keep=False)
    assert (root / "job.txt").read_text() == TEXT


async def test_accepted_it_lands_at_both_names(branch, root):
    await branch.move("job.txt", ".github/workflows/job.yml")
    branch.land(accept=[".github/workflows/job.yml"])
    assert (root / ".github/workflows/job.yml").read_text() == TEXT and not (root / "job.txt").exists()


async def test_a_rename_whose_old_file_its_user_changed_leaves_no_half(branch, root):
    await branch.move("job.txt", "renamed.txt")
    (root / "job.txt").write_text(TEXT + "the user's\n")
    with pytest.raises(LandingRefused):
        branch.land()
    branch.land(partial=True)
    assert not (root / "renamed.txt").exists() and (root / "job.txt").read_text().endswith("the user's\n")


async def test_a_rename_to_a_name_that_its_user_made_too_keeps_the_old_one(branch, root):
    await branch.move("job.txt", "renamed.txt")
    (root / "renamed.txt").write_text("the user's\n")
    branch.land(partial=True)
    assert (root / "job.txt").read_text() == TEXT


@pytest.mark.parametrize("by_merge", [False, True], ids=["landing", "merge"])
async def test_a_file_that_was_moved_stays_although_another_deleted_one_is_more_like_it(
    branch, root, by_merge
):
    (root / "twin.txt").write_text(TEXT.replace("line 3\n", "line three\n"))
    fork = branch.fork() if by_merge else branch
    await fork.move("job.txt", "renamed.txt")
    await fork.edit_file("renamed.txt", "line 3\n", "line three\n")
    await fork.delete("twin.txt")
    (root / "renamed.txt").write_text("the user's\n")
    if by_merge:
        branch.merge(fork)
    branch.land(partial=True)
    assert (root / "job.txt").read_text() == TEXT and (root / "renamed.txt").read_text() == "the user's\n"


async def test_a_landing_by_policy_takes_no_half_of_a_rename(root, tmp_path):
    with Workspace(root, data_dir=tmp_path / "data2") as opened:
        branch = opened.branch(policy="turn")
        await branch.move("job.txt", "Makefile")
        await branch.write_file("other.txt", "changed\n")
        landing = branch.land(partial=True, automatic=True)
        assert [entry.path for entry in landing.entries] == ["/other.txt"]
        assert (root / "job.txt").exists()


@pytest.mark.parametrize("named", ["*", "/*"])
async def test_accepting_a_file_of_the_name_star_accepts_nothing_else(branch, root, named):
    await branch.write_file("*", "#!/bin/sh\n")
    await branch.write_file(".github/workflows/ci.yml", "on: push\n")
    with pytest.raises(LandingRefused) as caught:
        branch.land(accept=[named])
    assert [row["path"] for row in caught.value.refused] == ["/.github/workflows/ci.yml"]
    assert branch.land(["*"], accept=[named]).refused == ()
    branch.land(accept=["*"])  # no file of that name waits any more: it is all
    assert (root / ".github/workflows/ci.yml").exists()


async def test_a_file_whose_name_something_else_has_now_stays_until_its_new_name_lands(branch, root):
    """Moved away and replaced: what was there would be on the branch only."""
    await branch.move("job.txt", "renamed.txt")
    await branch.move("other.txt", "job.txt")
    (root / "renamed.txt").write_text("the user's\n")
    landing = branch.land(partial=True)
    assert landing.entries == ()
    assert {row.path for row in landing.refused} == {"/job.txt", "/other.txt", "/renamed.txt"}
    assert (root / "job.txt").read_text() == TEXT and (root / "other.txt").read_text() == "other\n"


async def test_an_edited_file_lands_beside_a_copy_of_it_that_does_not(branch, root):
    """It is still there, so nothing was moved."""
    await branch.write_file("copy.txt", TEXT)
    await branch.edit_file("job.txt", "line 3\n", "line three\n")
    (root / "copy.txt").write_text("the user's\n")
    landing = branch.land(partial=True)
    assert [entry.path for entry in landing.entries] == ["/job.txt"]
