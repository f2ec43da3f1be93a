"""A worker process of `pydantic_monty`, driven step by step.

Here: starting a worker, feeding it, its suspensions and errors as our own values,
killing it. Not here: what a suspension is answered with (`run.py`), sessions,
the form of results.

The synchronous client is used, each worker from a thread of its own: the asynchronous
one aborts the process now and then when the Python that runs it ends. A worker never
serves two branches.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar, cast

from bowerbird.core.threads import waking
from bowerbird.sandbox.python.engine import PythonLimits, SnippetFailed, WorkerGone
from bowerbird.sandbox.python.mourning import MOURNER
from bowerbird.sandbox.python.record import Failure, Frame
from bowerbird.sandbox.python.steps import (
    Answer,
    Ended,
    FileStat,
    HostCall,
    Later,
    NameNeeded,
    OpenedFile,
    Raised,
    Scanned,
    Step,
    Unsupported,
    Value,
    Waiting,
)

_LOST = (
    "feed time limit", "turn time limit", "memory limit", "suspension limit", "sleep limit",
    "maximum recursion depth", "the worker exceeded its memory limit",
)  # fmt: skip
_PRELUDE = """
def _make_open(_open):
    def open(file, mode='r', buffering=-1, encoding=None, errors=None, newline=None):
        name = 'utf-8' if encoding is None else encoding.lower().replace('_', '-')
        if name not in ('utf-8', 'utf8', 'ascii'):
            raise LookupError(f'this interpreter reads and writes utf-8 only, not {encoding}')
        return _open(file, mode)
    return open
