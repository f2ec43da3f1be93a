"""An error that is not "nothing is there" is never taken for it (issue 10: 40 recoveries stayed half-way)."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.failing_calls import FailingCalls

from bowerbird.core.errors import BowerbirdError
from bowerbird.store.rows.leases import is_dead, this_executor
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.landing.case_clashes import case_clashes
from bowerbird.workspace.landing.unfinished import folders_of, is_pending
from bowerbird.workspace.processes.copy_use import CopyUse
from bowerbird.workspace.processes.mounts import submounts
from bowerbird.workspace.raw_copy import make_equal
from bowerbird.workspace.registry.lock import note_of
from bowerbird.workspace.registry.references import stood_on
from bowerbird.workspace.tree.layers import is_opaque, make_opaque, probe_storage
from bowerbird.workspace.tree.presence import exists, is_directory

NUMBERS = (errno.EIO, errno.EMFILE, errno.EACCES)
Fits = Callable[[str, tuple[Any, ...]], bool]


class Scene:
    """A workspace, a branch with a landing, a fork that stands on it."""

    def __init__(self, place: Path) -> None:
        self.root, self.data = place / "ws", place / "data"
        self.root.mkdir()
        (self.root / "a.txt").write_text("old\n")
        (self.root / ".gitignore").write_text("hidden\n")
        (self.root / "hidden").write_text("x")
        self.workspace = Workspace(self.root, data_dir=self.data)
        self.branch = self.workspace.branch()
        asyncio.run(self.branch.write_file("a.txt", "new\n"))
        self.landing = self.branch.land(accept=["*"]).id
        asyncio.run(self.branch.write_file("b.txt", "more\n"))
        self.child = self.branch.fork()
        asyncio.run(self.child.write_file("c.txt", "child\n"))

    @property
    def registry(self) -> Any:
        house: Any = getattr(self.workspace, "_shared")  # noqa: B009
        return house.registry

    def directory(self, branch: Branch) -> Path:
        return self.data / "branches" / branch.id


def of(*calls: str, naming: str = "") -> Callable[[Scene], Fits]:
    """Calls of these names fail whose first argument holds `naming`."""

    def made(_: Scene) -> Fits:
        return lambda call, given: call in calls and naming in str(given[0] if given else "")

    return made


def of_branch(name: str, *calls: str) -> Callable[[Scene], Fits]:
    """Calls on a file of the first branch fail."""

    def made(scene: Scene) -> Fits:
        path = str(scene.directory(scene.branch) / name)
        return lambda call, given: call in calls and str(given[0] if given else "") == path

    return made


def opaque(scene: Scene) -> bool:
    place = scene.data / "dir"
    place.mkdir()
    make_opaque(place)
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return is_opaque(handle)
    finally:
        os.close(handle)


def ended(scene: Scene) -> bool:
    use = CopyUse(scene.data)
    use.begin()
    return use.was_killed


CASES: dict[str, tuple[Callable[[Scene], Fits], Callable[[Scene], object]]] = {
    "a landing is found": (
        of_branch("manifest.json", "stat", "io.open"),
        lambda s: Workspace(s.root, data_dir=s.data).undo(s.landing),
    ),
    "whether a landing has ended": (
        of("io.open", naming="record.json"),
        lambda s: is_pending(folders_of(s.directory(s.branch))[0]),
    ),
    "whether a landing began": (
        of("stat", naming="record.json"),
        lambda s: is_pending(folders_of(s.directory(s.branch))[0]),
    ),
    "a branch is there": (
        lambda s: lambda call, given: call == "stat" and str(given[0]) == str(s.directory(s.branch)),
        lambda s: Workspace(s.root, data_dir=s.data).open(s.branch.id),
    ),
    "a branch descends from another": (
        lambda s: (
            lambda call, given: (
                call in ("stat", "io.open") and str(given[0]) == str(s.directory(s.child) / "manifest.json")
            )
        ),
        lambda s: list(s.registry.ancestors(s.child.id)),
    ),
    "something is there": (of("stat", naming="a.txt"), lambda s: exists(s.root / "a.txt")),
    "a directory is there": (of("stat", naming="ws"), lambda s: is_directory(s.root)),
    "an opaque directory": (of("getxattr"), opaque),
    "a process lives": (of("io.open", naming="/stat"), lambda s: note_of(os.getpid())),
    "a copy's last user lives": (of("io.open", naming="/proc/self/stat"), ended),
    "mounts": (of("io.open", naming="mountinfo"), lambda s: submounts(s.root)),
    "ignore rules": (
        lambda s: lambda call, given: call in ("openat2", "open") and b".gitignore" in given,
        lambda s: asyncio.run(s.branch.list_files("**/*")),
    ),
    "a backup's source": (
        of("stat", naming="data/branches"),
        lambda s: make_equal(s.data / "branches", s.root.parent / "copy"),
    ),
}


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: errno.errorcode[number])
@pytest.mark.parametrize("case", CASES)
def test_an_error_is_not_read_as_nothing_there(case: str, number: int, tmp_path: Path) -> None:
    fits, look = CASES[case]
    if case == "ignore rules" and number == errno.EACCES:
        pytest.skip("rules that nobody here may read hide nothing, as with git")
    scene = Scene(tmp_path)
    calls = FailingCalls(number=number, fits=fits(scene))
    with calls.armed(), pytest.raises((OSError, BowerbirdError)) as met:
        look(scene)
    assert calls.failed, "the call that is to fail was never made"
    assert os.strerror(number) in str(met.value), met.value


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: errno.errorcode[number])
def test_what_stands_on_a_branch_keeps_its_layers_when_it_cannot_be_read(number: int, tmp_path: Path) -> None:
    """Taken for "nothing stands on it", the parent's layers would be removed under the fork."""
    scene = Scene(tmp_path)
    parent, child = scene.directory(scene.branch), scene.directory(scene.child)
    known = stood_on(parent, [parent, child])
    assert known
    calls = FailingCalls(
        number=number,
        fits=lambda call, given: call == "io.open" and str(child / "manifest.json") in str(given),
    )
    with calls.armed():
        assert stood_on(parent, [parent, child]) >= known
        scene.branch.discard(keep=False)
    assert calls.failed and parent.is_dir()
    assert asyncio.run(scene.child.read_file("b.txt"))["content"] == "more\n"


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: errno.errorcode[number])
def test_a_branch_that_cannot_be_read_is_listed_as_damaged(number: int, tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    path = str(scene.directory(scene.branch) / "manifest.json")
    calls = FailingCalls(number=number, fits=lambda call, given: call == "stat" and str(given[0]) == path)
    with Workspace(scene.root, data_dir=scene.data) as again, calls.armed():
        rows = again.branches()
    assert {row.id: row.damaged for row in rows} == {scene.branch.id: True, scene.child.id: False}


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_a_trial_that_failed_says_nothing_about_the_file_system(number: int, tmp_path: Path) -> None:
    """Taken for "holds no whiteouts", a session would write its deletions in another form."""
    calls = FailingCalls(number=number, fits=lambda call, given: call == "setxattr")
    with calls.armed(), pytest.raises(OSError, match=os.strerror(number)):
        probe_storage(tmp_path)


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE])
def test_names_that_cannot_be_listed_are_no_new_directory(number: int, tmp_path: Path) -> None:
    class Tree:
        root = tmp_path

        def names(self, path: bytes) -> list[bytes]:
            if path:
                raise OSError(number, os.strerror(number))
            return [b"a"]

        def lstat(self, _: bytes) -> os.stat_result:
            return tmp_path.stat()

    tree: Any = Tree()
    with pytest.raises(OSError, match=os.strerror(number)):
        case_clashes(tree, ["/sub/file"])


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: errno.errorcode[number])
def test_a_holder_of_leases_that_cannot_be_looked_at_is_not_dead(number: int) -> None:
    """Taken for dead, it would lose the sessions whose turns it runs."""
    me = this_executor()
    calls = FailingCalls(
        number=number, fits=lambda call, given: call == "io.open" and "/stat" in str(given[0])
    )
    with calls.armed():
        assert not is_dead(me)
    assert calls.failed
