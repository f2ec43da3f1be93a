"""Which interpreter belongs to which branch, and what of it survives (SB-44, SB-45).

Here: one persistent session per branch, its queue, its end at a limit, dumps, forks.
Not here: running a snippet (`run.py`), the interpreter's package (`monty.py`),
any database: dumps go through a small port.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.python.engine import ENGINE_VERSION, PythonLimits, SnippetFailed, WorkerGone

if TYPE_CHECKING:  # what runs a snippet is imported with the first one: most processes never have one
    from bowerbird.sandbox.python.monty import Interpreter
    from bowerbird.sandbox.python.record import PythonRecord, State
    from bowerbird.sandbox.python.run import AsyncFunction, FileCalls, Run

_MAGIC = b"bowerbird-python 1 "
_GONE = "variables of earlier snippets are gone; file changes stay"
MAX_IDLE = 32


class DumpStore(Protocol):
    """Where dumps of interpreters are kept between turns; one per branch."""

    async def save(self, branch: str, dump: bytes) -> None:
        """Keep `dump` in place of an earlier one."""
        ...

    async def load(self, branch: str) -> bytes | None:
        """Return what was kept, None when there is nothing."""
        ...


class DumpFiles:
    """A `DumpStore` of one file per branch in `directory` (0700), replaced atomically."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def save(self, branch: str, dump: bytes) -> None:
        """Write `dump`; a crash leaves the earlier one or this one."""
        await to_thread(self._save, self._path(branch), dump)

    async def load(self, branch: str) -> bytes | None:
        """Read what was saved; an unreadable file counts as nothing."""
        try:
            return await to_thread(self._path(branch).read_bytes)
        except OSError:
            return None

    def _path(self, branch: str) -> Path:
        return self._directory / f"{hashlib.sha256(branch.encode()).hexdigest()[:32]}.dump"

    def _save(self, path: Path, dump: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, dump)


class _Session(msgspec.Struct):
    """One branch's interpreter; changed only under its lock."""

    lock: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    interpreter: "Interpreter | None" = None
    memory: bytes | None = None  # a dump that waits to be loaded
    known: bool = False  # whether the store was asked
    lost: bool = False  # the next record says that variables are gone
    marked: bool = False  # the store knows that its dump is outdated


