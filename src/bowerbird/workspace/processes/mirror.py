"""A real copy of a branch, for processes where the kernel cannot mount one (copy tier, SB-12).

Here: making the copy, bringing the branch's changes into it, taking the processes' changes back, found by
comparison with what was last seen. Not here: processes, when each of it happens (`process_view`).

The copy never shares files with the workspace or a layer by hard link: a process writes into it. Processes
may run while it is read or written, and swap links and directories in; so everything goes by handles and
through no link, and what is put in is made outside their reach and switched in by one rename.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.errors import LimitExceeded, NotDirectory, NotFound, SpecialFile, WorkspaceError
from bowerbird.core.forms import unpack
from bowerbird.core.processes.creation_mask import new_mode
from bowerbird.workspace.processes.adopt_directory import adopt
from bowerbird.workspace.processes.copy_row import (
    UNKNOWN,
    Row,
    Sign,
    branch_sign_of,
    digest_at,
    is_unchanged,
    sign_of,
)
from bowerbird.workspace.tree import handles, owned, presence
from bowerbird.workspace.tree.merged_view import open_regular
from bowerbird.workspace.tree.nodes import Entry, entry_of, kind_of
from bowerbird.workspace.tree.open_layer import discard
from bowerbird.workspace.tree.stack import Stack

_BELOW = "below"


class Mirror:
    """The copy of one branch below `directory`; its branch's writer lock is held for every call.

    Args:
        directory: `…/branches/<id>/copy`.
        below: of the workspace in its repository; a new copy stands as deep, for git counts on it.
    """

    def __init__(self, directory: Path, below: str = "") -> None:
        if below and not presence.exists(directory):
            directory.mkdir(mode=0o700)
            replace_file(directory / _BELOW, os.fsencode(below))
        self.tree = tree_of(directory)
        self._staging = directory / "staging"
        self._manifest = directory / "manifest"
        self._unsure = directory / "unsure"
        self._rows: dict[str, Row] = {}
        self._closed: dict[str, Sign] = {}  # files that this user may not read
        self._read: tuple[int, int] | None = None  # the manifest that `_rows` is from
        self._written, self._deleted, self._special = set[str](), set[str](), set[str]()
        self._catch_up()

    @property
    def exists(self) -> bool:
        """Whether the copy was made."""
        return presence.exists(self._manifest)

    def _catch_up(self) -> None:
        """Read what another process noted of the copy since this one last did."""
        sign = self._sign_of_manifest()
        if sign != self._read:
            stored: dict[bytes, Row] = {}
            if sign is not None:
                stored = unpack(self._manifest.read_bytes(), dict[bytes, Row])
            self._rows = {os.fsdecode(path): row for path, row in stored.items()}
            self._read = sign

    def _sign_of_manifest(self) -> tuple[int, int] | None:
        seen = presence.status_of(self._manifest)
        return None if seen is None else (seen.st_ino, seen.st_mtime_ns)

    def check(self, stack: Stack, most_files: int, most_bytes: int) -> None:
        """Refuse a branch that is too large to copy; LimitExceeded names both counts and both settings."""
        entries = stack.view.subtree("/", readable=True).values()
        files, size = len(entries), sum(e.size for e in entries if e.kind == "file")
        if files > most_files or size > most_bytes:
            raise LimitExceeded(
                f"the branch has {files} entries and {size} bytes; the copy tier takes at most "
                f"{most_files} (sandbox.copy.max_files) and {most_bytes} (sandbox.copy.max_bytes)"
            )

    # ------------------------------------------------------------ branch → copy

    def bring_in(self, stack: Stack, *, beside: bool = False) -> None:
        """Make the copy equal to the branch where the branch changed since they last agreed.

        Args:
            beside: processes work on it. What they changed since it was last looked at stays theirs:
                `take_back` says it next time.
        """
        self.tree.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._catch_up()
        unsure = self._read_unsure()
        entries = stack.view.subtree("/", readable=True)
        wanted = {p: e for p, e in entries.items() if e.kind != "special"}
        gone = sorted((self._rows.keys() | unsure) - wanted.keys(), key=os.fsencode, reverse=True)
        changed = [path for path, entry in wanted.items() if self._differs(path, entry)]
        if not beside:
            for row in self._rows.values():
                row.late = False
        if not gone and not changed and self.exists:
            return
        self._note_unsure([*gone, *changed])
        with self._root() as root:
            for path in gone:
                self._remove(root, path, beside=beside)
            for path in changed:
                self._put(stack, root, path, wanted[path], beside=beside)
                if beside and wanted[path].layer is None and (row := self._rows.get(path)) is not None:
                    row.late = True
        self._save()
        self._unsure.unlink(missing_ok=True)

    def _differs(self, path: str, entry: Entry) -> bool:
        row, sign = self._rows.get(path), branch_sign_of(entry)
        return self._closed.get(path) != sign if row is None else row.branch != sign

    def _put(self, stack: Stack, root: int, path: str, entry: Entry, *, beside: bool) -> None:
        """Put one entry in; the row says what the copy then has, `UNKNOWN` where a process was faster."""
        sign = branch_sign_of(entry)
        try:
            with _parent(root, path) as (above, name):
                if beside and not self._is_as_seen(path, above, name):
                    return
                if beside and self._holds(stack, path, above, name, entry):
                    self._rows[path].branch = sign
                    return
                is_dir = entry.kind == "dir"
                made = Row(_make_directory(above, name, entry.mode), sign) if is_dir else None
                self._rows[path] = made or self._switch(stack, above, name, path, entry, beside=beside)
        except (NotFound, SpecialFile):  # the user took it away meanwhile
            self._remove(root, path)
        except PermissionError:  # only its owner reads it: it is left out, as a directory of that kind
            self._remove(root, path)
            self._closed[path] = sign
        except OSError as error:
            if error.errno not in handles.SWAPPED:
                raise
            self._rows[path] = Row(UNKNOWN, sign)  # a process swapped something; `take_back` will say so

    def _is_as_seen(self, path: str, above: int, name: str) -> bool:
        """Whether no process changed an entry of the copy since it was last looked at, or made one."""
        row = self._rows.get(path)
        try:
            status = os.stat(name, dir_fd=above, follow_symlinks=False)
        except FileNotFoundError:
            return row is None
        return row is not None and is_unchanged(row, above, name, status)

    def _holds(self, stack: Stack, path: str, above: int, name: str, entry: Entry) -> bool:
        """Whether the copy has the branch's bytes already: freezing them made another entry of them."""
        row = self._rows.get(path)
        if row is None or entry.kind != "file" or row.copy[:3] != ("file", entry.size, entry.mtime_ns):
            return False
        fd = owned.open_file(above, name)
        try:
            return _same_file(stack, path, entry, fd, row.copy[-1])
        finally:
            os.close(fd)

    def _switch(self, stack: Stack, above: int, name: str, path: str, entry: Entry, *, beside: bool) -> Row:
        self._staging.mkdir(mode=0o700, exist_ok=True)
        staged = self._staging / str(os.getpid())
        discard(staged)
        if entry.kind == "symlink":
            staged.symlink_to(entry.target or "")
            self._replace(staged, above, name, path, beside=beside)
            return Row(sign_of(os.stat(name, dir_fd=above, follow_symlinks=False)), branch_sign_of(entry))
        source = open_regular(stack.view, path, entry)
        try:
            shown = entry_of(os.fstat(source), None, entry.layer)
            target = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                handles.copy_bytes(source, target)
                os.fchmod(target, entry.mode)
                os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
                before = os.fstat(target)
                self._replace(staged, above, name, path, beside=beside)
                seen = os.fstat(target)
                digest = owned.digest(source) if owned.is_fresh(seen.st_mtime_ns) else b""
                after = entry_of(os.fstat(source), None, entry.layer)  # its user may have saved meanwhile
                sign = branch_sign_of(shown) if branch_sign_of(after) == branch_sign_of(shown) else UNKNOWN
            finally:
                os.close(target)
        finally:
            os.close(source)
        untouched = (seen.st_mtime_ns, seen.st_size) == (before.st_mtime_ns, before.st_size)
        return Row(sign_of(seen) if untouched else UNKNOWN, sign, digest)

    def _replace(self, staged: Path, above: int, name: str, path: str, *, beside: bool) -> None:
        """Switch an entry in; FileExistsError where a process changed what was there: that stays."""
        row, to = self._rows.get(path), os.fsencode(name)
        if not beside:
            try:
                os.rename(staged, name, dst_dir_fd=above)
            except IsADirectoryError:
                owned.remove_tree(above, name)
                os.rename(staged, name, dst_dir_fd=above)
            return
        work = os.open(staged.parent, handles.DIRECTORY)
        try:
            if row is not None and row.copy[0] == "dir":
                os.rmdir(name, dir_fd=above)
            if row is None or row.copy[0] == "dir":
                handles.rename_new(work, os.fsencode(staged.name), above, to)
                return
            handles.exchange(work, os.fsencode(staged.name), above, to)
            seen = sign_of(staged.lstat())
            if (*seen[:3], *seen[4:]) != (*row.copy[:3], *row.copy[4:]):  # renaming has changed the ctime
                handles.exchange(work, os.fsencode(staged.name), above, to)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            discard(staged)
        except OSError as error:
            if error.errno not in handles.UNSUPPORTED:
                raise
            os.rename(staged, name, dst_dir_fd=above)  # the next best, after a look a moment ago
        finally:
            os.close(work)

    def _remove(self, root: int, path: str, *, beside: bool = False) -> None:
        try:
            with _parent(root, path) as (above, name):
                if beside and not self._is_as_seen(path, above, name):
                    return
                if beside and self._rows[path].copy[0] == "dir":
                    os.rmdir(name, dir_fd=above)  # with what a process made in it, it stays
                else:
                    owned.remove_tree(above, name)
            self._rows.pop(path, None)
        except OSError as error:
            if error.errno not in handles.SWAPPED:
                raise

    # ------------------------------------------------------------ copy → branch

    def collect(self) -> tuple[set[str], set[str], set[str]]:
        """Return written, deleted and special paths of all `take_back`s since the last call."""
        found = (self._written, self._deleted, self._special)
        self._written, self._deleted, self._special = set[str](), set[str](), set[str]()
        return found

    def kind_and_size(self, path: str) -> tuple[str, int]:
        """Return what the copy had at `path` when it was last looked at."""
        row = self._rows.get(path)
        return (row.copy[0], row.copy[1]) if row is not None else ("", 0)

    def take_back(self, stack: Stack) -> None:
        """Put what processes changed in the copy into the branch; `collect` says what it was."""
        with stack.seen_by(self._has_shown), stack.changing():
            self._take_back(stack)

    def _has_shown(self, path: str, entry: Entry) -> bool | None:
        """Whether the copy held an entry of the workspace as it is; what it did not hold, no process saw."""
        row = self._rows.get(path)
        return None if row is None else not row.late and row.branch == branch_sign_of(entry)

    def _take_back(self, stack: Stack) -> None:
        written: set[str] = set()
        deleted: set[str] = set()
        seen: set[str] = set()
        special: set[str] = set()
        adopted: set[str] = set()  # directories of which nothing is looked at any more
        renewed = False
        self._catch_up()
        unsure = self._read_unsure()
        with self._root() as root:
            for path, above, name, status in owned.every(root):
                seen.add(path)
                if path[: -len(name) - 1] in adopted:
                    if stat.S_ISDIR(status.st_mode):
                        adopted.add(path)
                    continue
                row = self._rows.get(path)
                if path in unsure or (row is not None and is_unchanged(row, above, name, status)):
                    continue
                if not stack.ground.shows(path):
                    continue  # what `hide` names exists for no branch
                renewed = True
                # A special file's row is found missing below: something took its place. What the user
                # closed is not in the copy: what stands there now cannot replace it, nor what lies in that.
                if kind_of(status.st_mode) == "special" or (row is None and _is_closed(stack, path)):
                    special.add(path)
                    if stat.S_ISDIR(status.st_mode):
                        adopted.add(path)
                    continue
                try:
                    written |= self._taken(stack, path, above, name, status, adopted)
                except NotDirectory as error:  # a file of its user's by now: the landing names both
                    stack.put_dir(str(error.path), new_mode(0o777))
                    written |= {str(error.path)} | self._taken(stack, path, above, name, status, adopted)
                except OSError as error:
                    if error.errno not in handles.ABSENT:
                        raise  # else it is another thing by now, or gone: the next look tells
        gone = (self._rows.keys() - seen) | (self._rows.keys() & special)
        for path in sorted(gone - unsure, key=os.fsencode):
            if stack.lookup(path) is not None:
                stack.remove(path)
            deleted.add(path)
        for path in gone - unsure:
            del self._rows[path]
        self._written = (self._written | written) - deleted
        self._deleted = (self._deleted | deleted) - written
        self._special = (self._special | special) - written
        if renewed or deleted:
            self._save()

    def _taken(
        self, stack: Stack, path: str, above: int, name: str, status: os.stat_result, adopted: set[str]
    ) -> set[str]:
        """Take one entry of the copy; return what it changed in the branch."""
        if path not in self._rows and stat.S_ISDIR(status.st_mode) and stack.lookup(path) is None:
            taken = self._adopt(stack, path, above, name)
            adopted.add(path)
            return taken
        digest = digest_at(above, name, status)
        written = {path} if self._take(stack, path, above, name, status) else set[str]()
        entry = stack.lookup(path)
        if entry is not None:
            self._rows[path] = Row(sign_of(status), branch_sign_of(entry), digest)
        return written

    def _adopt(self, stack: Stack, path: str, above: int, name: str) -> set[str]:
        """Take a directory that the branch does not have, with all that is in it; return the paths."""
        taken = adopt(stack, path, above, name)
        self._special.update(taken.special)
        for inner, entry in taken.entries.items():
            status = taken.statuses.get(inner)
            if status is not None:
                digest = taken.digests.get(inner, b"")
                self._rows[inner] = Row(sign_of(status), branch_sign_of(entry), digest)
        return set(taken.entries)

    def _take(self, stack: Stack, path: str, above: int, name: str, status: os.stat_result) -> bool:
        """Put one entry of the copy into the branch; False when it says the same."""
        old, mode = stack.lookup(path), stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            if old is not None and old.kind == "dir" and old.mode == mode:
                return False
            stack.put_dir(path, mode)
            return True
        if stat.S_ISLNK(status.st_mode):
            target = handles.read_link(above, name)
            if old is not None and old.kind == "symlink" and old.target == target:
                return False
            stack.put_symlink(path, target)
            return True
        fd = owned.open_file(above, name)
        try:
            mode = stat.S_IMODE(os.fstat(fd).st_mode) & 0o777  # readable for its owner by now
            if _same_file(stack, path, old, fd, mode):
                return False
            stack.put_file(path, fd, mode, mtime_ns=status.st_mtime_ns)
        finally:
            os.close(fd)
        return True

    # ------------------------------------------------------------ bookkeeping

    @contextmanager
    def _root(self) -> Generator[int]:
        fd = os.open(self.tree, handles.DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    def _note_unsure(self, paths: list[str]) -> None:
        """Note what is about to be put in: after a kill the copy's state there is ours, no process's."""
        replace_file(self._unsure, msgspec.msgpack.encode([os.fsencode(path) for path in paths]))

    def _read_unsure(self) -> set[str]:
        """Return what a killed server was putting in; what the branch says there counts."""
        try:
            paths = unpack(self._unsure.read_bytes(), list[bytes])
        except FileNotFoundError:
            return set()
        found = {os.fsdecode(path) for path in paths}
        for path in found:
            row = self._rows.get(path)
            if row is not None:
                row.branch = UNKNOWN  # `bring_in` puts it in again
        return found

    def _save(self) -> None:
        rows = {os.fsencode(path): row for path, row in self._rows.items()}
        replace_file(self._manifest, msgspec.msgpack.encode(rows))
        self._read = self._sign_of_manifest()

    def forget(self) -> None:
        """Delete the copy."""
        self._manifest.unlink(missing_ok=True)
        discard(self.tree)
        self._rows, self._read = {}, None


def tree_of(directory: Path) -> Path:
    """Return where the copy of a branch stands, made or not."""
    try:
        return directory / "tree" / os.fsdecode((directory / _BELOW).read_bytes())
    except FileNotFoundError:
        return directory / "tree"


@contextmanager
def _parent(root: int, path: str) -> Generator[tuple[int, str]]:
    above, _, name = path.rpartition("/")
    fd = owned.open_beneath(root, above)
    try:
        yield fd, name
    finally:
        os.close(fd)


def _is_closed(stack: Stack, path: str) -> bool:
    """Whether the workspace has something at `path` that this user may not look into."""
    entry = stack.lookup(path)
    if entry is None or entry.layer is not None or entry.kind not in ("dir", "file"):
        return False
    try:
        os.close(stack.ground.open(path, handles.DIRECTORY if entry.kind == "dir" else handles.FILE))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _make_directory(above: int, name: str, mode: int) -> Sign:
    try:
        fd = owned.open_directory(above, name)
    except OSError as error:
        if not presence.is_absence(error):
            raise  # a directory that cannot be opened now is not to be removed
        fd = owned.replaced_by_directory(above, name)
    try:
        os.fchmod(fd, mode)
        return sign_of(os.fstat(fd))
    finally:
        os.close(fd)


def _same_file(stack: Stack, path: str, old: Entry | None, fd: int, mode: int) -> bool:
    if old is None or (old.kind, old.size, old.mode) != ("file", os.fstat(fd).st_size, mode):
        return False
    try:
        theirs = open_regular(stack.view, path, old)
    except WorkspaceError:
        return False
    try:
        return handles.equal_bytes(fd, theirs)
    finally:
        os.close(theirs)
