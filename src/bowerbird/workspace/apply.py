"""Changing a real directory all at once, or after a crash not at all (WS-53).

Here: staging, the order of changes, going on after a crash.
Not here: which paths change and whether they may (`plan.py`), the lock (`landing_lock.py`), branches.

Order on disk: blobs and steps.json → temporary files beside their targets → record
`prepared` → every path looked at again → record `applying` → removals, directories,
renames, modes → fsync of the directories → the branch's bases → record `done`.
Killed before `applying`: the temporary files go and nothing happened. Killed after: each
path is still `before`, already `after`, or between two kinds, and the rest is done.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from bowerbird.core.errors import LimitExceeded, ReadOnly, WorkspaceError
from bowerbird.workspace.beneath import Beneath, Version
from bowerbird.workspace.landing_record import LandingFolder, LandingRecord, Step
from bowerbird.workspace.metadata import inherit
from bowerbird.workspace.paths import shown

Checkpoint = Callable[[str], None]
Settle = Callable[[LandingRecord, Sequence[Step]], None]


def no_checkpoint(_: str) -> None:
    """The checkpoint of ordinary landings: nothing."""


def settle_nothing(_: LandingRecord, __: Sequence[Step]) -> None:
    """For a landing whose branch is gone: no base to move."""


class Changed(WorkspaceError):
    """Paths of the workspace changed between planning and applying; nothing was written."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__("the workspace changed while landing: " + ", ".join(paths))
        self.paths = tuple(paths)


@dataclass(frozen=True, slots=True)
class Action:
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
        becomes_dir = (
            before is not None and after is not None and (before.kind == "dir") != (after.kind == "dir")
        )
        if before is not None and (after is None or becomes_dir):
            verb = "rmdir" if before.kind == "dir" else "remove"
            clear.append((-depth, Action(verb, index)))
        if after is None:
            continue
        if after.kind == "dir":
            build.append((depth, Action("mkdir", index)))
        elif _only_mode(before, after):
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


def _only_mode(before: Version | None, after: Version) -> bool:
    return before is not None and before.kind == after.kind == "file" and before.digest == after.digest


class Applier:
    """Applies one landing; its folder already holds the bytes of every version.

    Args:
        tree: the workspace, locked by the caller with `workspace_lock`.
        checkpoint: called with the name of each write point, before it; for crash tests.
    """

    def __init__(self, tree: Beneath, folder: LandingFolder, checkpoint: Checkpoint = no_checkpoint) -> None:
        self._tree = tree
        self._folder = folder
        self._checkpoint = checkpoint

    def run(self, record: LandingRecord, steps: Sequence[Step], settle: Settle) -> LandingRecord:
        """Apply `steps` and return the record as it ended.

        Raises:
            Changed: a path is no longer what the plan saw; nothing changed.
            ReadOnly, LimitExceeded, WorkspaceError: the file system refused; nothing changed.
        """
        try:
            self._checkpoint("steps")
            self._folder.write_steps(steps)
            self._refuse_forbidden(steps)
            self._stage(steps)
            self._checkpoint("prepared")
            self._folder.write_record(record)
            moved = [s for s in steps if self._tree.version(s.path) != s.before]
            if moved:
                raise Changed([shown("/" + os.fsdecode(step.path)) for step in moved])
            self._checkpoint("applying")
            record = msgspec.structs.replace(record, state="applying")
            self._folder.write_record(record)
        except BaseException as error:  # also a cancelled run leaves nothing behind
            discard(self._tree, self._folder, steps)
            if isinstance(error, OSError):
                raise file_refusal(error) from error
            raise
        return self.finish(record, steps, settle)

    def finish(self, record: LandingRecord, steps: Sequence[Step], settle: Settle) -> LandingRecord:
        """Bring an `applying` landing to its end; also what a start after a crash does."""
        attention: list[str] = []
        touched: set[bytes] = set()
        for action in ordered(steps):
            step = steps[action.index]
            self._checkpoint(f"{action.verb} {action.index}")
            if self._act(action, step):
                touched.add(step.path.rpartition(b"/")[0])
            else:
                attention.append("/" + os.fsdecode(step.path))
        self._remove_temporaries(steps)
        self._checkpoint("sync")
        for directory in touched:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.fsync(self._tree.directory(directory))
        state = "needs_attention" if attention else "done"
        ended = msgspec.structs.replace(
            record, state=state, attention=tuple(shown(path) for path in attention)
        )
        self._checkpoint("settle")
        settle(ended, [s for s in steps if "/" + os.fsdecode(s.path) not in attention])
        self._checkpoint(state)
        self._folder.write_record(ended)
        return ended

    # ------------------------------------------------------------ one action

    def _act(self, action: Action, step: Step) -> bool:
        """Do one action unless it is done already; False = a third state, left as it is."""
        current = self._tree.version(step.path)
        if current == step.after:
            return True
        between = current is None and _becomes_or_was_dir(step)
        if current is None and action.verb in ("remove", "rmdir"):
            return True
        if current != step.before and not between:
            return False
        try:
            return getattr(self, f"_{action.verb}")(step, action.index)
        except (FileExistsError, IsADirectoryError, NotADirectoryError, FileNotFoundError):
            return False  # someone builds here at the same time; theirs stays

    def _remove(self, step: Step, _: int) -> bool:
        fd, name = self._tree.parent(step.path)
        os.unlink(name, dir_fd=fd)
        return True

    def _rmdir(self, step: Step, _: int) -> bool:
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

    def _mkdir(self, step: Step, _: int) -> bool:
        fd, name = self._tree.parent(step.path)
        os.mkdir(name, 0o777, dir_fd=fd)
        return True

    def _chmod(self, step: Step, _: int) -> bool:
        fd = self._tree.open(step.path)
        try:
            os.fchmod(fd, step.after.mode if step.after is not None else 0)
        finally:
            os.close(fd)
        return True

    def _place(self, step: Step, index: int) -> bool:
        holder, temporary = self._temporary(step.path, index)
        if self._tree.lstat(holder + temporary) is None:
            self._write_temporary(step, index)  # someone cleaned up; the bytes are in the folder
        source = self._tree.directory(holder.rstrip(b"/"))
        # The second handle must not close the first: duplicate it.
        source = os.dup(source)
        try:
            fd, name = self._tree.parent(step.path)
            os.rename(temporary, name, src_dir_fd=source, dst_dir_fd=fd)
        finally:
            os.close(source)
        return True

    def _refuse_forbidden(self, steps: Sequence[Step]) -> None:
        """Raise PermissionError for what this process may not do and staging would not find out."""
        for action in ordered(steps):
            path = steps[action.index].path
            found = self._tree.lstat(path)
            if action.verb == "chmod":
                forbidden = found is not None and os.geteuid() not in (0, found.st_uid)
            elif action.verb in ("remove", "rmdir") and found is not None:
                holder, _ = self._tree.parent(path)
                forbidden = not os.access(".", os.W_OK | os.X_OK, dir_fd=holder, effective_ids=True)
            else:
                continue
            if forbidden:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fsdecode(path))

    # ------------------------------------------------------------ temporary files

    def _stage(self, steps: Sequence[Step]) -> None:
        for action in ordered(steps):
            if action.verb == "place":
                self._checkpoint(f"stage {action.index}")
                self._write_temporary(steps[action.index], action.index)

    def _temporary(self, path: bytes, index: int) -> tuple[bytes, bytes]:
        return temporary_of(self._tree, self._folder, path, index)

    def _write_temporary(self, step: Step, index: int) -> None:
        after = step.after
        assert after is not None  # only placed steps are staged
        holder, name = self._temporary(step.path, index)
        directory = self._tree.directory(holder.rstrip(b"/"))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)
        if after.kind == "symlink":
            os.symlink(after.target or b"", name, dir_fd=directory)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o600, dir_fd=directory)
        try:
            side = self._folder.side(after)
            assert side is not None and side.content is not None  # a file has bytes
            side.content.write_to(fd)
            existing = step.before is not None and step.before.kind == "file"
            inherit(fd, self._tree, step.path if existing else None)
            os.fchmod(fd, after.mode & 0o777)  # setuid, setgid and sticky never land
            os.fsync(fd)
        finally:
            os.close(fd)

    def _remove_temporaries(self, steps: Sequence[Step]) -> None:
        remove_temporaries(self._tree, self._folder, steps)


