"""The record of a landing (WS-54) and the folder that holds it.

Here: frozen values, their files, replaced atomically; how long they stay. Not here: what a landing does to
files (`apply.py`), which paths go in (`plan.py`).

A landing is a folder `landings/<id>/`:
    record.json   what people and doors see, the keys of WS-54
    steps.json    what the apply engine needs to finish or judge an interrupted landing,
                  written before the first temporary file exists
    blobs/        the bytes of every version named in steps.json, by digest
"""

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from bowerbird.core.errors import WorkspaceError
from bowerbird.core.forms import decode
from bowerbird.workspace.compare.results import Op
from bowerbird.workspace.landing.flushing import Flushing
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.changes import covers
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.real_directory import Version
from bowerbird.workspace.tree.threeway import Side

T = TypeVar("T")
KEPT_LANDINGS = 100
KEPT_BYTES = 2 * 1024**3
ALWAYS_KEPT = 10
KEPT_VERSIONS = 20
VERSIONED = ("/MEMORY.md", "/skills")
"""Of these the newest 20 landings stay longer than others; skills elsewhere like any file."""
_WROTE = ("done", "undone")
State = Literal["prepared", "applying", "done", "undone", "needs_attention", "given_up"]


class LandingEntry(msgspec.Struct, frozen=True):
    """One landed path.

    Attributes:
        path: virtual path as shown; `path_b64` holds its bytes when they are not UTF-8.
        before, after: the version replaced and the version landed, None = absent:
            `sha256:…` of a file, `symlink:TARGET`, or `dir`.
        mode: permission bits after the landing, None when it has none.
        hunks: ids of the hunks landed when not all were.
        merged: edits of the user were joined in.
        tainted: untrusted text was in context when it was written. taint: what that was, where known.
    """

    path: str
    op: Op
    before: str | None
    after: str | None
    mode: int | None = None
    hunks: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    merged: bool = False
    tainted: bool = False
    taint: tuple[str, ...] = ()
    path_b64: str | msgspec.UnsetType = msgspec.UNSET


class Refused(msgspec.Struct, frozen=True):
    """A path that did not land, and why."""

    path: str
    reason: str


Kind = Literal["land", "undo", "commit"]


