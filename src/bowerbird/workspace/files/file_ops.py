"""What the writing file tools do, synchronously (WS-21 … WS-25, WS-28 … WS-30).

Here: checks, limits, saving the step's previous entries, the change, the journal.
Not here: threads and call order (`file_branch.py`), reading, the layers' form.

Every operation either raises and changes nothing, or is whole: what it makes appears by one
rename in the open layer.
"""

import errno
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bowerbird.core.errors import (
    Exists,
    InvalidArgument,
    IsDirectory,
    LimitExceeded,
    NotDirectory,
    NotEmpty,
    NotFound,
    ReadOnly,
    SpecialFile,
    Stale,
    WorkspaceError,
)
from bowerbird.core.ids import new_id
from bowerbird.core.processes.creation_mask import new_mode
from bowerbird.workspace.files.file_reads import MOST_READ, read_all
from bowerbird.workspace.history.branch_journal import Step
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import (
    PathInput,
    Resolved,
    add_path,
    missing,
    resolve,
    shown,
    shown_path,
    sort_paths,
)
from bowerbird.workspace.tree.stack import Stack

PRIVATE_FILE = 0o644


@contextmanager
def os_errors(path: str | None = None) -> Generator[None]:
    """Turn what the operating system refuses into errors a person can act on."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LimitExceeded(
                "the disk with the data directory is full; nothing was changed", path
            ) from error
        # The host's own path would tell a model about places it cannot name.
        name = shown_path(path) if path is not None else "the branch's data directory"
        if error.errno == errno.EROFS:
            raise ReadOnly(f"{name} is on a read-only filesystem", path) from error
        if error.errno in (errno.EACCES, errno.EPERM):
            raise WorkspaceError(f"permission denied: {name}", path) from error
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
            raise Stale(f"{name} was changed by its user just now; look at it again", path) from error
        raise


class FileOps:
    """Changes of one branch by one call.

    Args:
        state: the branch.
        turn, call: recorded in the journal; with a call, previous entries are saved.
    """

    def __init__(self, state: BranchState, turn: str | None = None, call: str | None = None) -> None:
        self._state = state
        self._turn = turn
        self._call = self._step = call

    def write(
        self,
        path: PathInput,
        content: str | bytes,
        encoding: str,
        if_hash: str | None,
        seen: str | None = None,
        as_before: bool = False,
    ) -> dict[str, Any]:
        """`write_file`: see WS-21 and WS-30."""
        from bowerbird.workspace.find.text import encoded, hash_of, in_form_of

        data, note = encoded(content, encoding), ""
        with self._state.writing() as stack:
            target = self._target(stack, path)
            entry = stack.take(target.path)
            present = _hash(stack, target.path, entry) if if_hash is not None or seen is not None else None
            _check_hash(target.path, present, if_hash)
            if as_before and isinstance(content, str) and entry is not None and entry.size <= MOST_READ:
                data, note = in_form_of(read_all(stack, target.path, entry), content)
            self._state.limits.check_write(len(data), target.path)
            if seen is not None and entry is not None and present != seen:
                stack.doubt(target.path)  # who wrote had not read what it replaces
            self._put(stack, target.path, data, entry.mode if entry is not None else new_mode(0o666))
            record = add_path({}, "written", target.path)
            record |= {"bytes": len(data), "created": entry is None, "hash": hash_of(data)}
            return record | {"note": note} if note else record

    def edit(
        self,
        path: PathInput,
        old: str,
        new: str,
        *,
        replace_all: bool,
        encoding: str | None,
        if_hash: str | None,
    ) -> dict[str, Any]:
        """`edit_file`: see WS-22, WS-28 and WS-29."""
        with self._state.writing() as stack:
            from bowerbird.workspace.files.editing import edit
            from bowerbird.workspace.find.text import hash_of

            target = self._target(stack, path, must_exist=True)
            entry = stack.take(target.path)
            if entry is None or entry.kind != "file":
                raise missing(stack.view, target.path)
            self._state.limits.check_edit(entry.size, target.path)
            data = read_all(stack, target.path, entry)
            was = hash_of(data)
            _check_hash(target.path, was, if_hash)
            done = edit(data, old, new, replace_all=replace_all, encoding=encoding, path=target.path)
            self._state.limits.check_write(len(done.data), target.path)
            self._put(stack, target.path, done.data, entry.mode)
            record = add_path({}, "path", target.path)
            return record | {
                "replacements": done.replacements,
                "first_line": done.first_line,
                "was": was,
                "hash": hash_of(done.data),
            }

    def delete(self, path: PathInput, recursive: bool, if_hash: str | None = None) -> dict[str, Any]:
        """`delete`: see WS-23 and WS-30."""
        with self._state.writing() as stack:
            target = self._existing(stack, path)
            inner = stack.subtree(target.path)
            if inner and not recursive:
                raise NotEmpty(
                    f"{shown_path(target.path)} is a directory with {len(stack.children(target.path))} "
                    "entries; set recursive to delete them too",
                    target.path,
                )
            if if_hash is not None:
                _check_hash(target.path, _hash(stack, target.path, stack.take(target.path)), if_hash)
            entries = {**inner, target.path: target.entry}
            self._charge(stack, entries, 0, target.path)
            paths = sort_paths(list(entries))
            steps = [Step("rmdir" if _is_dir(entries[p]) else "delete", p) for p in reversed(paths)]
            with self._recorded(steps):
                self._remove(stack, target.path)
            shown = [add_path({}, "path", p)["path"] for p in paths]
            record: dict[str, Any] = {"deleted": shown, "count": len(paths)}
            odd = {
                row["path"]: row["path_b64"] for p in paths if "path_b64" in (row := add_path({}, "path", p))
            }
            return record | {"path_b64": odd} if odd else record

    def move(
        self, src: PathInput, dst: PathInput, overwrite: bool, if_hash: str | None = None
    ) -> dict[str, Any]:
        """`move`: see WS-24 and WS-30."""
        with self._state.writing() as stack:
            from bowerbird.workspace.files.copy_subtree import stage_tree

            source = self._existing(stack, src)
            target = resolve(stack.view, dst, follow=False)
            # What is there now is what was looked at: what its user makes there later is not replaced.
            target = msgspec.structs.replace(target, entry=stack.take(target.path))
            self._check_move(stack, source, target, overwrite)
            self._state.check_writable(target.path)
            inner = stack.subtree(source.path)
            special = next((p for p, e in inner.items() if e.kind == "special"), None)
            if special is not None:
                raise SpecialFile(f"{shown_path(special)} is not a regular file and cannot be moved", special)
            if if_hash is not None:
                _check_hash(source.path, _hash(stack, source.path, stack.take(source.path)), if_hash)
            moved = {source.path: source.entry, **inner}
            size = sum(e.size for e in moved.values() if e is not None and e.kind == "file")
            arriving = [target.path + p[len(source.path) :] for p in moved]
            self._charge(stack, [*moved, *arriving], size, target.path)
            staged = stage_tree(stack, source.path)
            made = [Step("mkdir", above) for above in _missing_parents(stack, target.path)]
            step = Step("rename", target.path, size=size, src=source.path)
            with self._whole(), self._recorded([*made, step]):
                if _is_dir(target.entry):
                    self._remove(stack, target.path)
                self._save_step(stack, target.path)
                stack.put_tree(target.path, staged, arriving)
                self._remove(stack, source.path)
            return add_path(add_path({}, "from", source.path), "to", target.path)

    def _check_move(self, stack: Stack, source: Resolved, target: Resolved, overwrite: bool) -> None:
        name = shown_path(target.path)
        if target.path == source.path or target.path.startswith(source.path + "/"):
            raise InvalidArgument(f"{shown_path(source.path)} cannot be moved into itself ({name})")
        if target.path == "/" or source.path.startswith(target.path + "/"):
            raise Exists(f"{name} is a directory that holds what is to be moved", target.path)
        if target.entry is None:
            return
        if not overwrite:
            raise Exists(f"{name} exists already; set overwrite to replace it", target.path)
        if _is_dir(target.entry) and not _is_dir(source.entry):
            raise IsDirectory(f"{name} is a directory; name the new file in it", target.path)
        if _is_dir(source.entry) and not _is_dir(target.entry):
            raise NotDirectory(f"{name} is not a directory", target.path)
        if _is_dir(target.entry) and stack.children(target.path):
            raise NotEmpty(f"{name} is a directory with entries; delete it first", target.path)
        if target.entry.kind == "special":
            raise SpecialFile(f"{name} is not a regular file", target.path)

    def mkdir(self, path: PathInput, parents: bool, exist_ok: bool) -> dict[str, Any]:
        """`mkdir`: see WS-25."""
        with self._state.writing() as stack:
            target = resolve(stack.view, path)
            name = shown_path(target.path)
            if target.entry is not None:
                if not _is_dir(target.entry) or not exist_ok:
                    raise Exists(f"{name} exists already", target.path)
                return add_path({"created": False}, "path", target.path)
            self._state.check_writable(target.path)
            above = target.path.rpartition("/")[0] or "/"
            if not parents and stack.lookup(above) is None:
                raise NotFound(f"{shown_path(above)} does not exist; set parents to make it", above)
            self._charge(stack, [target.path], 0, target.path)
            made = self._save_step(stack, target.path)
            with self._recorded([*made, Step("mkdir", target.path)]):
                stack.put_dir(target.path, new_mode(0o777))
            return add_path({"created": True}, "path", target.path)

    def set_executable(self, path: PathInput, on: bool) -> dict[str, Any]:
        """`set_executable`: see WS-25; the owner's, group's and others' bits follow who may read."""
        with self._state.writing() as stack:
            target = self._target(stack, path, must_exist=True)
            entry = stack.take(target.path)
            if entry is None:
                raise missing(stack.view, target.path)
            mode = entry.mode | (entry.mode & 0o444) >> 2 if on else entry.mode & ~0o111
            if mode != entry.mode:
                self._charge(stack, [target.path], entry.size, target.path)
                self._save_step(stack, target.path)
                with self._recorded([Step("chmod", target.path)]):
                    stack.chmod(target.path, mode)
            return add_path({}, "path", target.path) | {"mode": mode}

    def take(self, files: Sequence[tuple[PathInput, Path]]) -> list[str]:
        """Put host files at the given paths, all or none; returns the paths as shown.

        The operations must be bound to a call: what it did is taken back when a file cannot be put.
        """
        assert self._call is not None, "without a call nothing could be taken back"
        try:
            with self._state.writing() as stack:
                targets = [self._target(stack, path) for path, _ in files]
                for target, (_, source) in zip(targets, files, strict=True):
                    self._take(stack, target, source)
                return [shown(target.path) for target in targets]
        except BaseException:
            self._state.rollback_step(self._call, self._turn)
            raise
        finally:
            with self._state.writing():
                self._state.steps.settle(self._call)

    def _take(self, stack: Stack, target: Resolved, source: Path) -> None:
        size = source.stat().st_size
        self._state.limits.check_write(size, target.path)
        self._charge(stack, [target.path], size, target.path)
        existed = stack.lookup(target.path)
        made = self._save_step(stack, target.path)
        mode = existed.mode if existed is not None else new_mode(0o666)
        kind = "modify" if existed is not None else "create"
        with self._recorded([*made, Step("write", target.path, kind, size)]):
            stack.put_file(target.path, str(source), mode, sync=True)

    def write_private(self, path: PathInput, content: str | bytes) -> None:
        """Put a file that every tool reads but no change, diff, merge or landing shows."""
        from bowerbird.workspace.find.text import encoded

        data = encoded(content, "utf-8")
        with self._state.writing() as stack:
            target = self._target(stack, path, own=True)
            made = [f"{p}/" for p in _missing_parents(stack, target.path)]
            manifest = self._state.manifest
            private = list(dict.fromkeys([*manifest.value.private, *made, target.path]))
            # Named first: a kill before the file is there leaves a name without a file.
            manifest.update(private=tuple(private))
            stack.put_file(target.path, data, PRIVATE_FILE)

    # ------------------------------------------------------------ parts

    def _target(
        self, stack: Stack, path: PathInput, *, must_exist: bool = False, own: bool = False
    ) -> Resolved:
        """Resolve a path that is to hold a regular file, and check that it may be written."""
        found = resolve(stack.view, path)
        name = shown_path(found.path)
        self._state.check_writable(found.path, own=own)
        if found.entry is None and must_exist:
            raise missing(stack.view, found.path)
        if found.path == "/" or _is_dir(found.entry):
            raise IsDirectory(f"{name} is a directory", found.path)
        if found.entry is not None and found.entry.kind == "special":
            raise SpecialFile(f"{name} is not a regular file", found.path)
        return found

    def _existing(self, stack: Stack, path: PathInput) -> Resolved:
        """Resolve the entry (a link itself) that is to be taken away."""
        found = resolve(stack.view, path, follow=False)
        if found.path == "/":
            raise InvalidArgument("the root of the workspace cannot be deleted or moved")
        self._state.check_writable(found.path)
        if found.entry is None:
            raise missing(stack.view, found.path)
        if found.entry.kind == "special":
            raise SpecialFile(f"{shown_path(found.path)} is not a regular file", found.path)
        masked = self._state.ground.masked
        if masked is not None and masked.startswith(found.path + "/"):
            raise ReadOnly(f"{shown_path(found.path)} holds Bowerbird's own data", found.path)
        return found

    def _put(self, stack: Stack, path: str, data: bytes, mode: int) -> None:
        self._charge(stack, [path], len(data), path)
        existed = stack.lookup(path) is not None
        made = self._save_step(stack, path)
        with self._recorded([*made, Step("write", path, "modify" if existed else "create", len(data))]):
            stack.put_file(path, data, mode, sync=True)

    def _charge(self, stack: Stack, paths: Iterable[str], size: int, path: str) -> None:
        """Account for `size` new bytes at `path` and for those of `paths` not changed before."""
        own = stack.touched(path)
        replaced = own.entry.size if own is not None and own.entry is not None and own.cut else 0
        added = sum(1 for changed in paths if stack.took(changed))
        self._state.account.charge(added, size - replaced, path)

    def _remove(self, stack: Stack, path: str) -> None:
        keep = self._state.steps.save(self._step, path, tree=True) if self._step is not None else None
        stack.remove(path, keep=keep)

    def _save_step(self, stack: Stack, path: str) -> list[Step]:
        """Save what a rollback needs; returns the journal's lines for parents that will be made."""
        parents = _missing_parents(stack, path)
        if self._step is not None:
            # The rollback of the topmost new directory takes everything in it away.
            self._state.steps.save(self._step, parents[0] if parents else path)
        return [Step("mkdir", above) for above in parents]

    def _recorded(self, steps: list[Step]) -> AbstractContextManager[None]:
        return self._state.recorded(steps, turn=self._turn, call=self._call)

    @contextmanager
    def _whole(self) -> Generator[None]:
        """Take back what several steps did when one of them fails."""
        steps, own = self._state.steps, self._step is None
        self._step = call = self._step or new_id("u")
        before = steps.count(call)
        try:
            yield
        except BaseException:
            steps.rollback(call, keep=before)
            raise
        finally:
            if own:
                self._step = None
                steps.settle(call)


def _hash(stack: Stack, path: str, entry: Entry | None) -> str | None:
    """Return the hash of what `Stack.take` gave; None of what is no file, or too large to be read."""
    from bowerbird.workspace.find.text import hash_of

    if entry is None or entry.kind != "file" or entry.size > MOST_READ:
        return None
    return hash_of(read_all(stack, path, entry))


def _check_hash(path: str, present: str | None, if_hash: str | None) -> None:
    if if_hash is not None and present != if_hash:
        raise Stale(
            f"{shown_path(path)} changed since it was read: its hash is {present}; read it again", path
        )


def _missing_parents(stack: Stack, path: str) -> list[str]:
    """Return the directories above `path` that do not exist yet, outermost first."""
    found: list[str] = []
    above = path.rpartition("/")[0]
    while above and stack.lookup(above) is None:
        found.append(above)
        above = above.rpartition("/")[0]
    return found[::-1]


def _is_dir(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "dir"