def temporary_of(tree: Beneath, folder: LandingFolder, path: bytes, index: int) -> tuple[bytes, bytes]:
    """Return where a step's temporary file is: its directory (with a final slash) and name.

    Beside the target; in the nearest directory above when the target's own is still to be made.
    """
    above = path.rpartition(b"/")[0]
    while above:
        found = tree.lstat(above)
        if found is not None and stat.S_ISDIR(found.st_mode):
            break
        above = above.rpartition(b"/")[0]
    holder = above + b"/" if above else b""
    return holder, b".bowerbird-%s-%d.tmp" % (folder.path.name.encode(), index)


def remove_temporaries(tree: Beneath, folder: LandingFolder, steps: Sequence[Step]) -> None:
    """Remove what staging left, wherever the directories stood when it was written."""
    for action in ordered(steps):
        if action.verb != "place":
            continue
        name = b".bowerbird-%s-%d.tmp" % (folder.path.name.encode(), action.index)
        above = steps[action.index].path
        while above:
            above = above.rpartition(b"/")[0]
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(name, dir_fd=tree.directory(above))


def discard(tree: Beneath, folder: LandingFolder, steps: Sequence[Step]) -> None:
    """Take back a landing that never came to `applying`."""
    with contextlib.suppress(OSError):
        # A read-only file system holds no temporary file of ours.
        remove_temporaries(tree, folder, steps)
    folder.remove()


def recover(tree: Beneath, folder: LandingFolder, settle: Settle) -> LandingRecord | None:
    """Finish or discard a landing whose process died; the caller holds `workspace_lock`.

    Returns:
        The record as it is now, None when the landing was discarded.

    Raises:
        WorkspaceError: the record cannot be read; nothing was touched.
    """
    if not (folder.path / "steps.json").exists():
        folder.remove()
        return None
    steps = folder.steps()
    if not folder.started:
        discard(tree, folder, steps)
        return None
    record = folder.record()
    if record.state == "prepared":
        discard(tree, folder, steps)
        return None
    if record.state == "applying":
        return Applier(tree, folder).finish(record, steps, settle)
    return record


def file_refusal(error: OSError) -> WorkspaceError:
    """Return what an error of the file system means for a person."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    what = os.strerror(error.errno or 0)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LimitExceeded(f"the disk is full, nothing landed: {what}", name)
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return ReadOnly(f"the workspace cannot be written, nothing landed: {what} ({name})", name)
    return WorkspaceError(f"nothing landed: {what} ({name})", name)
