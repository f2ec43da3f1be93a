"""Random time lines whose layers are joined every few turns, real beside a plain dict model.

Here: one time line from a seed; every snapshot of every branch is looked at in every way. Not here: how
many run (`tests/workspace/test_joined_layers.py`, `benchmarks/time_lines.py`), landings, line merges
(`branch_histories.py`).

The model is a dictionary: by path the bytes, one such dictionary per snapshot. Contents are never equal by
chance, so a merge of two changed versions is a conflict and the model needs no line merge.
"""

import os
import random
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.branch_histories import read_branch

from bowerbird.workspace import Branch, Changes, Workspace
from bowerbird.workspace.tree import handles

PATHS = ("a", "b", "d/x", "d/y", "d/e/f", "g/h/i/j", "n/m")
FOLDERS = ("d", "d/e", "g", "g/h", "n")
Tree = dict[str, bytes]


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


@contextmanager
def killed_at_write(at: int) -> Generator[None]:
    """The `at`-th change of a directory ends everything, as a kill does; it has not happened."""
    seen = 0

    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen >= at:
                raise Killed
            return real(*given, **options)

        return call

    names = ("rename", "replace", "unlink", "rmdir", "mkdir", "link", "symlink")
    kept = {name: getattr(os, name) for name in names}
    exchange: Any = handles.exchange
    changed: Any = handles
    try:
        for name, real in kept.items():
            setattr(os, name, guarded(real))
        changed.exchange = guarded(exchange)
        yield
    finally:
        for name, real in kept.items():
            setattr(os, name, real)
        changed.exchange = exchange


class Difference(AssertionError):
    """Model and reality disagree; the message holds seed, what was asked, and the story."""


@dataclass
class Counts:
    """What was done, so that a run can say how much it looked at."""

    joins: int = 0
    most_joins: int = 0
    snapshots: int = 0
    merges: int = 0
    thinned: int = 0


@dataclass(eq=False)
class Line:
    """One branch and what it should show."""

    real: Branch
    name: str
    start: Tree
    parent: "Line | None" = None
    now: Tree = field(default_factory=dict[str, bytes])
    known: dict[str, tuple[int, Tree]] = field(default_factory=dict[str, tuple[int, Tree]])
    merged: dict[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])
    """By path, the version of this branch that its parent merged last."""
    turns: int = 0


