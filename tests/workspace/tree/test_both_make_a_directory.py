"""A directory that the branch made and the user made too: it shows what either puts there (WS-5)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.branches import view_of
from support.trees import read_tree, write_tree

from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.tree.layers import Storage


@pytest.fixture(params=[True, False], ids=["whiteouts", "marks"])
def workspace(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    if not request.param:
        monkeypatch.setattr(
            "bowerbird.workspace.registry.registry.probe_storage",
            lambda _: Storage(False, "no whiteouts here"),
        )
    write_tree(tmp_path / "ws", {"old/f": "f\n"})
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as opened:
        yield opened


async def files_of(branch: Branch) -> dict[str, bytes]:
    return {path: held[1] for path, (kind, held) in (await view_of(branch)).items() if kind == "file"}


async def test_what_the_user_puts_into_a_directory_that_the_branch_made_shows_on_the_branch(
    workspace, tmp_path
):
    """WS-5: it was hidden for good, also after the directory had landed."""
    branch = workspace.branch()
    await branch.write_file("new/deep/a", "a\n")
    await branch.mkdir("empty")
    await branch.move("old", "moved")
    branch.end_turn("t_1")
    for late in ("new/u", "new/deep/u", "empty/u", "moved/u"):
        write_tree(tmp_path / "ws", {late: "user\n"})
    seen = await files_of(branch)
    assert {path for path, held in seen.items() if held == b"user\n"} == {
        "/new/u", "/new/deep/u", "/empty/u", "/moved/u"
    }  # fmt: skip
    assert seen["/new/deep/a"] == b"a\n" and seen["/moved/f"] == b"f\n"
    assert branch.changes().record()["written"]
    branch.land()
    write_tree(tmp_path / "ws", {"new/deep/later": "later\n"})
    assert (await files_of(branch))["/new/deep/later"] == b"later\n"
    assert not branch.changes().written


async def test_what_the_branch_replaced_by_a_directory_stays_replaced(workspace, tmp_path):
    """WS-5: what stood there at the fork point stays deleted, and what the user adds to it goes with it."""
    branch = workspace.branch()
    await branch.delete("old", recursive=True)
    await branch.write_file("old/g", "g\n")
    write_tree(tmp_path / "ws", {"old/u": "user\n"})
    assert await files_of(branch) == {"/old/g": b"g\n"}
    branch.end_turn("t_1")
    assert await files_of(branch) == {"/old/g": b"g\n"}


async def test_what_the_user_added_to_a_replaced_directory_is_named_when_it_lands(workspace, tmp_path):
    """WS-5: it stays, the branch does not show it, and the person hears of it."""
    branch = workspace.branch()
    await branch.delete("old", recursive=True)
    await branch.write_file("old/g", "g\n")
    write_tree(tmp_path / "ws", {"old/u": "user\n"})
    (note,) = branch.land().history[0].notes
    assert note.startswith("old/u: added since to a directory that the branch replaced; it stays")
    assert (tmp_path / "ws/old/u").read_text() == "user\n"
    await branch.write_file("elsewhere", "x\n")
    assert not branch.land().history


async def test_a_file_or_link_of_the_user_in_the_place_of_that_directory_shows_nothing(workspace, tmp_path):
    """WS-5: a link at that name leads no look outside."""
    write_tree(tmp_path / "elsewhere", {"secret": "s\n"})
    branch = workspace.branch()
    await branch.write_file("new/a", "a\n")
    await branch.write_file("other/b", "b\n")
    (tmp_path / "ws/new").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "ws/other").write_text("a file\n")
    expected = {"/old/f": b"f\n", "/new/a": b"a\n", "/other/b": b"b\n"}
    assert await files_of(branch) == expected
    branch.end_turn("t_1")
    assert await files_of(branch) == expected


async def test_a_directory_that_the_branch_put_a_file_into_does_not_land_over_the_file_its_user_made_of_it(
    workspace, tmp_path
):
    place = tmp_path / "ws" / "made of it"
    place.mkdir()
    branch = workspace.branch()
    await branch.write_file("made of it/new.txt", "the agent's\n")
    place.rmdir()
    place.write_text("the user's\n")
    refused = branch.land(partial=True).refused
    assert [row.path for row in refused] == ["/made of it/new.txt"]
    assert place.read_text() == "the user's\n"


async def test_a_call_that_is_taken_back_leaves_what_the_user_made(workspace, tmp_path):
    """WS-5: the directory goes with the call, the user's stays."""
    branch = workspace.branch()
    mark = branch.mark()
    await branch.write_file("new/a", "a\n")
    write_tree(tmp_path / "ws", {"new/u": "user\n"})
    branch.rollback(mark)
    assert await files_of(branch) == {"/old/f": b"f\n", "/new/u": b"user\n"}
    assert not branch.changes().written and not branch.changes().deleted


async def test_forks_show_it_and_merge_it_as_no_change_of_theirs(workspace, tmp_path):
    """WS-40: what the user made is nobody's change."""
    branch = workspace.branch()
    await branch.write_file("new/a", "a\n")
    child = branch.fork()
    await child.write_file("new/c", "c\n")
    await child.write_file("own/d", "d\n")
    write_tree(tmp_path / "ws", {"new/u": "user\n", "own/u": "user\n"})
    assert {"/new/u", "/own/u", "/new/a", "/new/c"} <= set(await files_of(child))
    branch.merge(child)
    assert {"/new/u", "/own/u", "/own/d", "/new/c"} <= set(await files_of(branch))
    branch.land()
    assert {"/new/u", "/new/a", "/new/c", "/own/u", "/own/d"} <= set(read_tree(tmp_path / "ws"))
