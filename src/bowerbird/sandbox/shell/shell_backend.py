"""Files and a few allowed commands on a directory, as one plain object (SB-38 … SB-41).

Here: `WorkspaceShellBackend`, for agents of other frameworks: its calls are synchronous, each has a
coroutine beside it, and what it changes lands at once. Not here: the list of commands (`allowed`), isolation.
"""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

from bowerbird.core.errors import (
    BowerbirdError,
    InvalidArgument,
    LandingRefused,
    PathEscape,
    SandboxUnavailable,
)
from bowerbird.core.processes import host_programs
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.run.command import CommandResult, check_timeout
from bowerbird.sandbox.run.output import HEAD_SHARE, shorten
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.sandbox.shell.allowed import ALLOWED_COMMANDS, Refused, check_allowed
from bowerbird.workspace import Branch, Changes, Workspace

EMPTY = "(no output)"
_FAILED = 1
_LONGEST_END_S = 5.0
T = TypeVar("T")


@dataclass
class ExecuteResponse:
    """What a command came to.

    Attributes:
        output: stdout, then the lines of stderr, each after `[stderr] `.
        exit_code: the program's; 124 timeout, 1 refused or not started. truncated: `output` is cut.
    """

    output: str
    exit_code: int
    truncated: bool = False


class WorkspaceShellBackend:
    """File tools and 27 allowed commands on `root_dir`; close it, or use it as a context manager.

    Args:
        root_dir: the directory.
        virtual_mode: absolute paths start at `root_dir`; False: they are the host's, and one outside of
            `root_dir` is refused.
        timeout: seconds per command.
        max_output_bytes: most bytes of an output that are returned.
        settings: of the sandbox; None = the defaults.

    Commands run without a shell in the sandbox; the list guards against mistakes. Every call lands what it
    changed in `root_dir`; flagged paths stay pending and are in `pending()`.

    Raises:
        InvalidWorkspace: `root_dir` is missing or no directory. InvalidArgument: a bad limit.

    Example:
        with WorkspaceShellBackend(root_dir="project") as backend:
            backend.write_file("notes.txt", "hello\\n")
            print(backend.execute("wc -l notes.txt").output)
    """

    def __init__(
        self,
        *,
        root_dir: str | Path,
        virtual_mode: bool = True,
        timeout: float = 120,
        max_output_bytes: int = 100_000,
        settings: SandboxSettings | None = None,
    ) -> None:
        chosen = settings or SandboxSettings()
        self._timeout, _ = check_timeout(timeout, chosen.max_timeout_s, timeout)
        if max_output_bytes < 1:
            raise InvalidArgument(f"max_output_bytes is {max_output_bytes}; it must be positive")
        self._max = max_output_bytes
        self._virtual = virtual_mode
        self._workspace = Workspace(root_dir)
        self._branch: Branch = self._workspace.branch(policy="step")
        self._root = str(self._branch.root)
        self._loop = _LoopThread()
        self._host = SandboxHost(self._workspace.data_dir, chosen)
        self._landing = asyncio.Lock()
        self._finalizer = weakref.finalize(self, _close, self._loop, self._host, self._workspace)

    # ------------------------------------------------------------ files

    def ls(self, path: str = "/") -> dict[str, Any]:
        """List a directory; see `Branch.ls`."""
        return self._loop.call(self.als(path))

    async def als(self, path: str = "/") -> dict[str, Any]:
        """See `ls`."""
        given = self._path(path)
        return await self._loop.run(lambda: self._branch.ls(given))

    def read_file(self, path: str, offset: int = 1, limit: int = 0) -> dict[str, Any]:
        """Read lines of a file; see `Branch.read_file`."""
        return self._loop.call(self.aread_file(path, offset, limit))

    async def aread_file(self, path: str, offset: int = 1, limit: int = 0) -> dict[str, Any]:
        """See `read_file`."""
        given = self._path(path)
        return await self._loop.run(lambda: self._branch.read_file(given, offset, limit))

    def write_file(self, path: str, content: str | bytes) -> dict[str, Any]:
        """Write a whole file; it lands at once. See `Branch.write_file`."""
        return self._loop.call(self.awrite_file(path, content))

    async def awrite_file(self, path: str, content: str | bytes) -> dict[str, Any]:
        """See `write_file`."""
        given = self._path(path)
        return await self._landed(lambda: self._branch.write_file(given, content))

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> dict[str, Any]:
        """Replace text in a file; it lands at once. See `Branch.edit_file`."""
        return self._loop.call(self.aedit_file(path, old, new, replace_all))

    async def aedit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> dict[str, Any]:
        """See `edit_file`."""
        given = self._path(path)
        return await self._landed(lambda: self._branch.edit_file(given, old, new, replace_all))

    def glob(self, pattern: str = "**/*") -> dict[str, Any]:
        """List files that fit a glob; see `Branch.list_files`."""
        return self._loop.call(self.aglob(pattern))

    async def aglob(self, pattern: str = "**/*") -> dict[str, Any]:
        """See `glob`."""
        given = self._path(pattern)
        return await self._loop.run(lambda: self._branch.list_files(given))

    def grep(self, pattern: str, glob: str = "**/*", **options: Any) -> dict[str, Any]:
        """Search the text of files; see `Branch.search_files` for `options`."""
        return self._loop.call(self.agrep(pattern, glob, **options))

    async def agrep(self, pattern: str, glob: str = "**/*", **options: Any) -> dict[str, Any]:
        """See `grep`."""
        given = self._path(glob)
        return await self._loop.run(lambda: self._branch.search_files(pattern, given, **options))

    def pending(self) -> Changes:
        """Return what did not land: flagged paths wait for a person."""
        return self._branch.changes()

    # ------------------------------------------------------------ commands

    def execute(self, command: str | Sequence[str]) -> ExecuteResponse:
        """Run an allowed command; a refusal or failure is a response, too.

        Args:
            command: a string, split into words without a shell; or a list of words, in which `&`, `|`
                and the like are plain text.
        """
        return self._loop.call(self.aexecute(command))

    async def aexecute(self, command: str | Sequence[str]) -> ExecuteResponse:
        """See `execute`; cancelling it kills the command's whole tree."""
        return await self._landed(lambda: self._execute(command))

    async def _execute(self, command: str | Sequence[str]) -> ExecuteResponse:
        checked = check_allowed(command, ALLOWED_COMMANDS, self._find, same=same_file)
        if isinstance(checked, Refused):
            return ExecuteResponse(f"Refused: {checked.reason}", _FAILED)
        name, *arguments = checked.words
        found = self._find(os.path.basename(name))
        if found is None:
            return ExecuteResponse(f"Cannot start {name}: it is not installed\nExit code: 1", _FAILED)
        try:
            sandbox = await self._host.sandbox(self._branch)
            result = await sandbox.run(
                [found, *arguments],
                timeout=self._timeout,
                configured_timeout=self._timeout,
                max_output_bytes=self._max,
                separate=True,
            )
        except (SandboxUnavailable, InvalidArgument) as error:
            return ExecuteResponse(f"Cannot start {name}: {error}", _FAILED)
        return response_of(result, self._max)

    def _find(self, name: str) -> str | None:
        """Return where PATH has a program; directories of the branch are never in PATH."""
        return find_program(name, self._host.facts.own_path, self._root)

    # ------------------------------------------------------------ paths, landing, end

    def _path(self, given: str) -> str:
        if self._virtual or not given.startswith("/"):
            return given
        plain = os.path.normpath(given)
        if plain != self._root and not plain.startswith(self._root.rstrip("/") + "/"):
            raise PathEscape(f"{given} lies outside of {self._root}", given)
        return given

    async def _landed(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        async def both() -> T:
            try:
                return await work()
            finally:
                await asyncio.shield(self._land())

        return await self._loop.run(both)

    async def _land(self) -> None:
        async with self._landing:
            try:
                await to_thread(_land, self._branch)
            except BowerbirdError:
                return  # what cannot land now stays on the branch and is in `pending`

    def close(self) -> None:
        """End commands, land nothing more, remove the branch; may be called again."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_program(name: str, path: Sequence[str], root: str | None) -> str | None:
    """Return where `path` has a program, not in the branch nor relative to anything; None when nowhere."""
    below = root.rstrip("/") + "/" if root else None
    absolute = (d for d in path if d.startswith("/"))
    usable = [d for d in absolute if below is None or not (d + "/").startswith(below)]
    return host_programs.find_program(name, os.pathsep.join(usable)) if "/" not in name else None


def same_file(one: str, other: str) -> bool:
    """Whether two program paths are the same entry of the same directory."""
    # By directory, not by what a link leads to: a link is the branch's to make, a system directory is not.
    place, name = os.path.split(one)
    elsewhere, expected = os.path.split(other)
    return name == expected and os.path.realpath(place) == os.path.realpath(elsewhere)


def response_of(result: CommandResult, limit: int) -> ExecuteResponse:
    """Return a finished command as SB-41 shows it, in at most `limit` bytes."""
    lines = [f"[stderr] {line}" for line in (result.stderr or "").splitlines()]
    parts = [part for part in ((result.stdout or "").rstrip("\n"), "\n".join(lines)) if part]
    text = "\n".join(parts) or EMPTY
    code = result.exit_code
    last = ""
    if code:
        why = " (timed out)" if result.timed_out else f" ({result.reason} limit)" if result.reason else ""
        last = f"\nExit code: {code}{why}"
    raw, room = text.encode(), limit - len(last.encode())
    cut = len(raw) > room
    if cut:
        head, tail = raw[: int(room * HEAD_SHARE)], raw[-room:]
        text = shorten(head, tail, max(result.total_bytes, len(raw)), room, result.spill)
    return ExecuteResponse(text + last, code, result.truncated or cut)


def _land(branch: Branch) -> None:
    # By the branch itself: a backend has no session whose changes would be counted, or that anybody views.
    if branch.changes().paths:
        try:
            branch.land(partial=True, automatic=True, actor="policy", door="library")
        except LandingRefused:
            return  # everything that is left waits for a person


class _LoopThread:
    """An event loop in a thread of its own, for calls from threads and from other loops."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bowerbird-shell", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end from a thread outside; an interrupt cancels it."""
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `make()` in this loop from any loop; cancelling the caller cancels it and waits for its end."""
        if asyncio.get_running_loop() is self._loop:
            return await make()
        begun, ended = threading.Event(), threading.Event()

        async def framed() -> T:
            begun.set()
            try:
                return await make()
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(framed(), self._loop)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if begun.is_set():
                await to_thread(ended.wait, _LONGEST_END_S)
            raise

    def close(self) -> None:
        """End what still runs, stop and close the loop."""
        if not self._loop.is_closed():
            self.call(_end_others())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _end_others() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_LONGEST_END_S)


def _close(loop: _LoopThread, host: SandboxHost, workspace: Workspace) -> None:
    loop.call(host.close())
    loop.close()
    workspace.close()