class TimeLine:
    """One time line with a few forks.

    Args:
        place: an empty directory of its own.
        seed: chooses everything.
        turns: how many turns the first branch lives.
        thins: snapshots are forgotten in between, sometimes by a process that is killed over it.
    """

    def __init__(self, place: Path, seed: int, turns: int, *, thins: bool = False) -> None:
        self.seed, self.turns, self.thins = seed, turns, thins
        self.random = random.Random(seed)
        self.log: list[str] = []
        self.unique = 0
        self.counts = Counts()
        root = place / "ws"
        start: Tree = {}
        for path in PATHS[:5]:
            start[path] = self._bytes()
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(start[path])
        self.data = place / "data"
        self.workspace = Workspace(root, data_dir=self.data)
        self.lines = [Line(self.workspace.branch(), "main", start, now=dict(start))]

    def run(self) -> Counts:
        """Live all turns, look at everything; raises Difference at the first disagreement."""
        try:
            for _ in range(self.turns):
                self._turn(self.lines[0])
                for line in self.lines[1:]:
                    if self.random.random() < 0.7:
                        self._turn(line)
                dice = self.random.random()
                if dice < 0.15 and len(self.lines) < 4:
                    self._fork(self.random.choice(self.lines))
                elif dice < 0.35 and len(self.lines) > 1:
                    self._merge(self.random.choice(self.lines[1:]))
                elif dice < 0.45:
                    self._restore(self.random.choice(self.lines))
                if self.thins and self.random.random() < 0.4:
                    self._thin(self.random.choice(self.lines))
            for line in self.lines:
                self._look_at_everything(line)
            self._open_again()
        finally:
            self.workspace.close()
        return self.counts

    # ------------------------------------------------------------ what happens

    def _turn(self, line: Line) -> None:
        self.log.append(f"turn of {line.name}")
        for _ in range(self.random.randrange(1, 4)):
            if self.random.random() < 0.2:
                self._try(line)
            self._edit(line)
            if self.random.random() < 0.3:
                line.real.mark()
        line.turns += 1
        line.real.end_turn(f"t_{line.name}_{line.turns}")
        self._learn(line)
        self._equal(f"view of {line.name}", line.now, view_of(line.real))

    def _edit(self, line: Line) -> None:
        dice = self.random.random()
        with line.real._state.writing() as stack:  # pyright: ignore -- thousands of times, without a thread each
            if dice < 0.25 and line.now:
                path = self.random.choice(sorted(line.now))
                self.log.append(f"delete {path} in {line.name}")
                stack.remove(f"/{path}")
                del line.now[path]
            elif dice < 0.35:
                path = self.random.choice(FOLDERS)
                if stack.lookup(f"/{path}") is None:
                    return
                self.log.append(f"delete folder {path} in {line.name}")
                stack.remove(f"/{path}")
                line.now = {p: data for p, data in line.now.items() if not p.startswith(path + "/")}
            else:
                path, data = self.random.choice(PATHS), self._bytes()
                self.log.append(f"write {path} in {line.name}: {data!r}")
                stack.put_file(f"/{path}", data, 0o644)
                line.now[path] = data

    def _try(self, line: Line) -> None:
        """Go on from a mark and back."""
        mark, before = line.real.mark(), dict(line.now)
        self.log.append(f"try in {line.name}")
        self._edit(line)
        line.real.mark()
        self._edit(line)
        line.real.rollback(mark)
        self.log.append("back")
        line.now = before

    def _fork(self, parent: Line) -> None:
        """Fork from the present or from any snapshot."""
        chosen = self.random.choice([None, *parent.known])
        now = parent.now if chosen is None else parent.known[chosen][1]
        name = f"{parent.name}.{len(self.lines)}"
        self.log.append(f"fork {name} at {chosen}")
        line = Line(parent.real.fork(name, snapshot=chosen), name, dict(now), parent, now=dict(now))
        self._learn(parent)
        self.lines.append(line)

    def _restore(self, line: Line) -> None:
        if not line.known:
            return  # all its edits came to nothing so far
        chosen = self.random.choice(list(line.known))
        self.log.append(f"restore {chosen} in {line.name}")
        line.real.restore(chosen)
        line.now = dict(line.known[chosen][1])
        self._equal(f"view of {line.name} restored", line.now, view_of(line.real))

    def _merge(self, child: Line) -> None:
        """Merge into the parent: the base of each path is what was merged of it last (WS-48)."""
        parent = child.parent
        if parent is None:
            return
        self.log.append(f"merge {child.name}")
        conflicts: list[str] = []
        for path in PATHS:
            base = child.merged.get(path, child.start.get(path))
            theirs, ours = child.now.get(path), parent.now.get(path)
            if theirs == base and path not in child.merged:
                continue
            if theirs not in (ours, base) and ours != base:
                conflicts.append(f"/{path}")
                continue
            if theirs not in (ours, base):
                put(parent.now, path, theirs)
            child.merged[path] = theirs
        done = parent.real.merge(child.real)
        found = [p for p in done.conflicts if p[1:] in PATHS]
        self._equal(f"conflicts of {child.name}", sorted(conflicts), sorted(found))
        self._learn(child)
        self._equal(f"view of {parent.name} after merge", parent.now, view_of(parent.real))
        self.counts.merges += 1

    def _thin(self, line: Line) -> None:
        """Forget some snapshots, perhaps killed at any write of it; all others stay as they are."""
        turns = {row.turn for row in line.real.snapshots() if row.turn and self.random.random() < 0.7}
        kept = {row.id for row in line.real.snapshots() if row.turn not in turns}
        killed = self.random.random() < 0.5
        self.log.append(f"thin {line.name}: all but {sorted(kept)}{', killed' if killed else ''}")
        if killed:
            with killed_at_write(self.random.randrange(1, 30)), suppress(Killed):
                self.workspace.forget_snapshots(line.real.id, turns)
        else:
            self.counts.thinned += self.workspace.forget_snapshots(line.real.id, turns)
        known = {row.id for row in line.real.snapshots()}
        self._equal(f"kept snapshots of {line.name}", kept, kept & known)
        line.known = {id_: state for id_, state in line.known.items() if id_ in known}
        self._equal(f"view of {line.name} thinned", line.now, view_of(line.real))

    # ------------------------------------------------------------ what is looked at

    def _learn(self, line: Line) -> None:
        """Note the state of snapshots that came into being."""
        rows = line.real.snapshots()
        for row in rows:
            if row.id not in line.known:
                line.known[row.id] = (row.n, dict(line.now))
        self._equal(f"snapshots of {line.name}", sorted(line.known), sorted(row.id for row in rows))

    def _look_at_everything(self, line: Line) -> None:
        folder = self.data / "branches" / line.real.id / "layers"
        joins = len(list(folder.glob("*.covered.json")))
        self.counts.joins += joins
        self.counts.most_joins = max(self.counts.most_joins, joins)
        for snapshot, (_, tree) in line.known.items():
            self._look_at(line, snapshot, tree)
        self._equal(f"changes of {line.name}", changed(line.start, line.now), listed(line.real.changes()))

    def _look_at(self, line: Line, snapshot: str, tree: Tree) -> None:
        """Fork, restore (and go back), diff and merge base at one snapshot."""
        name = f"{line.name} at {snapshot}"
        self.counts.snapshots += 1
        child = line.real.fork(snapshot=snapshot)
        self._equal(f"fork of {name}", tree, view_of(child))
        self._equal(f"changes of a fork of {name}", set[str](), listed(child.changes()))
        since = line.real.diff(since=snapshot)
        rows = Changes(tuple(row.path for row in since.written), since.deleted)
        self._equal(f"diff since {name}", changed(tree, line.now), listed(rows))
        data = self._bytes()
        with child._state.writing() as stack:  # pyright: ignore -- as in `_edit`
            stack.put_file("/a", data, 0o644)
        mark = line.real.mark()
        done = line.real.merge(child)
        clean = tree.get("a") == line.now.get("a")
        self._equal(f"merge of a fork of {name}", ((), ("/a",))[clean], done.written)
        line.real.rollback(mark)
        line.real.restore(snapshot)
        self._equal(f"{name} restored", tree, view_of(line.real))
        line.real.rollback(mark)
        self._equal(f"view of {line.name} after {name}", line.now, view_of(line.real))
        child.discard()

    def _open_again(self) -> None:
        """What is on disk says the same to another process."""
        identities = [line.real.id for line in self.lines]
        self.workspace.close()
        self.workspace = Workspace(self.data.parent / "ws", data_dir=self.data)
        for line, identity in zip(self.lines, identities, strict=True):
            line.real = self.workspace.open(identity)
            self._equal(f"view of {line.name} opened again", line.now, view_of(line.real))
            self._equal(
                f"changes of {line.name} opened again",
                changed(line.start, line.now),
                listed(line.real.changes()),
            )

    def _bytes(self) -> bytes:
        self.unique += 1
        return b"%d\n" % self.unique

    def _equal(self, what: str, wanted: Any, found: Any) -> None:
        if wanted != found:
            story = "\n".join(self.log)
            raise Difference(f"seed {self.seed}: {what}\nmodel: {wanted}\nreal:  {found}\n{story}")


def put(tree: Tree, path: str, data: bytes | None) -> None:
    """Make `path` of a model tree say `data`, None = absent."""
    if data is None:
        tree.pop(path, None)
    else:
        tree[path] = data


def view_of(branch: Branch) -> Tree:
    """Return the files that a branch shows, of those that the model knows."""
    found = {path: read_branch(branch, path) for path in PATHS}
    return {path: version[1] for path, version in found.items() if version is not None}


def changed(before: Tree, after: Tree) -> set[str]:
    """Return the paths that differ between two trees."""
    return {path for path in PATHS if before.get(path) != after.get(path)}


def listed(changes: Changes) -> set[str]:
    """Return the changed paths, of those that the model knows."""
    return {os.fspath(p)[1:] for p in changes.paths} & set(PATHS)


def run_time_line(place: Path, seed: int, turns: int, *, thins: bool = False) -> Counts:
    """Run one time line in `place` (made and removed); raises Difference."""
    try:
        return TimeLine(place, seed, turns, thins=thins).run()
    finally:
        shutil.rmtree(place, ignore_errors=True)
