"""Renaming a directory that lies in a lower layer: the kernel's overlay says EXDEV, this does what `mv` does.

An overlay in a user namespace cannot redirect a directory, so rename(2) of one that the branch did not make
itself fails, and `git mv`, `os.rename`, `fs.renameSync` with it. A second filter, on top of the usual one,
hands every rename to a thread of the command's init. What is no directory is left to the kernel at once. For
a directory the thread makes the call itself; where the answer is EXDEV within one mount, it makes the same
tree beside the target under a passing name, renames that to the target, and removes the source. Killed in
between, nothing is lost: until the rename the source is whole, after it the target is.

What the command writes to its memory, or does to the paths, while this thread looks cannot make it do what
the command could not do itself: the thread stands in the command's own namespaces, as its user, without
capabilities and under the usual filter. So the user's files are as far away from it as from the command.

Small files are copied with all that they are, large ones linked (see `duplicate`): each in the time that it
takes outside.

Here: deciding and doing this. Not here: reading calls (`notifications`), copying (`duplicate`).
"""

import _thread
import contextlib
import errno
import os
import stat
import struct

from . import duplicate, kernel
from .notifications import AT_FDCWD, CONTINUE, Call, serve

MOST_ENTRIES, MOST_BYTES = 200_000, 4 << 30
_NOREPLACE = 1
_NUMBERS = {
    "x86_64": {82: "rename", 264: "renameat", 316: "renameat2"},
    "aarch64": {38: "renameat", 276: "renameat2"},
}
_LOAD_NUMBER, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF_0000, 0x7FC0_0000
_PASSING = ".bowerbird-rename-"
_MOST_TOLD, _LONGEST_NAME = 3, 200


class Renames:
    """The supervisor of one command's renames.

    Attributes:
        refused: what was not renamed because it is too large or of a kind that cannot be, in few words each.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        self._names = _NUMBERS[os.uname().machine]
        self._one_at_a_time = _thread.allocate_lock()

    def start(self) -> None:
        """Supervise what this thread starts from now on; not where a filter outside has a listener."""
        wait = _thread.allocate_lock()
        wait.acquire()
        listeners: list[int] = []
        _thread.start_new_thread(self._serve, (wait, listeners))  # a later thread would be under the filter
        with contextlib.suppress(OSError):
            listeners.append(kernel.install_notifying_seccomp(_filter(self._names)))
        wait.release()

    def settle(self) -> None:
        """Wait until no copy is half made; every caller is dead, so each gives up soon."""
        self._one_at_a_time.acquire(timeout=5)

    def _serve(self, wait: "_thread.LockType", listeners: "list[int]") -> None:
        wait.acquire()
        for listener in listeners:
            serve(listener, self._take)

    def _take(self, call: Call) -> None:
        try:
            name = self._names[call.number]
            old = _End(call, AT_FDCWD, 0) if name == "rename" else _End(call, call.number_at(0), 1)
            if old.is_directory():
                new = _End(call, AT_FDCWD, 1) if name == "rename" else _End(call, call.number_at(2), 3)
                flags = call.number_at(4) if name == "renameat2" else 0
                _thread.start_new_thread(self._do, (_Wish(call, old, new, flags),))  # others need not wait
                return
        except (OSError, KeyError, RuntimeError):
            pass  # the kernel finds the same, and says it in its own words
        call.answer(flags=CONTINUE)

    def _do(self, wish: "_Wish") -> None:
        failed = errno.EIO  # whatever happens: who called is answered
        try:
            with wish:
                try:
                    wish.rename()
                except OSError as error:
                    if error.errno != errno.EXDEV or not wish.within_one_mount():
                        raise
                    self._move(wish)
            failed = 0
        except OSError as error:
            failed = error.errno or errno.EXDEV
        finally:
            wish.call.answer(failed)

    def _move(self, wish: "_Wish") -> None:
        with self._one_at_a_time:
            try:
                wish.call.check()
                if wish.flags & ~_NOREPLACE:
                    raise duplicate.CannotCopy("is to change places with another")
                wish.move()
            except duplicate.CannotCopy as error:
                if len(self.refused) < _MOST_TOLD:
                    self.refused.append(f"{os.fsdecode(wish.old.path[-_LONGEST_NAME:])} {error}")
                raise OSError(errno.EXDEV, "cannot be copied") from error


class _End:
    """One of the two names in a call: where it starts, and the path."""

    def __init__(self, call: Call, directory: int, index: int) -> None:
        self.call, self.directory = call, directory
        self.path = call.own(call.path_at(index))
        self.name = self.path.rstrip(b"/").rpartition(b"/")[2]
        self.parent = -1

    def is_directory(self) -> bool:
        """Whether a directory has this name now."""
        path = self.path if self.path.startswith(b"/") else self.call.place(self.directory) + b"/" + self.path
        return bool(self.path) and stat.S_ISDIR(os.lstat(path).st_mode)

    def open(self) -> None:
        """Hold the directory that the name is in."""
        above, slash, _ = self.path.rstrip(b"/").rpartition(b"/")
        self.parent = self.call.open(self.directory, above or slash, follow=True)

    def whole_name(self) -> bytes:
        """Return the name with the slash that says that it must be a directory's."""
        return self.name + (b"/" if self.path.endswith(b"/") else b"")


