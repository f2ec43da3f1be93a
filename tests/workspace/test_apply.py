"""The apply engine over real directories: order, crashes, metadata, links (WS-53, WS-55)."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.nobody import as_nobody
from support.places import memory_place

from bowerbird.core.errors import WorkspaceError
from bowerbird.core.timestamps import now_iso
from bowerbird.workspace.landing.acts import ordered
from bowerbird.workspace.landing.apply import Applier, Changed, recover, settle_nothing
from bowerbird.workspace.landing.flushing import Flushing
from bowerbird.workspace.landing.lock import workspace_lock
from bowerbird.workspace.landing.record import LandingFolder, LandingRecord, Step
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.real_directory import Beneath, Version, version_of
from bowerbird.workspace.tree.threeway import Side

VERSIONS = st.sampled_from(
    [None, Version("file", 0o644, "sha256:a"), Version("file", 0o755, "sha256:a"), Version("dir"),
     Version("symlink", target=b"x")]
)  # fmt: skip


def file(data: bytes, mode: int = 0o644) -> Side:
    return Side("file", mode, Content(data))


def prepare(
    root: Path, folder: LandingFolder, wanted: dict[bytes, Side | None]
) -> tuple[LandingRecord, list[Step]]:
    """Make a landing that brings `wanted` into `root`."""
    folder.create()
    steps: list[Step] = []
    with Beneath(root) as tree, Flushing() as flushing:
        for path, side in wanted.items():
            before, after = tree.version(path), version_of(side)
            folder.keep(tree.side(path), before, flushing)
            folder.keep(side, after, flushing)
            steps.append(Step(path, before, after))
        flushing.finish()
    record = LandingRecord(folder.path.name, "land", "b_1", None, "", "", now_iso())
    return record, steps


def land(root: Path, folder: LandingFolder, wanted: dict[bytes, Side | None]) -> LandingRecord:
    record, steps = prepare(root, folder, wanted)
    with Beneath(root) as tree, workspace_lock(tree, folder.path.parent):
        return Applier(tree, folder).run(record, steps, settle_nothing)


def picture(root: Path) -> dict[str, tuple[str, bytes, int]]:
    """Everything below `root`."""
    found: dict[str, tuple[str, bytes, int]] = {}
    for path in sorted(root.rglob("*")):
        key = str(path.relative_to(root))
        if path.is_symlink():
            found[key] = ("link", os.fsencode(path.readlink()), 0)
        elif path.is_dir():
            found[key] = ("dir", b"", 0)
        else:
            found[key] = ("file", path.read_bytes(), path.stat().st_mode)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


@pytest.fixture
def folder(tmp_path: Path) -> LandingFolder:
    return LandingFolder(tmp_path / "landings" / "l_1")


def test_every_change_of_kind_lands(root: Path, folder: LandingFolder) -> None:
    (root / "edit").write_bytes(b"1")
    (root / "gone").write_bytes(b"1")
    (root / "to_dir").write_bytes(b"1")
    (root / "to_file").mkdir()
    (root / "to_file" / "inner").write_bytes(b"1")
    (root / "bits").write_bytes(b"1")
    record = land(root, folder, {
        b"edit": file(b"2"), b"gone": None, b"to_dir": Side("dir"), b"to_dir/new": file(b"3"),
        b"to_file": file(b"4"), b"to_file/inner": None, b"bits": file(b"1", 0o755),
        b"link": Side("symlink", target="edit"), b"deep": Side("dir"), b"deep/er": Side("dir"),
        b"deep/er/x": file(b"5"),
    })  # fmt: skip
    assert record.state == "done"
    assert {k: (v[0], v[1]) for k, v in picture(root).items()} == {
        "edit": ("file", b"2"), "to_dir": ("dir", b""), "to_dir/new": ("file", b"3"),
        "to_file": ("file", b"4"), "bits": ("file", b"1"), "link": ("link", b"edit"),
        "deep": ("dir", b""), "deep/er": ("dir", b""), "deep/er/x": ("file", b"5"),
    }  # fmt: skip
    assert (root / "bits").stat().st_mode & 0o777 == 0o755


@given(st.dictionaries(st.sampled_from([b"a", b"a/b", b"a/b/c", b"d"]), st.tuples(VERSIONS, VERSIONS)))
def test_paths_are_cleared_deepest_first_and_built_outermost_first(
    wanted: dict[bytes, tuple[Version | None, Version | None]],
) -> None:
    steps = [Step(path, *versions) for path, versions in wanted.items()]
    seen: dict[str, list[int]] = {}
    for action in ordered(steps):
        seen.setdefault(action.verb, []).append(steps[action.index].path.count(b"/"))
    assert seen.get("rmdir", []) == sorted(seen.get("rmdir", []), reverse=True)
    assert seen.get("mkdir", []) == sorted(seen.get("mkdir", []))
    assert list(seen) == [v for v in ("remove", "rmdir", "mkdir", "place", "chmod") if v in seen]


def test_a_path_changed_after_planning_stops_everything(root: Path, folder: LandingFolder) -> None:
    (root / "a").write_bytes(b"1")
    record, steps = prepare(root, folder, {b"a": file(b"2"), b"b": file(b"2")})
    (root / "a").write_bytes(b"user")
    with Beneath(root) as tree, workspace_lock(tree, folder.path.parent), pytest.raises(Changed) as caught:
        Applier(tree, folder).run(record, steps, settle_nothing)
    assert caught.value.paths == ("/a",)
    assert set(picture(root)) == {"a"} and not folder.path.exists()


def test_attributes_are_kept_and_setuid_is_stripped(root: Path, folder: LandingFolder) -> None:
    """WS-55."""
    target = root / "a"
    target.write_bytes(b"1")
    os.setxattr(target, "user.note", b"kept")
    if os.geteuid() == 0:
        os.chown(target, 1234, 4321)
    target.chmod(0o4755)
    land(root, folder, {b"a": file(b"2", 0o4755), b"new": file(b"3", 0o7777)})
    seen = target.stat()
    assert os.getxattr(target, "user.note") == b"kept"
    assert seen.st_mode & 0o7777 == 0o755 and (root / "new").stat().st_mode & 0o7777 == 0o777
    if os.geteuid() == 0:
        assert (seen.st_uid, seen.st_gid) == (1234, 4321)


def test_a_link_in_the_way_is_never_followed(root: Path, folder: LandingFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "sub").mkdir()
    record, steps = prepare(root, folder, {b"sub/a": file(b"2")})
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    with (
        Beneath(root) as tree,
        workspace_lock(tree, folder.path.parent),
        pytest.raises((Changed, WorkspaceError)),
    ):
        Applier(tree, folder).run(record, steps, settle_nothing)
    assert list(outside.iterdir()) == [] and set(picture(root)) == {"sub"}


def test_files_of_others_keep_a_directory(root: Path, folder: LandingFolder) -> None:
    (root / "d").mkdir()
    (root / "d" / "ours").write_bytes(b"1")
    (root / "d" / "theirs").write_bytes(b"1")
    assert land(root, folder, {b"d": None, b"d/ours": None}).state == "done"
    assert set(picture(root)) == {"d", "d/theirs"}


def test_an_unwritable_record_folder_changes_nothing(root: Path, folder: LandingFolder) -> None:
    record, steps = prepare(root, folder, {b"a": file(b"2")})
    Path(folder.blob(version_of(file(b"2")).digest or "")).unlink()  # pyright: ignore -- a file has a version
    with (
        Beneath(root) as tree,
        workspace_lock(tree, folder.path.parent),
        pytest.raises(WorkspaceError, match="nothing landed"),
    ):
        Applier(tree, folder).run(record, steps, settle_nothing)
    assert picture(root) == {}


# ------------------------------------------------------------------ kill -9

PATHS = 50


def make_workspace(root: Path) -> None:
    """Fifty paths of every kind of change."""
    root.mkdir()
    for n in range(PATHS - 10):
        (root / f"f{n}").write_bytes(b"old %d" % n)
    (root / "olddir").mkdir()
    for n in range(4):
        (root / "olddir" / f"g{n}").write_bytes(b"old")


def wanted_changes() -> dict[bytes, Side | None]:
    wanted: dict[bytes, Side | None] = {}
    for n in range(PATHS - 10):
        wanted[b"f%d" % n] = None if n % 7 == 3 else file(b"new %d" % n, 0o755 if n % 5 == 0 else 0o644)
    for n in range(4):
        wanted[b"olddir/g%d" % n] = None
    wanted[b"olddir"] = Side("symlink", target="f1")
    wanted[b"newdir"] = Side("dir")
    for n in range(4):
        wanted[b"newdir/h%d" % n] = file(b"created")
    return wanted


def drive(root: Path, folder: Path, kill_at: int) -> None:
    """Entry of the subprocess: land, and die by SIGKILL at the n-th write point."""
    record, steps = prepare(root, LandingFolder(folder), wanted_changes())
    count = 0

    def checkpoint(_: str) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    with Beneath(root) as tree, workspace_lock(tree, folder.parent):
        Applier(tree, LandingFolder(folder), checkpoint).run(record, steps, settle_nothing)
    print(count)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("removed", [b"closed/file", b"closed/deep", b"closed/deep/file"])
def test_what_may_not_be_removed_is_refused_before_anything_changes(removed: bytes) -> None:
    """WS-53, WS-58: without rights, a directory that forbids it stops the landing at its beginning."""
    with memory_place() as place:
        place.chmod(0o755)
        root, folder = place / "ws", LandingFolder(place / "l" / "l_1")
        (root / "closed/deep").mkdir(parents=True)
        (root / "closed/file").write_text("x")
        if removed == b"closed/deep/file":
            (root / "closed/deep/file").write_text("x")
            (root / "closed/deep").chmod(0o555)
        (root / "closed").chmod(0o555)
        before = picture(root)
        wanted = {removed: None, b"new": file(b"new")}
        said = as_nobody(place, lambda: land(root, folder, wanted).state)
        assert said.startswith("ReadOnly: ") and "nothing landed" in said and removed.decode() in said
        assert picture(root) == before and not folder.path.exists()
        assert land(root, folder, wanted).state == "done" and (root / "new").exists()


def run_driver(*arguments: object) -> subprocess.CompletedProcess[str]:
    here = Path(__file__).parent
    code = "import sys; from pathlib import Path; sys.path[:0] = sys.argv[1:3]; import test_apply as t; "
    code += "t.drive(Path(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))"
    parts: Sequence[str] = [str(a) for a in (here, here.parent, *arguments)]
    return subprocess.run([sys.executable, "-c", code, *parts], capture_output=True, text=True, check=False)


def test_kill_9_at_every_write_point_leaves_all_before_or_all_after() -> None:
    """Acceptance 2; one process is forked per point."""
    with memory_place() as place:
        die_everywhere(place)


def die_everywhere(tmp_path: Path) -> None:
    make_workspace(tmp_path / "all")
    done = run_driver(tmp_path / "all", tmp_path / "l" / "done", 0)
    assert done.returncode == 0, done.stderr
    points, after = int(done.stdout), picture(tmp_path / "all")
    make_workspace(tmp_path / "none")
    before = picture(tmp_path / "none")
    outcomes: list[str] = []
    for point in range(1, points + 1):
        root, folder = tmp_path / f"w{point}", tmp_path / "l" / f"l_{point}"
        make_workspace(root)
        child = os.fork()
        if child == 0:
            try:
                drive(root, folder, point)
            finally:
                os._exit(9)  # reached only when the kill did not happen
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), f"point {point} was not reached"
        with Beneath(root) as tree, workspace_lock(tree, folder.parent):
            recover(tree, LandingFolder(folder), settle_nothing)
        assert picture(root) in (before, after), f"torn at write point {point} of {points}"
        outcomes.append("after" if picture(root) == after else "before")
    assert outcomes == sorted(outcomes, reverse=True), "after `applying` it never goes back"
    assert {"before", "after"} == set(outcomes) and points > 2 * PATHS - 20


def test_a_third_state_is_named_and_not_overwritten(tmp_path: Path) -> None:
    root, folder = tmp_path / "w", tmp_path / "l" / "l_1"
    make_workspace(root)
    killed = run_driver(root, folder, 60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert LandingFolder(folder).record().state == "applying"
    untouched = (n for n in range(PATHS - 10) if (root / f"f{n}").is_file())
    left = next(n for n in untouched if (root / f"f{n}").read_bytes().startswith(b"old"))
    (root / f"f{left}").write_bytes(b"the user was here")
    with Beneath(root) as tree, workspace_lock(tree, folder.parent):
        record = recover(tree, LandingFolder(folder), settle_nothing)
    assert record is not None and record.state == "needs_attention" and record.attention == (f"/f{left}",)
    assert (root / f"f{left}").read_bytes() == b"the user was here"
    assert not [name for name in picture(root) if name.endswith(".tmp")]
