"""What calls on branches and landings return to programs: frozen values (D-20).

Here: the values; the `record()` of each is the dictionary that doors, tools and the journal use. Not
here: how they come about (`diff.py`, `merge.py`, `landing/plan.py`), landings
(`landing/record.py`, `landing/landings.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import commonpath
from typing import Any, Literal

import msgspec

from bowerbird.workspace.marks.table import Grade
from bowerbird.workspace.tree.hunks import Hunk
from bowerbird.workspace.tree.paths import shown
from bowerbird.workspace.tree.threeway import Reason

Op = Literal["create", "modify", "delete", "chmod", "symlink", "mkdir", "rmdir"]
Drift = Literal["none", "same", "mergeable", "conflict"]


@dataclass(frozen=True, slots=True)
class Changes:
    """The changed paths of a branch, net against its fork point.

    Attributes:
        written: made or changed, directories included. deleted: gone.

    Example:
        >>> Changes(written=("/a.txt",)).paths
        ('/a.txt',)
    """

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All of them; empty when nothing changed."""
        return self.written + self.deleted

    def record(self) -> dict[str, list[str]]:
        """Return the form of WS-34."""
        return {"written": list(self.written), "deleted": list(self.deleted)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PathMarks:
    """What a person should know before landing a path.

    Attributes:
        flags: kinds of path that land only when named, or stay with automatic landings.
        grade: `needs_accept`, `held` or `free`. reasons: a sentence for each flag.
        tainted: untrusted text was in context when it was written. taint: what that was, where known.
    """

    flags: tuple[str, ...] = ()
    grade: Grade = "free"
    reasons: tuple[str, ...] = ()
    tainted: bool = False
    taint: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "flags": list(self.flags),
            "grade": self.grade,
            "reasons": list(self.reasons),
            "tainted": self.tainted,
            "taint": list(self.taint),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff(PathMarks):
    """One path that a branch made or changed.

    Attributes:
        path: as shown; `path_b64` holds its bytes when they are not UTF-8.
        size: bytes, those of its target for a symlink. mode, old_mode: permission bits.
        binary: it or its old version has no lines. added, removed: lines.
        renamed_from: a deleted path with half of the bytes or more. similarity: common lines in percent.
        edits: what changed since it lay there, to look at; they have no ids that could land alone.
        base: `uncertain` when what the change started from may have been edited meanwhile.
        hunks: the changed regions; None for what is too large to compare, or to show beside all the others.
        truncated: `hunks` is None. too_large: it has none when asked for alone, either.
        long_lines: a changed line is longer than a screen can show.
        target, old_target: where a link points, and pointed.
    """

    path: str
    kind: Literal["create", "modify"]
    type: str
    size: int
    mode: int
    old_mode: int | None = None
    binary: bool = False
    added: int = 0
    removed: int = 0
    renamed_from: str | None = None
    similarity: int | None = None
    edits: tuple[Hunk, ...] = ()
    base: Literal["exact", "uncertain"] = "exact"
    hunks: tuple[Hunk, ...] | None = ()
    too_large: bool = False
    long_lines: bool = False
    target: str | None = None
    old_target: str | None = None
    path_b64: str | None = None

    @property
    def truncated(self) -> bool:
        """Whether the hunks are left out."""
        return self.hunks is None

    def record(self) -> dict[str, Any]:
        """Return the form of WS-35."""
        return {
            **_path(self.path, self.path_b64),
            "kind": self.kind,
            "type": self.type,
            "size": self.size,
            "mode": self.mode,
            "old_mode": self.old_mode,
            "binary": self.binary,
            "added": self.added,
            "removed": self.removed,
            "renamed_from": self.renamed_from,
            "base": self.base,
            "hunks": _hunks(self.hunks),
            **PathMarks.record(self),
            **({"similarity": self.similarity, "edits": _hunks(self.edits)} if self.renamed_from else {}),
            **({"truncated": True} if self.truncated else {}),
            **({"too_large": True} if self.too_large else {}),
            **({"long_lines": True} if self.long_lines else {}),
            **({"target": self.target} if self.target is not None else {}),
            **({"old_target": self.old_target} if self.old_target is not None else {}),
        }


class Folded(msgspec.Struct, frozen=True):
    """What stays on the branch below one name at the top of the workspace, as one row.

    Attributes:
        path: the directory that is ignored as a whole and has all of it, with `/` at its end; else the
            deepest one around it; of one file its own path.
    """

    path: str
    files: int
    size: int

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {"path": self.path, "files": self.files, "bytes": self.size}


def folded_rows(staying: Mapping[str, int], whole: Callable[[str], object]) -> tuple[Folded, ...]:
    """Return what stays on the branch, bytes by path, as one row for each name at the top.

    A row names no directory above what it is about: `src/` alone would read as if all of it stayed.

    Args:
        whole: whether a directory is ignored with all that it holds.

    >>> folded_rows({"/a/b": 2, "/a/c/d": 1, "/x.log": 5}, lambda directory: directory == "/a")
    (Folded(path='/a/', files=2, size=3), Folded(path='/x.log', files=1, size=5))
    >>> folded_rows({"/src/p/cache/a.pyc": 2}, lambda directory: directory.endswith("/cache"))
    (Folded(path='/src/p/cache/', files=1, size=2),)
    """
    paths: dict[str, list[str]] = {}
    for path in staying:
        top = path[: path.find("/", 1) + 1] or path
        found = paths.get(top)
        if found is None:
            found = paths[top] = []
        found.append(path)
    rows = [
        Folded(shown(_around(inner, whole)), len(inner), sum(map(staying.__getitem__, inner)))
        for inner in paths.values()
    ]
    return tuple(sorted(rows, key=lambda row: row.path))


def _around(paths: Sequence[str], whole: Callable[[str], object]) -> str:
    """Return what a row calls these paths, as `Folded.path` says it."""
    common = paths[0] if len(paths) == 1 else f"{commonpath((min(paths), max(paths)))}/"
    end = common.find("/", 1)
    while end > 0:
        if whole(common[:end]):
            return common[: end + 1]
        end = common.find("/", end + 1)
    return common


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes of a branch or a landing, with their hunks.

    Attributes:
        marks: of deleted paths that have flags, by path; those of written ones are their own.
        folded: what stays on the branch by itself, where it was left out.
    """

    written: tuple[FileDiff, ...] = ()
    deleted: tuple[str, ...] = ()
    marks: Mapping[str, PathMarks] = field(default_factory=dict[str, PathMarks])
    folded: tuple[Folded, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the form of WS-35."""
        found: dict[str, Any] = {
            "written": [change.record() for change in self.written],
            "deleted": list(self.deleted),
        }
        marks = {path: mark.record() for path, mark in self.marks.items()}
        folded = [row.record() for row in self.folded]
        return found | ({"marks": marks} if marks else {}) | ({"folded": folded} if folded else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPath(PathMarks):
    """What a landing would do to one path of the workspace.

    Attributes:
        path: as shown; `path_b64` holds its bytes when they are not UTF-8.
        base, current, new: the version that the change started from, the workspace's, and the branch's:
            `sha256:…` of a file, `symlink:TARGET` or `dir`; None = there is none.
        drift: what the user's edits since then mean for it.
        ignored: git's own leavings, which stay on the branch unless they are named.
        hunks: ids of those that land. links: names that the workspace's file has.
        repository: the new git directory that it is a part of, which lands whole, by its own name.
        state: names all three versions; `land(seen=…)` is refused when it is another by then.
    """

    path: str
    op: Op
    base: str | None
    current: str | None
    new: str | None
    drift: Drift
    ignored: bool = False
    hunks: tuple[str, ...] = ()
    links: int = 1
    path_b64: str | None = None
    repository: str | None = None
    state: str = ""

    def record(self) -> dict[str, Any]:
        """Return the form of WS-49."""
        return {
            **_path(self.path, self.path_b64),
            "op": self.op,
            "state": self.state,
            "base": self.base,
            "current": self.current,
            "new": self.new,
            "drift": self.drift,
            **PathMarks.record(self),
            "ignored": self.ignored,
            "hunks": list(self.hunks),
            **({"links": self.links} if self.links > 1 else {}),
            **({"repository": self.repository} if self.repository is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class LandingPlan:
    """What `land` would do; changes nothing.

    Attributes:
        id: names the plan: `land(plan=plan.id)` is refused when something changed since.
        commits: there are commits that a landing of everything brings into the user's repository.
        in_git: the directory is in a git repository: what lands can be a commit.
        folded: what stays on the branch by itself, one row for each top directory; it has no entries.
    """

    id: str
    entries: tuple[PlannedPath, ...] = ()
    commits: bool = False
    in_git: bool = False
    folded: tuple[Folded, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return the form of WS-49."""
        return {
            "plan": self.id,
            "entries": [entry.record() for entry in self.entries],
            "commits": self.commits,
            "in_git": self.in_git,
            "folded": [row.record() for row in self.folded],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """A path that both sides changed.

    Attributes:
        base, ours, theirs: the versions, as in `PlannedPath`.
        hunks: what theirs changed; None when too large to show.
        forced: theirs was taken all the same. lost: what that threw away of ours.
    """

    reason: Reason | None
    base: str | None
    ours: str | None
    theirs: str | None
    hunks: tuple[Hunk, ...] | None = ()
    forced: bool = False
    lost: tuple[Hunk, ...] | None = ()

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "reason": self.reason,
            "base": self.base,
            "ours": self.ours,
            "theirs": self.theirs,
            "hunks": _hunks(self.hunks),
            **({"lost": _hunks(self.lost)} if self.forced else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge did; paths are as shown.

    Attributes:
        written, deleted: what this branch got. merged: those of them where edits of both were joined.
        conflicts: changed by both. skipped: not merged. unknown: given paths without a change.
        details: by path, what is to know about each conflict.
    """

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    details: Mapping[str, MergeConflict] = field(default_factory=dict[str, MergeConflict])

    def record(self) -> dict[str, Any]:
        """Return the form of WS-45."""
        return {
            "written": list(self.written),
            "deleted": list(self.deleted),
            "conflicts": list(self.conflicts),
            "skipped": list(self.skipped),
            "merged": list(self.merged),
            "unknown": list(self.unknown),
            "details": {path: conflict.record() for path, conflict in self.details.items()},
        }


class Exported(msgspec.Struct, frozen=True):
    """Where a branch was written to, and how many paths went there."""

    to: str
    format: Literal["patch", "tar", "dir"]
    paths: int

    def record(self) -> dict[str, Any]:
        """Return the form of WS-39."""
        return {"to": self.to, "format": self.format, "paths": self.paths}


def _path(path: str, encoded: str | None) -> dict[str, Any]:
    return {"path": path} if encoded is None else {"path": path, "path_b64": encoded}


def _hunks(hunks: tuple[Hunk, ...] | None) -> list[dict[str, Any]] | None:
    return None if hunks is None else [hunk.record() for hunk in hunks]
