"""A fork of a whole session: what is pending in the parent is pending in the child (SE-36)."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.branches import view_of
from support.trees import read_tree, write_tree

from bowerbird.core.errors import InvalidArgument, WorkspaceError
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.tree.layers import Storage

FILES = {
    "a": "1\n2\n3\n",
    "d/x": "x\n",
    "d/e/y": "y\n",
    "d/e/z": "z\n",
    "keep": "k\n",
    "run.sh": "#!/bin/sh\n",
}


@pytest.fixture(params=[True, False], ids=["whiteouts", "marks"])
def workspace(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workspace]:
    if not request.param:
        monkeypatch.setattr(
            "bowerbird.workspace.registry.registry.probe_storage",
            lambda _: Storage(False, "no whiteouts here"),
        )
    write_tree(tmp_path / "ws", FILES)
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data") as opened:
        yield opened


def shown(branch: Branch) -> Any:
    return branch.changes(), branch.diff(), branch.unified()


async def change_at_random(branch: Branch, chance: random.Random) -> None:
    """One change of any kind; one that is refused is part of the game."""
    paths = [*FILES, "new/n", "new", "d", "d/e", "other"]
    path, text = chance.choice(paths), f"{chance.randrange(1000)}\n"
    try:
        match chance.randrange(7):
            case 0 | 1:
                await branch.write_file(path, text)
            case 2:
                await branch.delete(path, recursive=True)
            case 3:
                await branch.mkdir(path)
            case 4:
                await branch.move(path, chance.choice(paths))
            case 5:
                await branch.set_executable(path, chance.random() < 0.5)
            case _:
                branch.end_turn(f"t_{text.strip()}")
    except (InvalidArgument, WorkspaceError):
        return


@pytest.mark.parametrize("seed", range(20))
async def test_a_carrying_fork_shows_lands_and_takes_back_what_its_parent_would(
    workspace: Workspace, tmp_path: Path, seed: int
) -> None:
    """Equal view, changes and diff; landing both in any order does each change once; undo brings back all."""
    chance = random.Random(seed)
    root = tmp_path / "ws"
    parent = workspace.branch("parent")
    for _ in range(chance.randrange(1, 12)):
        await change_at_random(parent, chance)
    child = parent.fork("child", carry=True)
    if chance.random() < 0.3:
        child = child.fork("grandchild", carry=True)
    assert shown(child) == shown(parent)
    assert await view_of(child) == await view_of(parent)
    before = read_tree(root)
    first, second = (parent, child) if chance.random() < 0.5 else (child, parent)
    landing = first.land(accept=["*"])
    landed = read_tree(root)
    second.land(accept=["*"])
    assert read_tree(root) == landed
    landing.undo()
    assert read_tree(root) == before
    assert shown(child) == shown(parent) or second.changes().record() == {"written": [], "deleted": []}


@pytest.mark.parametrize("seed", range(20))
async def test_what_a_carrying_fork_does_later_is_its_own(
    workspace: Workspace, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    root = tmp_path / "ws"
    parent = workspace.branch("parent")
    for _ in range(6):
        await change_at_random(parent, chance)
    told, seen = shown(parent), await view_of(parent)
    child = parent.fork("child", carry=True)
    mark = child.mark()
    for _ in range(6):
        await change_at_random(child, chance)
    assert (shown(parent), await view_of(parent)) == (told, seen)
    before = read_tree(root)
    landing = child.land(accept=["*"])
    on_disk = {path for path, (kind, _, _) in read_tree(root).items() if kind == "file"}
    assert on_disk == {path for path, (kind, _) in (await view_of(child)).items() if kind == "file"}
    landing.undo()
    assert read_tree(root) == before
    fresh = parent.fork("again", carry=True)
    assert shown(fresh) == told
    if child.snapshots()[-1].turn is None:
        child.rollback(mark)
        assert shown(child) == told


async def test_an_earlier_state_is_carried_as_it_was_then(workspace: Workspace, tmp_path: Path) -> None:
    branch = workspace.branch()
    await branch.write_file("a", "first\n")
    await branch.write_file("new", "n\n")
    then = branch.end_turn("t_1")
    told = shown(branch)
    await branch.write_file("a", "second\n")
    await branch.delete("new")
    await branch.write_file("late", "l\n")
    branch.end_turn("t_2")
    child = branch.fork("child", snapshot=then.id, carry=True)
    assert shown(child) == told
    child.land()
    assert (tmp_path / "ws" / "a").read_text() == "first\n"
    assert not (tmp_path / "ws" / "late").exists()


async def test_what_landed_after_the_fork_point_is_not_pending_in_the_fork(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The workspace is ahead of that state: a fork must not offer to take it back."""
    branch = workspace.branch()
    await branch.write_file("a", "first\n")
    await branch.write_file("other", "o\n")
    then = branch.end_turn("t_1")
    await branch.write_file("a", "second\n")
    branch.end_turn("t_2")
    landing = branch.land(["a"])
    child = branch.fork("child", snapshot=then.id, carry=True)
    assert child.changes().record() == {"written": ["/other"], "deleted": []}
    assert child.read_overlay("a") == b"first\n"
    child.land()
    assert (tmp_path / "ws" / "a").read_text() == "second\n"
    landing.undo()
    assert branch.fork("late", snapshot=then.id, carry=True).changes().record() == {
        "written": ["/a", "/other"],
        "deleted": [],
    }


async def test_part_of_a_file_landed_leaves_the_rest_pending_in_a_fork(workspace: Workspace) -> None:
    branch = workspace.branch()
    await branch.write_file("a", "one\n2\nthree\n" + "same\n" * 20 + "end\n")
    branch.end_turn("t_1")
    branch.land()
    await branch.write_file("a", "ONE\n2\nthree\n" + "same\n" * 20 + "END\n")
    then = branch.end_turn("t_2")
    hunks = branch.diff().written[0].hunks
    branch.land(hunks=[hunks[0].id])
    child = branch.fork("child", snapshot=then.id, carry=True)
    assert shown(child) == shown(branch)
    assert len(child.diff().written[0].hunks) == 1


async def test_what_untrusted_text_had_shaped_stays_flagged_in_a_fork(workspace: Workspace) -> None:
    """WS-65 holds for the fork too."""
    branch = workspace.branch().bound(turn="t_1")
    await branch.write_file("a", "told by a page\n")
    branch.taint("t_1")
    child = branch.fork("child", carry=True)
    [entry] = child.plan_landing().entries
    assert entry.tainted
    assert child.plan_landing() == branch.plan_landing()


async def test_a_carrying_fork_holds_the_changes_alone_and_shares_their_bytes(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Cost grows with the changes, not with the workspace."""
    for number in range(300):
        (tmp_path / "ws" / f"f{number}").write_text("x")
    branch = workspace.branch()
    await branch.write_file("a", "changed\n")
    branch.end_turn("t_1")
    child = branch.fork("child", carry=True)
    places = [tmp_path / "data" / "branches" / made.id for made in (branch, child)]
    files = [
        [p for p in place.rglob("*") if p.is_file() and p.read_bytes() == b"changed\n"] for place in places
    ]
    assert len(files[0]) == len(files[1]) == 1
    assert files[0][0].stat().st_ino == files[1][0].stat().st_ino
    assert sum(1 for _ in (places[1] / "layers").rglob("*")) == 2