class _Wish:
    """What one call asks for. As a context it holds the two directories open."""

    def __init__(self, call: Call, old: _End, new: _End, flags: int) -> None:
        self.call, self.old, self.new, self.flags = call, old, new, flags

    def __enter__(self) -> "_Wish":
        self.old.open()
        self.new.open()
        self.call.check()
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self.old, self.new):
            if end.parent >= 0:
                os.close(end.parent)

    def within_one_mount(self) -> bool:
        """Whether the kernel's EXDEV is the overlay's own."""
        return _mount(self.old.parent) == _mount(self.new.parent) != ""

    def rename(self) -> None:
        """Make the call; raises OSError as the kernel does."""
        ends = (self.old.parent, self.old.whole_name(), self.new.parent, self.new.whole_name())
        kernel.rename(*ends, self.flags)

    def move(self) -> None:
        """Make the tree beside the target, put it there, remove the source."""
        old, new, passing = self.old, self.new, _PASSING + os.urandom(6).hex()
        source = os.open(old.name, duplicate.DIRECTORY, dir_fd=old.parent)
        try:
            self._check_target(new.parent, new.name)
            try:
                copying = duplicate.Copying(MOST_ENTRIES, MOST_BYTES, self.call.check)
                copying.copy(source, new.parent, passing)
                self.call.check()
                kernel.rename(new.parent, passing.encode(), new.parent, new.name, self.flags)
            except BaseException:
                duplicate.remove(new.parent, passing)
                raise
        finally:
            os.close(source)
        duplicate.remove(old.parent, os.fsdecode(old.name))

    @staticmethod
    def _check_target(parent: int, name: bytes) -> None:
        """Refuse before the copy what the kernel would refuse after it."""
        with contextlib.suppress(FileNotFoundError):
            there = os.open(name, duplicate.DIRECTORY, dir_fd=parent)
            try:
                with os.scandir(there) as items:
                    if next(items, None) is not None:
                        raise OSError(errno.ENOTEMPTY, "directory is not empty")
            finally:
                os.close(there)


def _mount(handle: int) -> str:
    """Return the number of the mount that an open directory lies in."""
    with open(f"/proc/self/fdinfo/{handle}", encoding="ascii") as file:
        return next((line for line in file if line.startswith("mnt_id:")), "")


def _filter(numbers: "dict[int, str]") -> bytes:
    """Return the program that hands these calls over; the usual filter knows about all others."""
    after = len(numbers)
    rows = [(_LOAD_NUMBER, 0, 0, 0)]
    rows += [(_JUMP_IF_EQUAL, after - place, 0, number) for place, number in enumerate(numbers)]
    rows += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]
    return b"".join(struct.pack("=HBBI", *row) for row in rows)
