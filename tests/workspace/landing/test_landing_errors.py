"""A landing that meets errors: all before, all after, or a record that names the way out (engine 1, D-1, D-2)."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.failing_calls import ERRNOS, FailingCalls
from support.landing_drill import PHASES, Phase, Scene, Totals, count_calls, picture, trial
from support.nobody import as_nobody
from support.places import memory_place

from bowerbird.core.errors import InvalidArgument, LandingRefused, LandingStuck
from bowerbird.workspace import Branch, Workspace

TRIALS = 40  # a phase; `benchmarks/landing_errors.py` makes all of them


@pytest.mark.parametrize("phase", PHASES)
def test_a_system_call_that_fails_tears_and_bricks_nothing(phase: Phase) -> None:
    """Issue 10, point 3; the pairs of call and errno are spread over all of them."""
    totals = Totals()
    with memory_place() as place:
        scene = Scene(place, phase)
        pairs = [(at, number) for at in range(1, count_calls(scene) + 1) for number in ERRNOS]
        for at, number in pairs[7 :: len(pairs) // TRIALS]:
            trial(scene, FailingCalls(at, number), totals)
    assert totals.trials >= TRIALS
    assert totals.wrong == []


def test_what_fails_once_all_has_landed_is_not_told_as_nothing_landed() -> None:
    """Looking for what to say beside it raised: "nothing landed: Input/output error", over files that had."""
    totals = Totals()
    with memory_place() as place:
        scene = Scene(place, "land")
        count = count_calls(scene)
        for at in range(count - 60, count + 1):
            trial(scene, FailingCalls(at, errno.EIO), totals)
    assert totals.wrong == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    (made / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (made / name).write_text(f"old {name}\n")
    return made


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(root, data_dir=tmp_path / "data") as opened:
        yield opened


async def changed(workspace: Workspace) -> Branch:
    branch = workspace.branch()
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        await branch.write_file(name, f"new {name}\n")
    return branch


def renames_of(name: bytes, *, from_the: int = 1) -> Callable[[str, tuple[Any, ...]], bool]:
    """Every rename to or from a name fails, from the n-th on."""
    seen = 0

    def fits(call: str, arguments: tuple[Any, ...]) -> bool:
        nonlocal seen
        if call not in ("rename", "renameat2") or name not in arguments:
            return False
        seen += 1
        return seen >= from_the

    return fits


async def test_an_error_that_stays_is_taken_back(workspace: Workspace, root: Path) -> None:
    """The landing stops at the last file; the first two come back."""
    branch = await changed(workspace)
    before = picture(root)
    calls = FailingCalls(number=errno.EIO, fits=renames_of(b"c.txt"))
    with calls.armed(), pytest.raises(Exception, match="nothing landed"):
        branch.land()
    assert picture(root) == before
    assert workspace.landings() == [] and not list(root.rglob(".bowerbird*"))
    assert branch.land().state == "done", "nothing is in its way afterwards"


async def stuck(workspace: Workspace) -> tuple[Branch, str]:
    """A landing that stops at `sub/c.txt` and cannot take `a.txt` back."""
    branch = await changed(workspace)
    first, last = renames_of(b"a.txt", from_the=2), renames_of(b"c.txt")
    calls = FailingCalls(number=errno.EIO, fits=lambda call, given: first(call, given) or last(call, given))
    with calls.armed(), pytest.raises(LandingStuck, match=r"bowerbird landings fix l_"):
        branch.land()
    [landing] = workspace.landings()
    assert landing.state == "needs_attention"
    assert [row.path for row in landing.troubles] == ["/a.txt"]
    assert "Input/output error" in landing.troubles[0].reason
    return branch, landing.id


async def test_a_landing_that_is_stuck_blocks_nothing(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    branch, landing = await stuck(workspace)
    with Workspace(root, data_dir=tmp_path / "data") as again:
        other = again.branch()
        await other.write_file("other.txt", "x")
        assert other.land().state == "done"
        assert [item.state for item in again.landings()] == ["needs_attention", "done"]
    assert branch.diff().written and (await branch.read_file("b.txt"))["content"] == "new b.txt\n"
    await branch.write_file("more.txt", "a new turn")
    with pytest.raises(InvalidArgument, match="nothing to fix"):
        workspace.fix_landing(next(i.id for i in workspace.landings() if i.id != landing), "retry")
    branch.discard()


async def test_a_stuck_landing_can_be_tried_again(workspace: Workspace, root: Path) -> None:
    branch, landing = await stuck(workspace)
    assert workspace.fix_landing(landing, "retry").state == "done"
    assert all((root / name).read_text() == f"new {name}\n" for name in ("a.txt", "b.txt", "sub/c.txt"))
    assert branch.changes().record() == {"written": [], "deleted": []} and not list(root.rglob(".bowerbird*"))


async def test_a_stuck_landing_can_be_taken_back(workspace: Workspace, root: Path) -> None:
    branch, landing = await stuck(workspace)
    assert workspace.fix_landing(landing, "take_back").state == "undone"
    assert all((root / name).read_text() == f"old {name}\n" for name in ("a.txt", "b.txt", "sub/c.txt"))
    assert len(branch.changes().written) == 3 and not list(root.rglob(".bowerbird*"))


async def test_a_stuck_landing_can_be_given_up(workspace: Workspace, root: Path) -> None:
    branch, landing = await stuck(workspace)
    seen = picture(root)
    assert workspace.fix_landing(landing, "give_up").state == "given_up"
    assert picture(root) == seen and not list(root.rglob(".bowerbird*"))
    assert branch.changes().written == ("/b.txt", "/sub/c.txt"), (
        "what stands there has landed, the rest is pending"
    )


# ------------------------------------------------------------------ what is known before

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def land_as_nobody(place: Path, *others: Path, partial: bool = False) -> str:
    """Land the only branch of `place` without rights; `others` stay root's."""

    def work() -> str:
        with Workspace(place / "ws", data_dir=place / "data") as workspace:
            [info] = workspace.branches()
            landing = workspace.open(info.id).land(partial=partial, accept=["*"])
            return f"{landing.state} {[row.path for row in landing.entries]} {landing.refused}"

    return as_nobody(place, work, not_theirs=others)


