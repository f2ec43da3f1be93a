"""The hidden place where a landing keeps its new files before, and the old ones after, they change places.

Here: where it is, what is written into it, its end. Not here: the order of changes (`apply.py`), one
change (`acts.py`).

One directory `.bowerbird-<landing>` per file system that the landing touches (D-2): in the workspace's git
directory, where those who watch a project for changes do not look (GI-20), else at the outermost directory
that can be written there, usually the workspace's root. Branches do not see it. A directory whose new files
get a group or an access list from it (setgid, default ACL) has a place of its own.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from bowerbird.workspace.landing.flushing import Flushing
from bowerbird.workspace.landing.inherited_metadata import default_acl, inherit
from bowerbird.workspace.landing.record import LandingFolder, Step
from bowerbird.workspace.landing.statx import beyond
from bowerbird.workspace.tree.ground import LANDING_PLACE
from bowerbird.workspace.tree.handles import DIRECTORY
from bowerbird.workspace.tree.real_directory import Beneath, Version

_GIT = b".git"
_IGNORED = b".gitignore"  # so that git does not list a place that a dead process left


class Staging:
    """The hidden places of one landing, opened when needed; close it after use."""

    def __init__(self, tree: Beneath, folder: LandingFolder) -> None:
        self._tree = tree
        self._folder = folder
        self._going: frozenset[bytes] = frozenset()
        self.gives_back = False  # set for an undo
        self._open: dict[bytes, int] = {}
        self._keys: dict[bytes, tuple[object, ...]] = {}
        self.name = (LANDING_PLACE + folder.path.name.removeprefix("l_")).encode()

    def __enter__(self) -> "Staging":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handles."""
        while self._open:
            with contextlib.suppress(OSError):
                os.close(self._open.popitem()[1])

    # ------------------------------------------------------------ where

    def assign(self, steps: Sequence[Step]) -> list[Step]:
        """Return the steps with the directory that holds each one's place, and who owns what goes away."""
        self._going = frozenset(
            s.path for s in steps if s.before is not None and s.before.kind == "dir" and s.before != s.after
        )
        return [
            replace(step, holder=self._holder(step.path), owned=step.owned or self._owned(step))
            if step.before != step.after
            else step
            for step in steps
        ]

    def _holder(self, path: bytes) -> bytes:
        """The outermost directory from which a file, renamed to `path`, is what a new file there would be."""
        above = path.rpartition(b"/")[0]
        while above:
            found = self._tree.lstat(above)
            if found is not None and stat.S_ISDIR(found.st_mode):
                break
            above = above.rpartition(b"/")[0]
        wanted = self._key(above)
        if self._fits_in_git(wanted):
            return _GIT
        same_device = above
        for outer in _down_to(above):
            if outer in self._going:
                break  # with all that is in it
            if _are_alike(self._key(outer), wanted) and self._can_write(outer):
                return outer
            if self._key(outer)[0] == wanted[0]:
                same_device = outer
        return same_device

    def _fits_in_git(self, wanted: tuple[object, ...]) -> bool:
        """Whether a file from the workspace's git directory is what a new file in a directory would be."""
        found = self._tree.lstat(_GIT)
        if found is None or not stat.S_ISDIR(found.st_mode) or _GIT in self._going:
            return False
        return _are_alike(self._key(_GIT), wanted) and self._can_write(_GIT)

    def _key(self, path: bytes) -> tuple[object, ...]:
        known = self._keys.get(path)
        if known is None:
            handle = self._tree.directory(path)
            seen = os.fstat(handle)
            group = seen.st_gid if seen.st_mode & stat.S_ISGID else None
            known = self._keys[path] = (seen.st_dev, beyond(handle).mount, group, default_acl(handle))
        return known

    def _can_write(self, path: bytes) -> bool:
        handle = self._tree.directory(path)
        return os.access(".", os.W_OK | os.X_OK, dir_fd=handle, effective_ids=True)

    def _owned(self, step: Step) -> tuple[int, int, int] | None:
        """Mode, user and group of a directory that the landing removes, to make it again."""
        if step.before is None or step.before.kind != "dir":
            return None
        seen = self._tree.lstat(step.path)
        return None if seen is None else (stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid)

    def place(self, step: Step) -> int:
        """Return the handle of the place of a step, made when it is missing."""
        holder = step.holder if step.holder is not None else self._holder(step.path)
        known = self._open.get(holder)
        if known is not None:
            return known
        above = self._tree.directory(holder)
        try:
            fd = os.open(self.name, DIRECTORY, dir_fd=above)
        except FileNotFoundError:
            os.mkdir(self.name, 0o700, dir_fd=above)
            fd = os.open(self.name, DIRECTORY, dir_fd=above)
            self._open[holder] = fd
            made = os.open(_IGNORED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=fd)
            try:
                os.write(made, b"*\n")
            finally:
                os.close(made)
        self._open[holder] = fd
        return fd

    # ------------------------------------------------------------ what

    def write(
        self, step: Step, index: int, version: Version | None = None, flushing: Flushing | None = None
    ) -> None:
        """Write the new version of a step (or another one) under its number.

        It is on the disk when this returns, or when `flushing` is finished.
        """
        wanted = version if version is not None else step.after
        assert wanted is not None  # only what stands somewhere is staged
        place, name = self.place(step), b"%d" % index
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=place)
        if wanted.kind == "symlink":
            os.symlink(wanted.target or b"", name, dir_fd=place)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o600, dir_fd=place)
        try:
            side = self._folder.side(wanted)
            assert side is not None and side.content is not None  # a file has bytes
            side.content.write_to(fd)
            existing = step.before is not None and step.before.kind == "file"
            inherit(fd, self._tree, step.path if existing else None)
            # What lands has no setuid, setgid or sticky bit; what comes back has those that it had.
            os.fchmod(fd, wanted.mode if self.gives_back or version is not None else wanted.mode & 0o777)
            os.fsync(fd) if flushing is None else flushing.written(fd)
        finally:
            os.close(fd)

    def holds(self, step: Step, name: bytes) -> bool:
        """Whether something stands under a name in the place of a step."""
        try:
            os.stat(name, dir_fd=self.place(step), follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    # ------------------------------------------------------------ end

    def remove(self, steps: Iterable[Step]) -> None:
        """Remove every place with what is in it.

        Raises:
            OSError: some of it could not be removed.
        """
        for holder in sorted({step.holder for step in steps if step.holder is not None}):
            opened = self._open.pop(holder, None)
            if opened is not None:
                os.close(opened)
            try:
                above = self._tree.directory(holder)
                fd = os.open(self.name, DIRECTORY, dir_fd=above)
            except (FileNotFoundError, NotADirectoryError):
                continue
            try:
                for name in os.listdir(fd):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=fd)
            finally:
                os.close(fd)
            os.rmdir(self.name, dir_fd=self._tree.directory(holder))
        self._remove_earlier(steps)

    def _remove_earlier(self, steps: Iterable[Step]) -> None:
        """Remove what versions before 0.2 left beside the targets of a landing that died."""
        for index, step in enumerate(steps):
            if step.holder is not None or step.before == step.after:
                continue
            name = b".bowerbird-%s-%d.tmp" % (self._folder.path.name.encode(), index)
            above = step.path
            while above:
                above = above.rpartition(b"/")[0]
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(name, dir_fd=self._tree.directory(above))


def _are_alike(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Whether two directories give new files the same; a mount that is not told (0) differs from none."""
    mounts = {one[1], other[1]} - {0}
    return len(mounts) < 2 and (one[0], *one[2:]) == (other[0], *other[2:])


def _down_to(path: bytes) -> Iterator[bytes]:
    """The workspace's top, and each directory on the way down to one, that one too."""
    yield b""
    end = path.find(b"/")
    while end >= 0:
        yield path[:end]
        end = path.find(b"/", end + 1)
    if path:
        yield path