open = _make_open(open)
"""
_PRELUDE_FILE = "<python-input-0>"
T = TypeVar("T")


class Interpreter:
    """One worker process with its names. All methods are for one task at a time.

    Args:
        limits: What it may use.
    """

    def __init__(self, limits: PythonLimits) -> None:
        self._limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bowerbird-python")
        self._pool: Any = None
        self._session: Any = None
        self._snapshot: Any = None
        self._pidfd = -1

    async def open(self, dump: bytes | None = None) -> None:
        """Start the worker, empty or with the names of `dump` (bytes that `dump()` gave).

        Raises:
            SnippetFailed: the dump cannot be loaded.
            WorkerGone: no worker could be started.
        """
        await self._in_thread(lambda: self._open(dump))

    async def start(self, code: str, on_print: Callable[[str, str], None]) -> Step:
        """Feed `code`; return its first suspension or its end.

        Args:
            on_print: Gets `stdout` or `stderr` and text, in the worker's thread.

        Raises:
            SnippetFailed: it ended with an error.
            WorkerGone: the worker died.
        """
        return await self._in_thread(
            lambda: self._step(self._session.feed_start(code, print_callback=on_print, cwd="/"))
        )

    async def answer(self, answer: Answer) -> Step:
        """Answer the `HostCall` that `start` or `answer` gave; errors as `start`."""
        return await self._in_thread(lambda: self._step(self._resume(answer)))

    async def name(self, name: str, known: bool) -> Step:
        """Answer a `NameNeeded`: the name is a function of ours, or undefined."""
        return await self._in_thread(
            lambda: self._step(self._snapshot.resume(value=_stub(name)) if known else self._snapshot.resume())
        )

    async def settle(self, answers: dict[int, Answer]) -> Step:
        """Answer a `Waiting` with the results of one or more of its calls."""
        settled = {call: _settled(answer) for call, answer in answers.items()}
        return await self._in_thread(lambda: self._step(self._snapshot.resume(settled)))

    async def dump(self) -> bytes:
        """Return the names between two snippets, for `open` of another interpreter."""
        return await self._in_thread(self._dump)

    def kill(self) -> None:
        """Kill the worker at once; whatever waits for it raises WorkerGone."""
        if self._pidfd >= 0:
            with suppress(ProcessLookupError):  # it died by itself
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def close(self) -> None:
        """End the worker; may be called twice and after `kill`."""
        self.kill()
        if self._pool is not None:
            await self._in_thread(self._close)
        self._thread.shutdown(wait=False)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, waking(_translated), work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            # Once the worker is dead the thread comes back at once; nothing may use the
            # session before it has.
            self.kill()
            await asyncio.wait([future])
            future.exception()
            raise

    def _open(self, dump: bytes | None) -> None:
        import pydantic_monty

        limits = self._limits
        self._pool = pydantic_monty.Monty(min_processes=0, max_processes=1, max_checkouts_per_worker=1)
        self._pool.__enter__()
        self._session = self._pool.checkout(
            limits={
                "max_feed_duration_secs": limits.timeout_s,
                "max_memory": limits.memory_bytes,
                "max_recursion_depth": limits.recursion,
                "max_suspensions": limits.suspensions,
            },
            # The client's own sleep cannot be interrupted; ours can, and is counted.
            os_policy={"sleep": "call_host"},
        )
        self._session.__enter__()
        pid = self._session.worker_pid
        if pid is None:
            raise WorkerGone("the interpreter did not start")
        self._pidfd = os.pidfd_open(pid)
        MOURNER.tell(pid)
        if dump is None:
            self._session.feed_run(_PRELUDE)
        else:
            self._session.load_session(dump)

    def _dump(self) -> bytes:
        return self._session.dump()

    def _close(self) -> None:
        pool, self._pool = self._pool, None
        pidfd, self._pidfd = self._pidfd, -1
        if pidfd >= 0:
            os.close(pidfd)
        self._snapshot = None
        if self._session is not None:
            self._session.__exit__(None, None, None)
            self._session = None
        pool.__exit__(None, None, None)

    def _resume(self, answer: Answer) -> Any:
        if isinstance(answer, Unsupported):
            return self._snapshot.resume_not_handled()
        if isinstance(answer, Later):
            return self._snapshot.resume({"future": ...})
        return self._snapshot.resume(_settled(answer))

    def _step(self, snapshot: Any) -> Step:
        import pydantic_monty

        self._snapshot = snapshot
        if isinstance(snapshot, pydantic_monty.MontyComplete):
            self._snapshot = None
            return Ended(snapshot.output)
        if isinstance(snapshot, pydantic_monty.NameLookupSnapshot):
            return NameNeeded(snapshot.variable_name)
        if isinstance(snapshot, pydantic_monty.FutureSnapshot):
            return Waiting(tuple(snapshot.pending_call_ids))
        args = tuple(
            OpenedFile(a.path, a.mode) if isinstance(a, pydantic_monty.MontyFileHandle) else a
            for a in snapshot.args
        )
        return HostCall(
            snapshot.call_id, snapshot.function_name, args, dict(snapshot.kwargs), snapshot.is_os_function
        )


def _settled(answer: Answer) -> Any:

    if isinstance(answer, Raised):
        return {"exc_type": answer.kind, "message": answer.message}
    return {"return_value": _crossing(answer.value) if isinstance(answer, Value) else None}


def _crossing(value: Any) -> Any:
    import pydantic_monty

    if isinstance(value, OpenedFile):
        return pydantic_monty.MontyFileHandle(value.path, value.mode)
    if isinstance(value, FileStat):
        if value.is_dir:
            return pydantic_monty.StatResult.dir_stat(value.mode, value.mtime)
        return pydantic_monty.StatResult.file_stat(value.size, value.mode, value.mtime)
    if isinstance(value, list):
        return [_crossing(item) for item in cast("list[Any]", value)]
    if isinstance(value, Scanned):
        return pydantic_monty.ScanEntry(value.path, value.is_dir, value.is_file, value.is_symlink)
    return value


def _stub(name: str) -> Callable[[], None]:
    def stub() -> None:
        """Never runs: calls of it arrive as `HostCall`."""

    stub.__name__ = name
    return stub


def _translated(work: Callable[[], T]) -> T:
    import pydantic_monty

    try:
        return work()
    except pydantic_monty.MontyCrashedError as error:
        raise WorkerGone(str(error)) from error
    except RuntimeError as error:  # its other errors are no RuntimeError: the worker ended between two calls
        raise WorkerGone(str(error)) from error
    except (pydantic_monty.MontyRuntimeError, pydantic_monty.MontySyntaxError) as error:
        kind, _, message = error.display("type-msg").partition(": ")
        hit = kind in ("TimeoutError", "MemoryError", "RuntimeError", "RecursionError")
        frames = _frames(error.traceback())
        raise SnippetFailed(
            Failure(kind, message, frames), limit=hit and message.startswith(_LOST)
        ) from error


def _frames(found: list[Any]) -> tuple[Frame, ...]:
    frames = [f for f in found if f.filename != _PRELUDE_FILE]
    current = frames[0].filename if frames else ""
    return tuple(
        Frame(
            where=_where(f.filename, current),
            line=f.line,
            column=f.column,
            end_line=f.end_line,
            end_column=f.end_column,
            function=f.function_name or "",
            source=f.source_line or "",
        )
        for f in frames
    )


def _where(filename: str, current: str) -> str:
    if filename == current:
        return ""
    return "earlier snippet" if filename.startswith("<python-input-") else filename