async def prepared(place: Path, change: Callable[[Branch], Any]) -> Path:
    """A workspace of files and a branch that changes `a.txt` and what `change` does."""
    place.chmod(0o755)
    root = place / "ws"
    (root / "vendor").mkdir(parents=True)
    (root / "shared").mkdir()
    for name in ("a.txt", "vendor/lib.txt", "shared/theirs.txt"):
        (root / name).write_text("old\n")
    (root / "shared").chmod(0o1777)
    with Workspace(root, data_dir=place / "data") as workspace:
        branch = workspace.branch()
        await branch.write_file("a.txt", "new\n")
        await change(branch)
    return root


CASES = {
    "an empty directory in root's vendor/": (lambda b: b.mkdir("vendor/made"), "vendor", "cannot be written"),
    "a file in root's vendor/": (lambda b: b.write_file("vendor/x", "x"), "vendor", "cannot be written"),
    "a delete in a sticky directory": (lambda b: b.delete("shared/theirs.txt"), "shared", "sticky"),
    "a move out of a sticky directory": (lambda b: b.move("shared/theirs.txt", "mine.txt"), "shared", "sticky"),
    "a change of root's file": (lambda b: b.write_file("shared/theirs.txt", "x"), "shared", "somebody else"),
    "the mode of root's file": (lambda b: b.set_executable("vendor/lib.txt", True), "vendor", "by its owner only"),
}  # fmt: skip


@root_only
@pytest.mark.parametrize("case", CASES)
async def test_what_the_system_will_refuse_is_refused_before_anything_changes(case: str) -> None:
    """Engine 1: these tore the directory and closed it for every command."""
    change, holder, reason = CASES[case]
    with memory_place() as place:
        root = await prepared(place, change)
        others = [root / holder, *(root / holder).iterdir()]
        before = picture(root)
        said = land_as_nobody(place, *others)
        assert said.startswith("LandingRefused: nothing landed") and reason in said
        assert picture(root) == before and not list(root.rglob(".bowerbird*"))
        said = land_as_nobody(place, *others, partial=True)
        assert said.startswith("returned done") and "'/a.txt'" in said and reason in said
        assert (root / "a.txt").read_text() == "new\n"