class PythonSessions:
    """Python for branches: `run` keeps the names of each branch from call to call.

    Args:
        limits: Of every snippet.
        dumps: Keeps sessions over a restart; None: they end with this object.
        functions: Extra async functions snippets may await, by name.

    Calls for one branch run in call order, those of different branches beside each
    other. Close it with `aclose`.

    Example:
        >>> async def example() -> str | None:
        ...     sessions = PythonSessions()
        ...     await sessions.run("b_1", "x = 20")
        ...     record = await sessions.run("b_1", "x + 1")
        ...     await sessions.aclose()
        ...     return record.result
    """

    def __init__(
        self,
        limits: PythonLimits | None = None,
        *,
        dumps: DumpStore | None = None,
        functions: "Mapping[str, AsyncFunction] | None" = None,
    ) -> None:
        self.limits = limits or PythonLimits()
        self._dumps = dumps
        self._functions = dict(functions or {})
        self._sessions: dict[str, _Session] = {}

    async def run(
        self,
        branch: str,
        code: str,
        files: "FileCalls | None" = None,
        *,
        timeout_s: float | None = None,
        source: str | None = None,
    ) -> "PythonRecord":
        """Run `code` in the branch's session.

        Args:
            branch: Id of the branch.
            code: The snippet.
            files: Answers its file calls; None: it has no files.
            timeout_s: Seconds in place of the limits' own.
            source: Branch whose names this one begins with, when it has none of its own yet.
        """
        from bowerbird.sandbox.python.record import PythonRecord
        from bowerbird.sandbox.python.run import NoFiles, Run

        session = self._session(branch)
        async with session.lock:
            await self._recall(branch, session, source)
            limits = msgspec.structs.replace(self.limits, timeout_s=timeout_s) if timeout_s else self.limits
            await self._evict(branch)
            try:
                interpreter, state = await self._ready(branch, session, limits)
            except WorkerGone as error:
                return PythonRecord(
                    ok=False, error=f"the interpreter could not be started: {error}", state="lost"
                )
            run = Run(interpreter, limits, files or NoFiles(), self._functions)
            try:
                return msgspec.structs.replace(await self._watched(session, run, code, limits), state=state)
            except _Discarded as discarded:
                return msgspec.structs.replace(discarded.record, state="lost")
            finally:
                run.close()

    async def end_turn(self, branch: str) -> None:
        """Dump the session if it fits, so that it survives a restart, and let its worker go."""
        session = self._sessions.get(branch)
        if session is None or session.interpreter is None:
            return
        async with session.lock:
            dump = await self._dumped(session)
            if dump is None or len(dump) > self.limits.dump_bytes:
                session.known = self._dumps is None
                return  # the worker stays: the names live on in this process only
            await self._save(branch, dump)
            session.marked = False
            session.memory = dump
            if self._dumps is not None:  # asked again: the next turn may be driven by another process
                session.known, session.memory = False, None
            await _end(session)

    async def fork(self, parent: str, child: str, *, copy: bool = False) -> None:
        """Start `child` empty, or with a copy of the parent's names as they are now."""
        target = self._session(child)
        target.known = True
        if copy:
            target.memory, target.lost = await self._copy_of(parent)
            if target.memory is not None:
                await self._save(child, target.memory)

    async def rolled_back(self, branch: str) -> None:
        """Forget the session: its names belong to a state of the branch that is gone."""
        session = self._session(branch)
        async with session.lock:
            await self._recall(branch, session)
            had = session.interpreter is not None or session.memory is not None
            await _end(session)
            session.memory = None
            session.lost = session.lost or had
            await self._save(branch, b"")

    async def aclose(self) -> None:
        """End every worker; safe to call twice."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(_end(session) for session in sessions))

    def _session(self, branch: str) -> _Session:
        return self._sessions.setdefault(branch, _Session())

    async def _ready(
        self, branch: str, session: _Session, limits: PythonLimits
    ) -> "tuple[Interpreter, State]":
        from bowerbird.sandbox.python.monty import Interpreter

        await self._recall(branch, session)
        if session.interpreter is None:
            interpreter = Interpreter(limits)
            session.interpreter = interpreter
            dump, session.memory = session.memory, None
            try:
                await interpreter.open(dump)
            except (SnippetFailed, WorkerGone):
                await _end(session)
                if dump is None:
                    raise WorkerGone("its process ended at once") from None
                session.lost = True  # a dump of ours that does not load: say so and start empty
                return await self._ready(branch, session, limits)
            except asyncio.CancelledError:
                session.memory = dump
                await _end(session)
                raise
        if not session.marked:
            session.marked = True
            await self._save(branch, b"")
        state: State = "lost" if session.lost else "kept"
        session.lost = False
        return session.interpreter, state

    async def _recall(self, branch: str, session: _Session, source: str | None = None) -> None:
        """Ask the store, once a turn, what an earlier or another process kept of this branch."""
        if session.known:
            return
        session.known = True
        stored = await self._dumps.load(branch) if self._dumps else None
        if session.interpreter is not None:  # names that were too large to dump
            newer = None if stored is None else unpack(stored)
            if newer is not None:  # another process went on without them
                await _end(session)
                session.memory, session.marked = newer, False
            return
        if stored is None:
            if source is not None and source != branch:
                session.memory, session.lost = await self._copy_of(source)
            return
        session.memory = unpack(stored)
        session.lost = session.memory is None

    async def _copy_of(self, branch: str) -> tuple[bytes | None, bool]:
        """Return the branch's names as they are now, and whether they were lost."""
        session = self._session(branch)
        async with session.lock:
            await self._recall(branch, session)
            dump = await self._dumped(session) if session.interpreter else session.memory
            return dump, session.lost

    async def _watched(
        self, session: _Session, run: "Run", code: str, limits: PythonLimits
    ) -> "PythonRecord":
        """Run `code`; on any end but a regular one the session is discarded."""
        from bowerbird.sandbox.python.record import Failure

        clock = asyncio.timeout(limits.timeout_s + limits.grace_s)
        try:
            async with clock:
                return await run.execute(code)
        except TimeoutError:
            if not clock.expired():
                raise
            seconds = f"{limits.timeout_s + limits.grace_s:g}"
            failure = Failure("TimeoutError", f"the snippet did not end within {seconds} s, waiting included")
        except SnippetFailed as error:
            failure = error.failure
        except WorkerGone as error:
            failure = Failure("RuntimeError", f"the interpreter died: {error}")
        except asyncio.CancelledError:
            session.lost = True
            await _end(session)
            raise
        await _end(session)
        raise _Discarded(run.failed(msgspec.structs.replace(failure, message=f"{failure.message}; {_GONE}")))

    async def _dumped(self, session: _Session) -> bytes | None:
        if session.interpreter is None:
            return None
        try:
            return await session.interpreter.dump()
        except SnippetFailed:
            return None
        except WorkerGone:
            session.lost = True
            await _end(session)
            return None

    async def _save(self, branch: str, dump: bytes) -> None:
        if self._dumps is not None:
            await self._dumps.save(branch, pack(dump))

    async def _evict(self, branch: str) -> None:
        """Keep at most `MAX_IDLE` workers: those whose dump was too large to let them go."""
        live = [b for b, s in self._sessions.items() if s.interpreter and not s.lock.locked() and b != branch]
        for oldest in live[: max(0, len(live) - MAX_IDLE + 1)]:
            session = self._sessions[oldest]
            async with session.lock:
                session.lost = True
                await _end(session)


class _Discarded(Exception):
    """The session was ended; `record` says why."""

    def __init__(self, record: "PythonRecord") -> None:
        super().__init__(record.error)
        self.record = record


async def _end(session: _Session) -> None:
    interpreter, session.interpreter = session.interpreter, None
    if interpreter is not None:
        await interpreter.close()


def pack(dump: bytes) -> bytes:
    """Return `dump` with engine version and digest; `b""` says that there is none."""
    head = f"{ENGINE_VERSION} {hashlib.sha256(dump).hexdigest()} {len(dump)}\n".encode()
    return _MAGIC + head + dump


def unpack(stored: bytes) -> bytes | None:
    """Return the dump in what `pack` made; None when empty, torn or of another version."""
    head, _, dump = stored.partition(b"\n")
    expected = pack(dump).partition(b"\n")[0]
    return dump if dump and head == expected else None
