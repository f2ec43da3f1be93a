"""One change of the user's directory, there and back.

Here: the order of changes, doing one, taking one back, each finding out by itself whether it is done
already. Not here: records and what follows from an error (`apply.py`), the hidden place (`staging.py`).

Nothing is thrown away: what a landing replaces changes places with the new file, what it removes goes
into the hidden place. Taking back is the same rename again; it needs no room on the disk, and owner,
access lists and hard links come back with it.
"""

import contextlib
import errno
import os
from collections.abc import Sequence
from typing import Literal

import msgspec

from bowerbird.workspace.landing.obstacles import only_mode
from bowerbird.workspace.landing.record import Step
from bowerbird.workspace.landing.staging import Staging
from bowerbird.workspace.tree import handles
from bowerbird.workspace.tree.real_directory import Beneath, Version

Sign = tuple[int, ...]
# Somebody builds here at the same time; theirs stays.
_SOMEBODY_ELSE = (FileExistsError, IsADirectoryError, NotADirectoryError, FileNotFoundError)


class Action(msgspec.Struct, frozen=True):
    """One change of the file system; `index` is the step's."""

    verb: Literal["remove", "rmdir", "mkdir", "place", "chmod"]
    index: int


def ordered(steps: Sequence[Step]) -> list[Action]:
    """Return the changes in an order that always works: clear deepest first, build outermost first.

    A path that changes its kind is cleared and built in two actions.
    """
    clear: list[tuple[int, Action]] = []
    build: list[tuple[int, Action]] = []
    for index, step in enumerate(steps):
        before, after, depth = step.before, step.after, step.path.count(b"/")
        if before == after:
            continue
        if before is not None and (after is None or _becomes_or_was_dir(step)):
            verb = "rmdir" if before.kind == "dir" else "remove"
            clear.append((-depth, Action(verb, index)))
        if after is None:
            continue
        if after.kind == "dir":
            build.append((depth, Action("mkdir", index)))
        elif only_mode(before, after):
            build.append((depth, Action("chmod", index)))
        else:
            build.append((depth, Action("place", index)))
    order = {"remove": 0, "rmdir": 1, "mkdir": 2, "place": 3, "chmod": 4}
    clear.sort(key=lambda item: (order[item[1].verb], item[0]))
    build.sort(key=lambda item: (order[item[1].verb], item[0]))
    return [action for _, action in clear + build]


def _becomes_or_was_dir(step: Step) -> bool:
    """Whether the path must be cleared before it is built: rename cannot swap file and directory."""
    before, after = step.before, step.after
    return before is not None and after is not None and (before.kind == "dir") != (after.kind == "dir")