@root_only
@pytest.mark.parametrize("flag", ["i", "a"])
async def test_immutable_and_append_only_files_are_refused(flag: str, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    for name in ("a.txt", "b.txt"):
        (root / name).write_text("old\n")
    if (
        subprocess.run(["chattr", f"+{flag}", root / "b.txt"], check=False, capture_output=True).returncode
        != 0
    ):
        pytest.skip("this file system knows no such attribute")
    try:
        with Workspace(root, data_dir=tmp_path / "data") as workspace:
            branch = workspace.branch()
            for name in ("a.txt", "b.txt"):
                await branch.write_file(name, "new\n")
            with pytest.raises(LandingRefused, match=r"b.txt: it is (immutable|append-only)"):
                branch.land()
            assert (root / "a.txt").read_text() == "old\n"
            assert [row.path for row in branch.land(partial=True).refused] == ["/b.txt"]
    finally:
        subprocess.run(["chattr", f"-{flag}", root / "b.txt"], check=True)


async def test_a_directory_gets_its_mode_back(workspace: Workspace, root: Path) -> None:
    (root / "sub").chmod(0o2750)
    branch = workspace.branch()
    await branch.delete("sub", recursive=True)
    landing = branch.land()
    assert not (root / "sub").exists()
    landing.undo()
    assert (root / "sub").stat().st_mode & 0o7777 == 0o2750


async def test_an_undo_gives_setuid_back_to_the_users_own_file_only(workspace: Workspace, root: Path) -> None:
    """Engine 8."""
    (root / "a.txt").chmod(0o4755)
    branch = workspace.branch()
    await branch.write_file("a.txt", "agent\n")
    landing = branch.land(accept=["*"])
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o755
    undo = landing.undo()
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o4755
    undo.undo()
    assert (root / "a.txt").stat().st_mode & 0o7777 == 0o755


async def test_taking_back_twice_is_refused_and_leaves_no_record(workspace: Workspace) -> None:
    """Engine 8."""
    landing = (await changed(workspace)).land()
    landing.undo()
    known = [item.id for item in workspace.landings()]
    with pytest.raises(InvalidArgument, match=r"nothing of landing .* is left"):
        workspace.undo(landing.id)
    assert [item.id for item in workspace.landings()] == known


async def test_a_plan_says_which_hard_links_it_splits(workspace: Workspace, root: Path) -> None:
    """Engine 8."""
    (root / "other.txt").hardlink_to(root / "a.txt")
    plan = (await changed(workspace)).plan_landing()
    assert {e.path: e.links for e in plan.entries} == {
        "/a.txt": 2, "/b.txt": 1, "/sub/c.txt": 1
    }  # fmt: skip


async def test_a_command_that_locks_the_workspace_holds_up_no_landing(
    workspace: Workspace, root: Path
) -> None:
    """Security 13."""
    branch = await changed(workspace)
    handle = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert branch.land().state == "done"
    finally:
        os.close(handle)


async def test_a_new_file_gets_the_group_of_its_setgid_directory(workspace: Workspace, root: Path) -> None:
    """It is staged where it inherits the same as beside its name."""
    (root / "sub").chmod(0o2775)
    if os.geteuid() == 0:
        os.chown(root / "sub", -1, 4321)
    branch = workspace.branch()
    await branch.write_file("sub/new.txt", "x")
    branch.land()
    assert (root / "sub/new.txt").stat().st_gid == (root / "sub").stat().st_gid


MOUNTED = """
set -e
mount -t tmpfs none "$1/ws/volume"
echo kept > "$1/ws/volume/file"
exec "$2" "$3" "$1"
"""
LANDS = """
import asyncio, sys
from pathlib import Path
from bowerbird.workspace import Workspace
place = Path(sys.argv[1])
with Workspace(place / "ws", data_dir=place / "data") as workspace:
    branch = workspace.branch()
    async def change():
        await branch.write_file("a.txt", "new")
        await branch.write_file("volume/new.txt", "on the other file system")
    asyncio.run(change())
    print(branch.land().state, (place / "ws/volume/new.txt").read_text())
    asyncio.run(branch.delete("volume", recursive=True))
    try:
        branch.land()
    except Exception as error:
        print(type(error).__name__, error, sorted(p.name for p in (place / "ws/volume").iterdir()))
    print(workspace.landings()[-1].undo().state, sorted(p.name for p in (place / "ws").rglob("*")))
"""


@root_only
def test_a_mount_point_is_landed_into_and_never_removed(tmp_path: Path) -> None:
    """Engine 1: deleting one emptied the volume, landed nothing else, and closed the workspace."""
    (tmp_path / "ws/volume").mkdir(parents=True)
    script = tmp_path / "lands.py"
    script.write_text(LANDS)
    command = ["unshare", "-m", "sh", "-c", MOUNTED, "sh", tmp_path, sys.executable, script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("nothing can be mounted here")
    first, refused, last = done.stdout.splitlines()
    assert first == "done on the other file system"
    assert refused.startswith("LandingRefused") and "volume: a file system is mounted there" in refused
    assert refused.endswith("['file', 'new.txt']") and last == "done ['file', 'volume']"
