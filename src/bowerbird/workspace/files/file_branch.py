"""The file tools of a branch, as coroutines (WS-2, WS-17 … WS-25).

Here: threads, call order, cancelling a search, reading. Not here: what writing does
(`file_ops.py`), listing and searching themselves, forks and landings (`branch.py`).

A call takes its place in the order of its paths before its first await, then works in a
thread, so the event loop is never kept. A call that is cancelled before its thread began
does nothing; one that has begun is completed, whole.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.ids import new_id
from bowerbird.core.threads import waking
from bowerbird.workspace.files import file_reads
from bowerbird.workspace.files.file_ops import FileOps, os_errors
from bowerbird.workspace.find.spills import is_about_spills, search_spills
from bowerbird.workspace.history.branch_journal import JournalRecords
from bowerbird.workspace.registry.lock import WriterLock
from bowerbird.workspace.registry.path_order import Ticket
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.paths import PathInput, lexical
from bowerbird.workspace.tree.stack import Stack

if TYPE_CHECKING:
    from bowerbird.workspace.find.browsing import OpenFile

_T = TypeVar("_T")


class BranchFiles:
    """File tools on one branch.

    Args:
        state: the branch, shared by all handles on it.
        turn, call: what changes are recorded under; with a call, the previous entry of
            each path it touches is saved in `steps/<call>/` first.
    """

    def __init__(self, state: BranchState, *, turn: str | None = None, call: str | None = None) -> None:
        self._state = state
        self._turn = turn
        self._call = call
        self._ops = FileOps(state, turn, call)

    @property
    def id(self) -> str:
        """The branch's id, `b_…`."""
        return self._state.id

    @property
    def root(self) -> Path | None:
        """The workspace directory, None for a branch of nothing."""
        return self._state.workspace

    @property
    def lock(self) -> WriterLock:
        """Who writes the branch; a pin on it keeps other processes from that for longer."""
        return self._state.lock

    @property
    def hide(self) -> tuple[str, ...]:
        """Globs of workspace paths that do not exist for this branch."""
        return self._state.manifest.value.hide

    @property
    def ground(self) -> Ground:
        """The workspace as this branch shows it; it tells what `hide` takes out."""
        return self._state.ground

    @property
    def rollbacks(self) -> int:
        """How often this branch was taken back to a mark since it was opened here."""
        return self._state.rollbacks

    @property
    def stamp(self) -> tuple[int, ...]:
        """A value that is another one after each change of the branch; it costs two stats.

        What a command is still writing counts when the command has ended.
        """
        state = self._state
        seen = [state.rollbacks, state.stack.direct_writes]
        for path in (state.directory / "journal.jsonl", state.manifest.path):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            seen += [found.st_mtime_ns, found.st_size]
        return tuple(seen)

    def call_mark(self) -> str:
        """Return the mark that `rollback` takes to undo what this handle's call changed."""
        if self._call is None:
            raise InvalidArgument("this handle is bound to no call; use branch.bound(turn, call)")
        return f"step:{self._call}"

    def settle(self, call: str | None = None) -> None:
        """Drop the saved entries of a call whose outcome is committed; None = of this handle's."""
        given = call if call is not None else self.call_mark().partition(":")[2]
        with self._state.writing():
            self._state.steps.settle(given)

    # ------------------------------------------------------------ reading

    async def ls(self, path: PathInput = "/", offset: int = 1, limit: int = 1000) -> dict[str, Any]:
        """List a directory, links themselves.

        Args:
            offset: 1-based number of the first entry. limit: most entries, 0 = 10,000.

        Raises:
            NotFound, NotDirectory, PathEscape, InvalidArgument: see WS-13 and WS-26.
        """
        return await self._look(lambda stack: file_reads.list_directory(stack, path, offset, limit), path)

    async def stat(self, path: PathInput, *, follow: bool = True) -> dict[str, Any] | None:
        """Return `path, type, size, mode, mtime_ns` of an entry, None when nothing is there.

        Args:
            follow: tell of a link's target, not of the link itself.
        """
        return await self._look(lambda stack: file_reads.facts(stack, path, follow), path)

    async def read_file(
        self, path: PathInput, offset: int = 1, limit: int = 0, *, encoding: str | None = None
    ) -> dict[str, Any]:
        """Read lines of a text file.

        Args:
            offset: 1-based number of the first line. limit: most lines, 0 = all that fits 256 KiB.
            encoding: of the file, None = found out.

        Raises:
            NotFound, IsDirectory, SpecialFile, PathEscape, TooManyLinks, InvalidArgument.

        Example:
            (await branch.read_file("src/a.py", offset=10, limit=5))["content"]
        """
        return await self._look(
            lambda stack: file_reads.read_text(stack, path, offset, limit, encoding), path
        )

    async def read_bytes(self, path: PathInput, offset: int = 0, length: int | None = None) -> bytes:
        """Return bytes of a file of any kind of content.

        Args:
            offset: 0-based first byte. length: most bytes, None = to the end.

        Raises:
            LimitExceeded: more than 64 MiB would be returned; read in parts. Else as `read_file`.
        """
        return await self._look(lambda stack: file_reads.read_bytes(stack, path, offset, length), path)

    async def list_files(
        self, pattern: str = "**/*", offset: int = 1, limit: int = 0, *, include_ignored: bool = False
    ) -> dict[str, Any]:
        """List files that fit a glob, past what is ignored.

        Args:
            offset: 1-based. limit: most files, 0 = 10,000; `total` is exact.
            include_ignored: also what `.gitignore` and the like leave out.

        Raises:
            InvalidPattern, InvalidArgument.
        """

        def work() -> dict[str, Any]:
            from bowerbird.workspace.find.listing import list_files

            view = self._state.reading().view
            return list_files(view, pattern, offset=offset, limit=limit, include_ignored=include_ignored)

        return await self._run(lambda: self._state.stack.steadily(work), self._enter(["/"], tree=True))

    async def search_files(
        self,
        pattern: str,
        glob: str = "**/*",
        offset: int = 1,
        limit: int = 100,
        *,
        fixed: bool = False,
        case_sensitive: bool = True,
        context: int = 0,
        include_ignored: bool = False,
    ) -> dict[str, Any]:
        """Search the lines of text files for a regular expression.

        Args:
            offset: 1-based number of the first match. limit: most matches, 0 = 1,000.
            fixed: `pattern` is plain text. context: lines before and after, at most 20.

        Raises:
            InvalidPattern: the pattern or glob cannot be used; the construct is named.
            SearchTimeout: 10 s passed; `partial` is the record of what was found.
        """
        from bowerbird.workspace.find.search import Search, wanted_of

        wanted = wanted_of(
            pattern,
            glob,
            offset=offset,
            limit=limit,
            fixed=fixed,
            case_sensitive=case_sensitive,
            context=context,
            include_ignored=include_ignored,
        )
        running: list[Search] = []

        def work() -> dict[str, Any]:
            if is_about_spills(wanted.glob):
                return search_spills(self._state.directory, wanted, self._state.memory)
            search = Search(self._state.reading().view, wanted, self._state.memory)
            running.append(search)
            return search.run()

        try:
            return await self._run(lambda: self._state.stack.steadily(work), self._enter(["/"], tree=True))
        except asyncio.CancelledError:
            for search in running:
                search.cancel()
            raise

    def open_base(self, path: PathInput) -> "OpenFile":
        """Open a file as it was before this branch changed it; raises NotFound. The caller closes it."""
        from bowerbird.workspace.files.earlier import open_base

        named = lexical(path, self._state.workspace)
        return self._state.stack.steadily(lambda: open_base(self._state, named))

    def journal(self) -> JournalRecords:
        """Return copies of what was done on this branch, in order."""
        return self._state.journal.records()

    def read_overlay(self, path: PathInput) -> bytes | None:
        """Return the bytes of a file that a layer holds, None when it reads through or is no file.

        Raises:
            LimitExceeded: over 64 MiB; use `read_bytes` with a length.
        """
        with os_errors(lexical(path, self._state.workspace)):
            look = self._state.stack.steadily
            return look(lambda: file_reads.read_overlay(self._state.reading(), path))

    # ------------------------------------------------------------ writing

    async def write_file(
        self,
        path: PathInput,
        content: str | bytes,
        *,
        encoding: str = "utf-8",
        if_hash: str | None = None,
        seen: str | None = None,
        as_before: bool = False,
    ) -> dict[str, Any]:
        """Write a whole file, making its parents and keeping an existing mode.

        Args:
            content: written exactly. encoding: of text.
            if_hash: write only if the present content has this `hash`.
            seen: the `hash` of what the caller last read there, "" where it read nothing; where something
                else is there by now, the change becomes a conflict.
            as_before: text takes the encoding, byte order mark and line ends of the file that it replaces.

        Raises:
            IsDirectory, NotDirectory, SpecialFile, Stale, Hidden, ReadOnly, LimitExceeded,
            PathEscape, BranchBusy.
        """
        return await self._change(
            [path], lambda: self._ops.write(path, content, encoding, if_hash, seen, as_before)
        )

    async def edit_file(
        self,
        path: PathInput,
        old: str,
        new: str,
        replace_all: bool = False,
        *,
        encoding: str | None = None,
        if_hash: str | None = None,
    ) -> dict[str, Any]:
        """Replace text in a file and nothing else in it.

        Args:
            old: must occur once, unless `replace_all`; `\\n` in it fits `\\r\\n`.
            new: takes the line ending of its place.

        Raises:
            NotFound, NoMatch, NotUnique, BinaryFile, Stale, InvalidArgument, LimitExceeded and
            as `write_file`.
        """

        def work() -> dict[str, Any]:
            return self._ops.edit(path, old, new, replace_all=replace_all, encoding=encoding, if_hash=if_hash)

        return await self._change([path], work)

    async def delete(
        self, path: PathInput, recursive: bool = False, *, if_hash: str | None = None
    ) -> dict[str, Any]:
        """Delete a file, link or directory; `if_hash` as in `write_file`.

        Raises:
            Stale, NotFound, NotEmpty, Hidden, ReadOnly, PathEscape, InvalidArgument, BranchBusy.
        """
        return await self._change([path], lambda: self._ops.delete(path, recursive, if_hash))

    async def move(
        self, src: PathInput, dst: PathInput, overwrite: bool = False, *, if_hash: str | None = None
    ) -> dict[str, Any]:
        """Move a file, link or whole directory; parents of `dst` are made; `if_hash` as in `write_file`.

        Raises:
            NotFound, Exists, IsDirectory, NotDirectory, NotEmpty, InvalidArgument and as `write_file`.
        """
        return await self._change([src, dst], lambda: self._ops.move(src, dst, overwrite, if_hash))

    async def mkdir(self, path: PathInput, parents: bool = True, exist_ok: bool = True) -> dict[str, Any]:
        """Make a directory.

        Raises:
            Exists, NotFound, NotDirectory and as `write_file`.
        """
        return await self._change([path], lambda: self._ops.mkdir(path, parents, exist_ok))

    async def set_executable(self, path: PathInput, on: bool) -> dict[str, Any]:
        """Set or clear a file's execute bits; raises as `edit_file`."""
        return await self._change([path], lambda: self._ops.set_executable(path, on))

    def take(self, files: Sequence[tuple[PathInput, Path]]) -> list[str]:
        """Put host files (source second) at paths of the branch, all or none; blocks. Returns the paths.

        Raises:
            IsDirectory, NotDirectory, Hidden, ReadOnly, PathEscape, LimitExceeded, BranchBusy.
        """
        call = self._call if self._call is not None else new_id("u")
        return FileOps(self._state, self._turn, call).take(files)

    def revert(self, paths: Sequence[PathInput]) -> list[str]:
        """Take the changes at or below `paths` back to what the branch started from; blocks.

        Raises:
            NotFound: nothing is changed at one of them; nothing was done. BranchBusy.
        """
        from bowerbird.workspace.files.revert import revert

        return revert(self._state, [lexical(path, self._state.workspace) for path in paths])

    def write_private(self, path: PathInput, content: str | bytes) -> None:
        """Put a file that every tool reads but no change, merge or landing shows."""
        with os_errors(lexical(path, self._state.workspace)):
            self._ops.write_private(path, content)

    def sync_private(
        self, directory: str, files: Mapping[str, bytes | None], *, complete: bool = True
    ) -> None:
        """Make a private directory hold these files; see `private_files.sync_private`. Blocks."""
        from bowerbird.workspace.files.private_files import sync_private

        sync_private(self._state, directory, files, complete=complete)

    # ------------------------------------------------------------ threads and order

    async def _look(self, look: Callable[[Stack], _T], path: PathInput) -> _T:
        def work() -> _T:
            return look(self._state.reading())

        return await self._run(lambda: self._state.stack.steadily(work), self._enter([path]))

    def _enter(self, paths: Sequence[PathInput], *, writes: bool = False, tree: bool = False) -> Ticket:
        keys = [lexical(path, self._state.workspace) for path in paths]
        return self._state.order.enter(keys, writes=writes, tree=tree)

    async def _change(self, paths: Sequence[PathInput], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        return await self._run(work, self._enter(paths, writes=True))

    async def _run(self, work: Callable[[], _T], ticket: Ticket) -> _T:
        """Run `work` in a thread after the calls before it in the order of its paths."""
        order = self._state.order
        dropped = False

        def ordered() -> _T:
            try:
                if dropped:
                    raise asyncio.CancelledError
                with os_errors(ticket.paths[0]):
                    return work()
            finally:
                order.leave(ticket)

        try:
            for earlier in ticket.before:
                await asyncio.shield(asyncio.wrap_future(earlier))
            future = asyncio.get_running_loop().run_in_executor(None, waking(ordered))
        except BaseException:
            order.leave(ticket)
            raise
        try:
            # Shielded: a thread that has begun goes on, and the order must hear of its end.
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            dropped = True
            future.add_done_callback(_heard)
            raise
        finally:
            del future  # its error's traceback holds this frame: together they would keep files open


def _heard(future: "asyncio.Future[Any]") -> None:
    """Take note of an abandoned call's outcome, so that it is not reported as forgotten."""
    _ = future.cancelled() or future.exception()