class Acts:
    """Does actions, or takes them back.

    Args:
        tree: the workspace, locked by the caller. staging: the landing's places.
    """

    def __init__(self, tree: Beneath, staging: Staging) -> None:
        self._tree = tree
        self._staging = staging

    # ------------------------------------------------------------ there

    def do(self, action: Action, step: Step) -> bool:
        """Do an action unless it is done already; False = a third state, left as it is."""
        seen = self._sign(step.path)
        current = self._tree.version(step.path)
        if current == step.after:
            return True
        between = current is None and _becomes_or_was_dir(step)
        if current is None and action.verb in ("remove", "rmdir"):
            return True
        if current != step.before and not between:
            return False
        try:
            return getattr(self, f"_{action.verb}")(step, action.index, seen)
        except _SOMEBODY_ELSE:
            return False

    def _remove(self, step: Step, index: int, seen: Sign | None) -> bool:
        place, name = self._staging.place(step), b"%d" % index
        with contextlib.suppress(FileNotFoundError):  # a leftover of an earlier attempt
            os.unlink(name, dir_fd=place)
        fd, target = self._tree.parent(step.path)
        os.rename(target, name, src_dir_fd=fd, dst_dir_fd=place)
        if _sign(os.stat(name, dir_fd=place, follow_symlinks=False)) != seen:
            handles.rename_new(place, name, fd, target)  # saved in this very moment: it stays
            return False
        return True

    def _rmdir(self, step: Step, _: int, __: Sign | None) -> bool:
        self._tree.forget()
        fd, name = self._tree.parent(step.path)
        try:
            os.rmdir(name, dir_fd=fd)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            # Files that are not ours are in it: the directory stays for them.
            return step.after is None
        return True

    def _mkdir(self, step: Step, _: int, __: Sign | None) -> bool:
        fd, name = self._tree.parent(step.path)
        os.mkdir(name, 0o777 if step.owned is None else 0o700, dir_fd=fd)
        if step.owned is not None:
            self._own(step)
        return True

    def _own(self, step: Step) -> None:
        """Give a directory the mode that it had, and one that stands again its owner, too (-1 = none)."""
        mode, user, group = step.owned or (0o755, -1, -1)
        handle = self._tree.directory(step.path)
        seen = os.fstat(handle)
        if step.owned is not None and (seen.st_uid, seen.st_gid) != (user, group):
            with contextlib.suppress(PermissionError):  # it was somebody else's
                os.fchown(handle, user, group)
        inherited = seen.st_mode & 0o7000 if user == -1 else 0
        os.fchmod(handle, mode | inherited)

    def _chmod(self, step: Step, _: int, __: Sign | None) -> bool:
        self._set_mode(step.path, step.after)
        return True

    def _place(self, step: Step, index: int, seen: Sign | None) -> bool:
        name = b"%d" % index
        if not self._staging.holds(step, name):
            self._staging.write(step, index)  # the machine died before it was on disk
        place = self._staging.place(step)
        fd, target = self._tree.parent(step.path)
        if seen is None:
            handles.rename_new(place, name, fd, target)
            return True
        try:
            _swap(place, name, fd, target)
        except OSError as error:
            if error.errno not in handles.UNSUPPORTED:
                raise
            return self._replace(place, name, fd, target)
        if _sign(os.stat(name, dir_fd=place, follow_symlinks=False)) != seen:
            _swap(place, name, fd, target)  # saved in this very moment: it stays
            return False
        return True

    def _replace(self, place: int, name: bytes, fd: int, target: bytes) -> bool:
        """Replace where names cannot be swapped; the old file stays under a second name if it can."""
        with contextlib.suppress(OSError):
            os.link(target, name + b".old", src_dir_fd=fd, dst_dir_fd=place, follow_symlinks=False)
        os.rename(name, target, src_dir_fd=place, dst_dir_fd=fd)
        return True

    # ------------------------------------------------------------ and back

    def undo(self, action: Action, step: Step) -> bool:
        """Take an action back if it was done; False = somebody else changed the path, left as it is.

        Raises:
            OSError: it cannot be taken back now.
        """
        current = self._tree.version(step.path)
        if current == step.before:
            return True
        if action.verb in ("remove", "rmdir"):
            return current is None and getattr(self, f"_undo_{action.verb}")(step, action.index)
        if current is None and _becomes_or_was_dir(step):
            return True  # cleared only; taking that back comes next
        if current != step.after:
            return False
        return getattr(self, f"_undo_{action.verb}")(step, action.index)

    def _undo_remove(self, step: Step, index: int) -> bool:
        name = b"%d" % index
        if not self._holds_version(step, name, step.before):
            self._staging.write(step, index, step.before)
        fd, target = self._tree.parent(step.path)
        handles.rename_new(self._staging.place(step), name, fd, target)
        return True

    def _undo_rmdir(self, step: Step, _: int) -> bool:
        fd, name = self._tree.parent(step.path)
        os.mkdir(name, 0o700, dir_fd=fd)
        self._own(step)
        return True

    def _undo_mkdir(self, step: Step, _: int) -> bool:
        self._tree.forget()
        fd, name = self._tree.parent(step.path)
        try:
            os.rmdir(name, dir_fd=fd)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False  # somebody uses it already
        return True

    def _undo_chmod(self, step: Step, _: int) -> bool:
        self._set_mode(step.path, step.before)
        return True

    def _undo_place(self, step: Step, index: int) -> bool:
        name = b"%d" % index
        cleared = step.before is None or step.before.kind == "dir"
        if not cleared and self._holds_version(step, name + b".old", step.before):
            name += b".old"
        elif not cleared and not self._holds_version(step, name, step.before):
            self._staging.write(step, index, step.before)
        place = self._staging.place(step)
        fd, target = self._tree.parent(step.path)
        if cleared:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=place)
            os.rename(target, name, src_dir_fd=fd, dst_dir_fd=place)
            return True
        try:
            _swap(place, name, fd, target)
        except OSError as error:
            if error.errno not in handles.UNSUPPORTED:
                raise
            os.rename(name, target, src_dir_fd=place, dst_dir_fd=fd)
        return True

    # ------------------------------------------------------------ helpers

    def _holds_version(self, step: Step, name: bytes, version: Version | None) -> bool:
        """Whether the place holds the version that is to come back, and not another one."""
        if not self._staging.holds(step, name):
            return False
        place = (step.holder or b"") + (b"/" if step.holder else b"") + self._staging.name
        return self._tree.version(place + b"/" + name) == version

    def _set_mode(self, path: bytes, version: Version | None) -> None:
        fd = self._tree.open(path)
        try:
            os.fchmod(fd, version.mode if version is not None else 0)
        finally:
            os.close(fd)

    def _sign(self, path: bytes) -> Sign | None:
        found = self._tree.lstat(path)
        return None if found is None else _sign(found)


def _swap(place: int, name: bytes, fd: int, target: bytes) -> None:
    """Have a file of the hidden place and one of the user's change places.

    In this order of arguments, whoever watches the user's directory hears that the old file went and then
    that the new one came, as of an editor's save; in the other one, that it went comes last.
    """
    try:
        handles.exchange(fd, target, place, name)
    except OSError as error:
        error.filename = os.fsdecode(target)  # which people know
        raise


def _sign(found: os.stat_result) -> Sign:
    """What a rename leaves alone and a save does not."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)
