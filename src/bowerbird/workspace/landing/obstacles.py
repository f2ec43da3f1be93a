"""What the operating system will refuse of a landing, found before the first change (D-1).

Here: one reason per path that cannot be changed as planned. Not here: what to do about it (`plan.py`
refuses the path, `apply.py` refuses the landing), what cannot be known before it happens.
"""

import errno
import os
import stat
from collections.abc import Iterable

import msgspec

from bowerbird.workspace.landing.record import Step
from bowerbird.workspace.landing.statx import beyond
from bowerbird.workspace.tree.real_directory import Beneath, Version

_LONGEST_NAME = 255


class _Directory(msgspec.Struct, frozen=True):
    """What decides whether entries of a directory can be made, replaced and removed."""

    reason: str | None
    mount: int
    device: int
    uid: int
    sticky: bool
    append_only: bool
    longest: int


class Obstacles:
    """Looks at the places where a landing would change something; nothing is written.

    Args:
        tree: the workspace.
    """

    def __init__(self, tree: Beneath) -> None:
        self._tree = tree
        self._directories: dict[bytes, _Directory] = {}
        self._groups: frozenset[int] | None = None

    def of(
        self, path: bytes, before: str | None, after: str | None, *, only_mode: bool = False
    ) -> str | None:
        """Return why a path cannot change, None when nothing is known against it.

        Args:
            before, after: the kinds of what stands there and of what is to stand there, None = nothing.
            only_mode: the same bytes get another mode.
        """
        if (before is None and after is None) or before == after == "dir":
            return None
        above, _, name = path.rpartition(b"/")
        directory = self._directory(self._existing(above))
        if len(name) > directory.longest or any(len(part) > directory.longest for part in above.split(b"/")):
            return f"its name is too long for this file system (at most {directory.longest} bytes)"
        if before is not None:
            own = self._entry(path, directory, before, only_mode=only_mode)
            if own is not None or only_mode:
                return own
        return directory.reason

    def check(self, steps: Iterable[Step]) -> None:
        """Raise PermissionError naming the first step that cannot be done."""
        for step in steps:
            before, after = step.before, step.after
            if before == after:
                continue
            reason = self.of(
                step.path,
                before.kind if before is not None else None,
                after.kind if after is not None else None,
                only_mode=only_mode(before, after),
            )
            if reason is not None:
                raise PermissionError(errno.EACCES, reason, os.fsdecode(step.path))

    # ------------------------------------------------------------ one entry

    def _entry(self, path: bytes, directory: _Directory, before: str, *, only_mode: bool) -> str | None:
        found = self._tree.lstat(path)
        if found is None:
            return None
        handle, name = self._tree.parent(path)
        facts = beyond(handle, name)
        if facts.immutable or facts.append_only:
            attribute = "immutable (chattr +i)" if facts.immutable else "append-only (chattr +a)"
            return f"it is {attribute}"
        user = os.geteuid()
        if only_mode:
            return None if user in (0, found.st_uid) else "its mode can be changed by its owner only"
        if facts.mount_root or found.st_dev != directory.device:
            return "a file system is mounted there"
        if directory.append_only:
            return "its directory is append-only (chattr +a)"
        if directory.sticky and user not in (0, found.st_uid, directory.uid):
            return "it belongs to somebody else, in a directory where only owners remove (sticky)"
        if before == "file" and stat.S_ISREG(found.st_mode) and user != 0 and not self._can_give(found):
            return "it belongs to somebody else, and its owner could not be kept"
        return None

    def _can_give(self, found: os.stat_result) -> bool:
        """Whether a new file can get owner and group of the one it replaces."""
        if self._groups is None:
            self._groups = frozenset({os.getegid(), *os.getgroups()})
        return found.st_uid == os.geteuid() and found.st_gid in self._groups

    # ------------------------------------------------------------ one directory

    def _existing(self, path: bytes) -> bytes:
        """The nearest directory that stands: what is below it is made by the landing."""
        while path:
            found = self._tree.lstat(path)
            if found is not None and stat.S_ISDIR(found.st_mode):
                return path
            path = path.rpartition(b"/")[0]
        return b""

    def _directory(self, path: bytes) -> _Directory:
        known = self._directories.get(path)
        if known is None:
            handle = self._tree.directory(path)
            seen, facts = os.fstat(handle), beyond(handle)
            self._directories[path] = known = _Directory(
                _closed(handle, seen, immutable=facts.immutable),
                facts.mount,
                seen.st_dev,
                seen.st_uid,
                bool(seen.st_mode & stat.S_ISVTX),
                facts.append_only,
                _longest_name(handle),
            )
        return known


def only_mode(before: Version | None, after: Version | None) -> bool:
    """Whether a file keeps its bytes and gets another mode."""
    return (
        before is not None
        and after is not None
        and before.kind == after.kind == "file"
        and before.digest == after.digest
    )


def _closed(handle: int, seen: os.stat_result, *, immutable: bool) -> str | None:
    if immutable:
        return "its directory is immutable (chattr +i)"
    if os.access(".", os.W_OK | os.X_OK, dir_fd=handle, effective_ids=True):
        return None
    if os.fstatvfs(handle).f_flag & os.ST_RDONLY:
        return "its file system is read-only"
    owner = f"it belongs to user {seen.st_uid}, mode {stat.S_IMODE(seen.st_mode):o}"
    return f"its directory cannot be written ({owner})"


def _longest_name(handle: int) -> int:
    try:
        return os.fpathconf(handle, "PC_NAME_MAX")
    except OSError:
        return _LONGEST_NAME