class LandingRecord(msgspec.Struct, frozen=True):
    """What a landing or an undo did to a workspace; the first keys are those of WS-54.

    Attributes:
        kind: `commit` = its files went into a commit on another git branch only; no such record is kept.
        snapshot: the branch's frozen state the bytes came from.
        actor, door: who asked, through what.
        undoes: the landing this one takes back, for `kind="undo"`.
        attention: paths of a landing that needs attention: in a third state, or stuck.
        troubles: why, for each of them.
        workspace: the directory landed in.
        whole: of an undo: it takes back all of the landing, not some paths or hunks.
    """

    id: str
    kind: Kind
    branch: str
    snapshot: str | None
    actor: str
    door: str
    at: str
    state: State = "prepared"
    entries: tuple[LandingEntry, ...] = ()
    refused: tuple[Refused, ...] = ()
    undoes: str | None = None
    v: int = 1
    attention: tuple[str, ...] = ()
    troubles: tuple[Refused, ...] = ()
    workspace: str = ""
    whole: bool = True

    def to_data(self) -> dict[str, Any]:
        """Return plain data, as doors and files show it."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data


class Step(msgspec.Struct, frozen=True):
    """What happens to one path of the workspace, and to the branch's base of it.

    Attributes:
        path: bytes relative to the root.
        before, after: the workspace's version replaced and landed.
        base, new: the branch's base before the landing and after it.
        implied: a directory made only because a path below needs it; in no record entry.
        holder: the directory whose hidden place holds the step's file (`staging.py`); None in
            records of before 0.2.
        owned: mode, user and group of a directory that is removed, or made again by an undo; of a new one
            that is closed its mode, with -1 for user and group.
    """

    path: bytes
    before: Version | None
    after: Version | None
    base: Version | None = None
    new: Version | None = None
    implied: bool = False
    holder: bytes | None = None
    owned: tuple[int, int, int] | None = None


class LandingFolder:
    """The directory of one landing.

    Args:
        path: `…/landings/<id>`; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._blobs = f"{path}/blobs/"

    def create(self) -> None:
        """Make the directories, private to the user."""
        self.path.mkdir(mode=0o700, parents=True)
        (self.path / "blobs").mkdir(mode=0o700)

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.path)

    @property
    def untidy(self) -> Path:
        """Stands where the hidden place of a landing that ended could not be removed."""
        return self.path / "untidy"

    def forget_record(self) -> None:
        """Make it a landing that never began."""
        (self.path / "record.json").unlink(missing_ok=True)
        sync_directory(self.path)

    @property
    def started(self) -> bool:
        """Whether a record was written: before that, nothing but temporary files exists."""
        return presence.exists(self.path / "record.json")

    def record(self) -> LandingRecord:
        """Return the record; raises WorkspaceError naming a landing that cannot be read."""
        return self._decode("record.json", LandingRecord)

    def steps(self) -> tuple[Step, ...]:
        """Return the steps; raises WorkspaceError naming a landing that cannot be read."""
        return self._decode("steps.json", tuple[Step, ...])

    def write_record(self, record: LandingRecord) -> None:
        """Replace the record, on disk when this returns."""
        write_durably(self.path / "record.json", msgspec.json.format(msgspec.json.encode(record)))

    def set_state(self, record: LandingRecord, state: State) -> None:
        """Write the record in another state."""
        self.write_record(msgspec.structs.replace(record, state=state))

    def write_steps(self, steps: Sequence[Step]) -> None:
        """Write the steps, on disk when this returns."""
        write_durably(self.path / "steps.json", msgspec.json.encode(steps))

    def keep(self, side: Side | None, version: Version | None, flushing: Flushing) -> None:
        """Store the bytes of a version, once; they are on the disk when `flushing` is finished."""
        if side is None or side.content is None or version is None or version.digest is None:
            return
        target = self.blob(version.digest)
        if presence.exists(target):
            return
        if side.content.frozen is not None:
            try:
                os.link(side.content.frozen, target)
                return
            except OSError:  # another file system, or its limit of links: copy
                pass
        _copy(side.content, target, flushing)

    def keep_all(self, kept: Iterable[tuple[Side | None, Version | None]], flushing: Flushing) -> None:
        """Store several versions; of equal bytes the one that costs a link, not a copy."""
        for side, version in sorted(kept, key=lambda item: not _is_frozen(item[0])):
            self.keep(side, version, flushing)

    def blob(self, digest: str) -> str:
        """The file that holds the bytes of `digest`."""
        return self._blobs + digest.partition(":")[2]  # a `Path` for each of 30,000 takes seconds

    def side(self, version: Version | None) -> Side | None:
        """Return a stored version as one side of a merge."""
        if version is None:
            return None
        if version.kind == "symlink":
            return Side("symlink", 0, None, os.fsdecode(version.target or b""))
        if version.kind == "file":
            blob = self.blob(version.digest or "")
            return Side("file", version.mode, Content(blob, frozen=blob))
        return Side(version.kind)

    def bytes_used(self) -> int:
        """Sum of the sizes of its files, for the retention limit."""
        return sum(item.lstat().st_size for item in (self.path / "blobs").iterdir())

    def _decode(self, name: str, form: type[T]) -> T:
        try:
            return decode((self.path / name).read_bytes(), form)
        except (OSError, msgspec.MsgspecError) as error:
            raise WorkspaceError(f"{name} of landing {self.path.name} cannot be read: {error}") from error


def _is_frozen(side: Side | None) -> bool:
    return side is not None and side.content is not None and side.content.frozen is not None


def _copy(content: Content, target: str, flushing: Flushing) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        content.write_to(fd)
        flushing.written(fd)
    finally:
        os.close(fd)


def write_durably(path: Path, data: bytes) -> None:
    """Replace `path` by temporary file, fsync, rename and fsync of the directory."""
    temporary = path.with_name(path.name + ".tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)
    temporary.rename(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def changed_below(state: State, entries: Sequence[LandingEntry], top: str) -> tuple[str, ...]:
    """Return the paths that a landing in this state changed at or below a virtual path."""
    if state not in _WROTE:
        return ()
    return tuple(entry.path for entry in entries if covers(top, entry.path))
