"""A real copy of a branch, for processes where the kernel cannot mount one (copy tier, SB-12).

Here: making the copy, bringing the branch's changes into it, taking the processes' changes back, found by
comparison with what was last seen. Not here: processes, when each of it happens (`process_view`).

The copy never shares files with the workspace or a layer by hard link: a process writes into it.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bowerbird.core.errors import LimitExceeded, WorkspaceError
from bowerbird.workspace import handles
from bowerbird.workspace.nodes import Entry, kind_of
from bowerbird.workspace.open_layer import discard
from bowerbird.workspace.stack import Stack
from bowerbird.workspace.view import open_regular

Sign = tuple[str, int, int, int, int, int]


class Row(msgspec.Struct, array_like=True):
    """One path as it was when branch and copy last agreed.

    Attributes:
        copy: kind, size, mtime_ns, ctime_ns, inode, mode of the copy's entry.
        branch: kind, size, mtime_ns, ctime_ns, layer (-1 = workspace), mode of the branch's entry.
    """

    copy: Sign
    branch: Sign


class Mirror:
    """The copy of one branch below `directory`; its branch's writer lock is held for every call.

    Args:
        directory: `…/branches/<id>/copy`.
    """

    def __init__(self, directory: Path) -> None:
        self.tree = directory / "tree"
        self._manifest = directory / "manifest.json"
        self._rows: dict[str, Row] = {}
        self._written, self._deleted, self._special = set[str](), set[str](), set[str]()
        if self._manifest.exists():
            self._rows = msgspec.json.decode(self._manifest.read_bytes(), type=dict[str, Row])

    @property
    def exists(self) -> bool:
        """Whether the copy was made."""
        return self._manifest.exists()

    def check(self, stack: Stack, most_files: int, most_bytes: int) -> None:
        """Refuse a branch that is too large to copy.

        Raises:
            LimitExceeded: names both counts and both settings.
        """
        entries = stack.view.subtree("/").values()
        files, size = len(entries), sum(e.size for e in entries if e.kind == "file")
        if files > most_files or size > most_bytes:
            raise LimitExceeded(
                f"the branch has {files} entries and {size} bytes; the copy tier takes at most "
                f"{most_files} (sandbox.copy.max_files) and {most_bytes} (sandbox.copy.max_bytes)"
            )

    def bring_in(self, stack: Stack) -> None:
        """Make the copy equal to the branch where the branch changed since they last agreed."""
        self.tree.mkdir(mode=0o700, parents=True, exist_ok=True)
        wanted = {p: e for p, e in stack.view.subtree("/").items() if e.kind != "special"}
        for path in sorted(self._rows.keys() - wanted.keys(), key=os.fsencode, reverse=True):
            discard(self._at(path))
            del self._rows[path]
        for path, entry in wanted.items():
            row = self._rows.get(path)
            sign = _branch_sign(entry)
            if row is None or row.branch != sign:
                self._put(stack, path, entry)
                self._rows[path] = Row(self._copy_sign(path), sign)
        # Putting a file into a directory changed the directory's times.
        for path, entry in wanted.items():
            if entry.kind == "dir":
                self._rows[path].copy = self._copy_sign(path)
        self._save()

    def _put(self, stack: Stack, path: str, entry: Entry) -> None:
        place = self._at(path)
        if entry.kind == "dir":
            if place.is_symlink() or not place.is_dir():
                discard(place)
                place.mkdir(mode=0o700, parents=True)
            place.chmod(entry.mode)
            return
        discard(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind == "symlink":
            place.symlink_to(entry.target or "")
            return
        source = open_regular(stack.view, path, entry)
        try:
            target = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                handles.copy_bytes(source, target)
                os.fchmod(target, entry.mode)
                os.utime(target, ns=(entry.mtime_ns, entry.mtime_ns))
            finally:
                os.close(target)
        finally:
            os.close(source)

    def collect(self) -> tuple[set[str], set[str], set[str]]:
        """Return written, deleted and special paths of all `take_back`s since the last call."""
        found = (self._written, self._deleted, self._special)
        self._written, self._deleted, self._special = set[str](), set[str](), set[str]()
        return found

    def take_back(self, stack: Stack) -> None:
        """Put what processes changed in the copy into the branch; `collect` says what it was."""
        written: list[str] = []
        special: list[str] = []
        seen: set[str] = set()
        for path, status in self._walk():
            seen.add(path)
            sign = _sign(status)
            row = self._rows.get(path)
            if row is not None and row.copy == sign:
                continue
            if sign[0] == "special":
                special.append(path)
                continue
            if self._take(stack, path, status):
                written.append(path)
            entry = stack.lookup(path)
            if entry is not None:
                self._rows[path] = Row(sign, _branch_sign(entry))
        gone = sorted(self._rows.keys() - seen, key=os.fsencode)
        deleted: list[str] = []
        for path in gone:
            del self._rows[path]
            if stack.lookup(path) is not None:
                stack.remove(path)
            deleted.append(path)
        self._special.update(special)
        if written or deleted:
            self._written.update(written)
            self._written.difference_update(deleted)
            self._deleted.update(deleted)
            self._deleted.difference_update(written)
            self._save()

    def _take(self, stack: Stack, path: str, status: os.stat_result) -> bool:
        """Put one entry of the copy into the branch; False when it says the same."""
        old, mode = stack.lookup(path), stat.S_IMODE(status.st_mode)
        kind = kind_of(status.st_mode)
        place = self._at(path)
        row = self._rows.get(path)
        if row is not None and old is not None and old.layer is None and _branch_sign(old) != row.branch:
            # The user saved the file after it was copied: what the process changed is based on the older one.
            stack.save_base(path, uncertain=True)
        if kind == "dir":
            if old is not None and old.kind == "dir" and old.mode == mode:
                return False
            stack.put_dir(path, mode)
            return True
        if kind == "symlink":
            target = str(place.readlink())
            if old is not None and old.kind == "symlink" and old.target == target:
                return False
            stack.put_symlink(path, target)
            return True
        fd = os.open(place, handles.FILE)
        try:
            if old is not None and (old.kind, old.size, old.mode) == ("file", status.st_size, mode):
                try:
                    theirs = open_regular(stack.view, path, old)
                except WorkspaceError:
                    theirs = -1
                if theirs >= 0:
                    try:
                        if handles.equal_bytes(fd, theirs):
                            return False
                    finally:
                        os.close(theirs)
            stack.put_file(path, fd, mode & 0o777, mtime_ns=status.st_mtime_ns)
        finally:
            os.close(fd)
        return True

    def _walk(self) -> Iterator[tuple[str, os.stat_result]]:
        todo = [""]
        while todo:
            above = todo.pop()
            try:
                with os.scandir(f"{self.tree}{above}") as items:
                    for item in items:
                        try:
                            status = item.stat(follow_symlinks=False)
                        except FileNotFoundError:
                            continue  # a process removed it between two looks
                        path = f"{above}/{item.name}"
                        yield path, status
                        if stat.S_ISDIR(status.st_mode):
                            todo.append(path)
            except (FileNotFoundError, PermissionError):
                continue  # removed, or closed by the process to everyone: what is in it stays as it was

    def _at(self, path: str) -> Path:
        return Path(f"{self.tree}{path}")

    def _copy_sign(self, path: str) -> Sign:
        return _sign(self._at(path).lstat())

    def _save(self) -> None:
        temporary = self._manifest.with_name("manifest.json.tmp")
        temporary.write_bytes(msgspec.json.encode(self._rows))
        temporary.rename(self._manifest)

    def forget(self) -> None:
        """Delete the copy."""
        self._manifest.unlink(missing_ok=True)
        shutil.rmtree(self.tree, ignore_errors=True)
        self._rows = {}


def _sign(status: os.stat_result) -> Sign:
    kind = kind_of(status.st_mode)
    mode = stat.S_IMODE(status.st_mode)
    if kind == "dir":
        # Times of a directory change with every entry in it; its entries are looked at anyway.
        return (kind, 0, 0, 0, status.st_ino, mode)
    return (kind, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, mode)


def _branch_sign(entry: Entry) -> Sign:
    layer = -1 if entry.layer is None else entry.layer
    if entry.kind == "dir":
        return ("dir", 0, 0, 0, 0, entry.mode)
    return (entry.kind, entry.size, entry.mtime_ns, entry.ctime_ns, layer, entry.mode)
