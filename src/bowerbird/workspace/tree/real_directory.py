"""Files of one real directory, reached through directory handles and no link.

Here: finding the handle of a path's directory, what stands at a path, `Version` values.
Not here: branches and layers, decisions, the order of changes (`landing/apply.py`).

Directories are opened beneath the root's handle through no link (`handles.py`), so a link
that someone puts in the way is met as an error and never followed (WS-53).
"""

import contextlib
import errno
import os
import stat
import time
from pathlib import Path
from typing import Literal

import msgspec

from bowerbird.core.errors import InvalidWorkspace
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.handles import DIRECTORY, FILE, look, open_beneath
from bowerbird.workspace.tree.nodes import kind_of
from bowerbird.workspace.tree.threeway import Side

_KEPT_HANDLES = 200
_TRIES = 5
# A stat younger than this when read may hide a second change within one clock tick.
_RACY_NS = 50_000_000


class Version(msgspec.Struct, frozen=True):
    """What stands at a path, small enough for a record.

    Attributes:
        mode: permission bits of a file with setuid, setgid, sticky; 0 for others.
        digest: of a file's bytes. target: of a symlink.
    """

    kind: Literal["file", "dir", "symlink", "special"]
    mode: int = 0
    digest: str | None = None
    target: bytes | None = None

    @property
    def shown(self) -> str:
        """The form in landing records: a digest, `symlink:TARGET`, `dir`."""
        if self.kind == "symlink":
            return "symlink:" + (self.target or b"").decode("utf-8", "backslashreplace")
        return self.digest if self.digest is not None else self.kind


def version_of(side: Side | None) -> Version | None:
    """Return the record form of a side; reads the bytes to name them."""
    if side is None:
        return None
    if side.kind == "file":
        content = side.content if side.content is not None else Content(b"")
        return Version("file", side.mode, content.digest())
    if side.kind == "symlink":
        return Version("symlink", 0, None, os.fsencode(side.target or ""))
    return Version(side.kind)


def landed_version(side: Side | None) -> Version | None:
    """Return what a workspace gets of a side: setuid, setgid and sticky are stripped."""
    return landed_form(version_of(side))


def landed_form(version: Version | None) -> Version | None:
    """Return a version as a landing leaves it."""
    if version is None or version.kind != "file":
        return version
    return msgspec.structs.replace(version, mode=version.mode & 0o777)


class Gone(FileNotFoundError):
    """A file went, or was saved, after it was looked at; `filename` is its whole path below the tree."""


class Beneath:
    """One open directory tree; close it after use.

    Args:
        root: the directory. Paths below are bytes relative to it, `b"src/a.py"`.

    Raises:
        InvalidWorkspace: `root` is missing or no directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            self._root_fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise InvalidWorkspace(f"workdir does not exist: {root}") from error
        except NotADirectoryError as error:
            raise InvalidWorkspace(f"workdir is not a directory: {root}") from error
        self._handles: dict[bytes, int] = {}
        self._known: dict[bytes, tuple[tuple[int, ...], Version]] = {}

    def __enter__(self) -> "Beneath":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def fd(self) -> int:
        """The handle of the root."""
        return self._root_fd

    def close(self) -> None:
        """Close all handles."""
        self.forget()
        root_fd, self._root_fd = self._root_fd, -1
        if root_fd >= 0:
            with contextlib.suppress(OSError):  # it was open for looking only
                os.close(root_fd)

    def forget(self) -> None:
        """Close the kept handles of directories below the root."""
        while self._handles:
            _, fd = self._handles.popitem()  # first: a handle that is closed must not be used again
            with contextlib.suppress(OSError):
                os.close(fd)

    def directory(self, path: bytes) -> int:
        """Return the handle of a directory; valid until the next call of this object.

        Raises:
            FileNotFoundError, NotADirectoryError: a component is missing, or no real directory.
        """
        if not path:
            return self._root_fd
        known = self._handles.get(path)
        if known is not None:
            return known
        try:
            fd = open_beneath(self._root_fd, path, DIRECTORY)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise NotADirectoryError(error.errno, "a link is on the way", path) from error
            raise
        if len(self._handles) >= _KEPT_HANDLES:
            self.forget()
        self._handles[path] = fd
        return fd

    def parent(self, path: bytes) -> tuple[int, bytes]:
        """Return the handle of the directory that holds `path`, and the last name."""
        above, _, name = path.rpartition(b"/")
        return self.directory(above), name

    def lstat(self, path: bytes) -> os.stat_result | None:
        """Return the stat of `path` itself, None when nothing is there."""
        if not path:
            return os.fstat(self._root_fd)
        try:
            fd, name = self.parent(path)
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def open(self, path: bytes) -> int:
        """Open a file for reading, following nothing and waiting for nothing.

        Raises:
            Gone: nothing is there, or no directory above it.
        """
        try:
            fd, name = self.parent(path)
            return os.open(name, FILE, dir_fd=fd)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise Gone(error.errno, error.strerror, os.fsdecode(path)) from error

    def side(self, path: bytes) -> Side | None:
        """Return what stands at `path` as one side of a merge; bytes are read when needed.

        They are those of this moment: once the file was saved again, reading them raises `Gone`.
        """
        found, target = self.lstat(path), None
        if found is not None and stat.S_ISLNK(found.st_mode):  # once more, with its target: both of one thing
            found, target = look(*self.parent(path)) or (None, None)
        if found is None:
            return None
        kind = kind_of(found.st_mode)
        if kind == "file":
            sign = stat_sign(found)
            return Side(
                "file", stat.S_IMODE(found.st_mode), Content(lambda: self._reopen(path, sign), found.st_size)
            )
        if kind == "symlink":
            return Side("symlink", 0, None, target)
        return Side(kind)

    def _reopen(self, path: bytes, sign: tuple[int, ...]) -> int:
        fd = self.open(path)
        if stat_sign(os.fstat(fd)) != sign:
            os.close(fd)
            raise Gone(errno.ESTALE, "saved again since it was looked at", os.fsdecode(path))
        return fd

    def version(self, path: bytes) -> Version | None:
        """Return the record form of what stands at `path`.

        A file is hashed again only when its stat differs from that of the last time, or
        was so fresh then that a change within one clock tick would not show.
        """
        for _ in range(_TRIES):
            with contextlib.suppress(Gone):  # an editor that saves: look again
                return self._version(path)
        return self._version(path)

    def _version(self, path: bytes) -> Version | None:
        found = self.lstat(path)
        if found is None:
            return None
        sign = stat_sign(found)
        known = self._known.get(path)
        if known is not None and known[0] == sign:
            return known[1]
        looked_ns = time.time_ns()
        version = version_of(self.side(path))
        if version is not None and looked_ns - found.st_ctime_ns > _RACY_NS:
            self._known[path] = (sign, version)
        return version

    def names(self, path: bytes) -> list[bytes]:
        """Return the names in a directory."""
        return [os.fsencode(name) for name in os.listdir(self.directory(path))]


def stat_sign(found: os.stat_result) -> tuple[int, ...]:
    """Return what tells a changed file from an unchanged one without reading it."""
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_mode,
    )
