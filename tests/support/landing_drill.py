"""A landing, its undo and the start after a crash, with one system call failing (issue 10, point 3).

Here: the scene, one trial, what may be true afterwards. Not here: which trials (`benchmarks/landing_errors.py`
runs all of them, `tests/workspace/landing/test_landing_errors.py` some).
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from support.failing_calls import FailingCalls

from bowerbird.core.errors import BowerbirdError
from bowerbird.workspace import Branch, Workspace
from bowerbird.workspace.landing.landings import Landings

Phase = Literal["land", "undo", "recover"]
PHASES: tuple[Phase, ...] = ("land", "undo", "recover")
Picture = dict[str, tuple[str, bytes, int]]


@dataclass
class Totals:
    """What a drill saw; the lists must be empty.

    Attributes:
        untrue: "nothing landed", but it did. torn: neither all before nor all after, and no landing says so.
        half: still torn after the next pass of upkeep, and nobody was told. unknown: "not found", but it is there.
        bricked: reading, a new turn or the next start met an error. raw: an error that is none of ours.
    """

    trials: int = 0
    calls: Counter[str] = field(default_factory=Counter[str])
    outcomes: Counter[str] = field(default_factory=Counter[str])
    untrue: list[str] = field(default_factory=list[str])
    torn: list[str] = field(default_factory=list[str])
    bricked: list[str] = field(default_factory=list[str])
    raw: list[str] = field(default_factory=list[str])
    half: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])

    @property
    def wrong(self) -> list[str]:
        return [*self.torn, *self.bricked, *self.raw, *self.untrue, *self.half, *self.unknown]

    def add(self, other: "Totals") -> None:
        self.trials += other.trials
        self.outcomes += other.outcomes
        self.torn += other.torn
        self.bricked += other.bricked
        self.raw += other.raw
        self.half += other.half
        self.unknown += other.unknown
        self.untrue += other.untrue


def picture(root: Path) -> Picture:
    """Everything below `root` but hidden places of landings."""
    found: Picture = {}
    for path in sorted(root.rglob("*")):
        key = str(path.relative_to(root))
        if ".bowerbird-l_" in key:
            continue
        if path.is_symlink():
            found[key] = ("link", os.fsencode(path.readlink()), 0)
        elif path.is_dir():
            found[key] = ("dir", b"", path.stat().st_mode)
        else:
            found[key] = ("file", path.read_bytes(), path.stat().st_mode)
    return found


class Scene:
    """A workspace with a branch that changes it in every way; each trial begins with a copy of it.

    Args:
        place: an empty directory.
    """

    def __init__(self, place: Path, phase: Phase) -> None:
        self.phase = phase
        self._kept, self._live = place / "kept", place / "live"
        self.root, self.data = self._live / "ws", self._live / "data"
        self.root.mkdir(parents=True)
        _make(self.root)
        before = picture(self.root)
        with Workspace(self.root, data_dir=self.data) as workspace:
            branch = workspace.branch()
            self.branch = branch.id
            asyncio.run(_change(branch))
            if phase == "undo":
                self.landing = branch.land(accept=["*"]).id
        if phase == "recover":
            _killed_in_the_middle(self.root, self.data, self.branch)
        _copy(self._live, self._kept)
        # What all before and all after are.
        if phase == "undo":
            self.before = picture(self.root)
            self.after = before
        else:
            self.before = before
            with Workspace(self.root, data_dir=self.data) as workspace:
                workspace.open(self.branch).land(accept=["*"])
            self.after = picture(self.root)

    def reset(self) -> None:
        shutil.rmtree(self._live)
        _copy(self._kept, self._live)

    @contextmanager
    def opened(self) -> Generator[tuple[Workspace, Callable[[], Any]]]:
        """Give the workspace as it is before the phase, and the phase as a call."""
        if self.phase == "recover":
            with mock.patch.object(Landings, "recover", _nothing):
                workspace = Workspace(self.root, data_dir=self.data)
            house: Any = getattr(workspace, "_shared")  # noqa: B009
            work: Callable[[], Any] = house.landings.recover
        else:
            workspace = Workspace(self.root, data_dir=self.data)
            branch = workspace.open(self.branch)
            if self.phase == "land":
                work = lambda: branch.land(accept=["*"])  # noqa: E731
            else:
                work = lambda: workspace.undo(self.landing)  # noqa: E731
        with workspace:
            yield workspace, work


def count_calls(scene: Scene) -> int:
    """Return how many system calls the phase makes when none fails."""
    scene.reset()
    calls = FailingCalls()
    with scene.opened() as (_, work), calls.armed():
        work()
    return calls.count


def trial(scene: Scene, calls: FailingCalls, totals: Totals) -> None:
    """One phase with one failing call; looks at the files at once, and after the next start."""
    scene.reset()
    totals.trials += 1
    name = f"{scene.phase} call {calls.at} errno {calls.number}"
    said = "done"
    try:
        with scene.opened() as (workspace, work):
            try:
                with calls.armed():
                    work()
            except BowerbirdError as error:
                said = f"refused ({type(error).__name__})"
            except Exception as error:  # noqa: BLE001 - what is looked for
                totals.raw.append(f"{name} {calls.failed}: {type(error).__name__}: {error}")
                said = "raw"
            where = _where(scene)
            if where == "after" and said.startswith("refused") and "Stuck" not in said:
                totals.untrue.append(f"{name} {calls.failed}: {said}")
            if where == "torn" and not _is_named(workspace):
                totals.torn.append(f"{name} {calls.failed} ({said})")
            if "NotFound" in said:
                totals.unknown.append(f"{name} {calls.failed}")
            if where == "torn":
                workspace.finish_landings()  # as a server does every minute
                where = f"torn, then {_where(scene)}"
                if where.endswith("torn") and not _needs_attention(workspace):
                    totals.half.append(f"{name} {calls.failed} ({said})")
            _look(workspace, scene.branch)
    except Exception as error:  # noqa: BLE001 - what is looked for
        totals.bricked.append(f"{name} {calls.failed}: {type(error).__name__}: {error}")
        return
    try:
        then = _after_a_start(scene)
    except Exception as error:  # noqa: BLE001 - what is looked for
        totals.bricked.append(f"{name} {calls.failed}, next start: {type(error).__name__}: {error}")
        return
    if then == "torn" or (said == "done" and then == "before" and scene.phase != "recover"):
        totals.torn.append(f"{name} {calls.failed} ({said}), next start: {then}")
    if list(scene.root.rglob(".bowerbird-*")):
        totals.torn.append(f"{name} {calls.failed}: temporary files after the next start")
    totals.outcomes[f"{scene.phase}: {said}, {where}, after a start {then}"] += 1


def _where(scene: Scene) -> str:
    present = picture(scene.root)
    if present == scene.before:
        return "before"
    return "after" if present == scene.after else "torn"


def _is_named(workspace: Workspace) -> bool:
    """Whether a torn directory is named by its landing: to be finished, or to be looked at."""
    return any(item.state in ("needs_attention", "applying") for item in workspace.landings())


def _needs_attention(workspace: Workspace) -> bool:
    return any(item.state == "needs_attention" for item in workspace.landings())


def _look(workspace: Workspace, branch_id: str) -> None:
    branch = workspace.open(branch_id)
    branch.changes()
    branch.diff()
    workspace.landings()
    asyncio.run(branch.list_files())


def _after_a_start(scene: Scene) -> str:
    with Workspace(scene.root, data_dir=scene.data) as workspace:
        then = _where(scene)
        _look(workspace, scene.branch)
        asyncio.run(workspace.open(scene.branch).write_file("next.txt", "a new turn\n"))
    return then


def _nothing(*_: Any, **__: Any) -> list[Any]:
    return []


def _copy(source: Path, target: Path) -> None:
    # Layers hold character devices, which shutil does not copy.
    subprocess.run(["cp", "-a", source, target], check=True)


def _make(root: Path) -> None:
    (root / "edit.txt").write_text("one\ntwo\n")
    (root / "gone.txt").write_text("gone\n")
    (root / "bits.sh").write_text("echo\n")
    (root / "to_dir").write_text("a file\n")
    (root / "to_file").mkdir()
    (root / "to_file/inner").write_text("inner\n")
    (root / "old/deep").mkdir(parents=True)
    (root / "old/deep/a").write_text("a\n")
    (root / "old/deep").chmod(0o750)
    (root / "link").symlink_to("edit.txt")
    (root / "same.txt").write_text("same\n")


async def _change(branch: Branch) -> None:
    await branch.write_file("edit.txt", "one\nTWO\n")
    await branch.delete("gone.txt")
    await branch.set_executable("bits.sh", True)
    await branch.delete("to_dir")
    await branch.write_file("to_dir/new", "new\n")
    await branch.delete("to_file", recursive=True)
    await branch.write_file("to_file", "a file now\n")
    await branch.delete("old", recursive=True)
    await branch.delete("link")
    await branch.write_file("deep/er/x.txt", "x\n")
    await branch.mkdir("empty")


def _killed_in_the_middle(root: Path, data: Path, branch: str) -> None:
    """Leave a landing as a process leaves it that dies while it puts files in place."""
    child = os.fork()
    if child == 0:
        try:
            seen = 0

            def told(point: str) -> None:
                nonlocal seen
                seen += point.startswith("place")
                if seen == 2:
                    os.kill(os.getpid(), signal.SIGKILL)

            workspace = Workspace(root, data_dir=data)
            workspace._shared.landings.checkpoint = told  # pyright: ignore -- the seam for this test
            workspace.open(branch).land(accept=["*"])
        finally:
            os._exit(9)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
