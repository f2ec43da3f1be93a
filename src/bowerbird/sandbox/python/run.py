"""One run of a snippet: every suspension of the interpreter gets its answer.

Here: sleeping, the caller's functions, handing file calls on, what was printed. Not
here: the interpreter's package (`monty.py`), which names are kept (`sessions.py`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

import msgspec

from bowerbird.sandbox.python.engine import PythonLimits, SnippetFailed
from bowerbird.sandbox.python.monty import Interpreter
from bowerbird.sandbox.python.output import BoundedOutput
from bowerbird.sandbox.python.record import RESULT_CHARS, Failure, PythonRecord, explained, format_traceback
from bowerbird.sandbox.python.source import Snippet, showing_result
from bowerbird.sandbox.python.steps import (
    Answer,
    Ended,
    HostCall,
    Later,
    NameNeeded,
    Raised,
    Step,
    Unsupported,
    Value,
)

AsyncFunction = Callable[..., Awaitable[Any]]
_SLEEPS = ("time.sleep", "system.sleep")
_ASYNC_SLEEPS = ("asyncio.sleep", "system.async_sleep")
_KINDS = frozenset(
    (
        "Exception", "ArithmeticError", "OverflowError", "ZeroDivisionError", "LookupError", "IndexError",
        "KeyError", "RuntimeError", "NotImplementedError", "RecursionError", "AttributeError", "NameError",
        "ValueError", "ImportError", "ModuleNotFoundError", "OSError", "FileNotFoundError",
        "FileExistsError", "IsADirectoryError", "NotADirectoryError", "PermissionError", "AssertionError",
        "MemoryError", "TimeoutError", "TypeError", "UnicodeDecodeError",
    )
)  # fmt: skip


class NoSuchCall(Exception):
    """The interpreter asks for something that is not offered; it gives its own refusal."""


class FileCalls(Protocol):
    """Answers what a snippet does with files."""

    async def call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """Return the result of `open`, `Path.…`; raises OSError or NoSuchCall."""
        ...

    async def flush(self) -> None:
        """Write what is buffered."""
        ...


class NoFiles:
    """`FileCalls` of a run without a branch: there is nothing to open."""

    async def call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> object:
        """Refuse."""
        raise PermissionError(f"this run has no files ({name})")

    async def flush(self) -> None:
        """Nothing is buffered."""


class Run:
    """The run of one snippet.

    Args:
        interpreter: Open; its names are what the snippet sees.
        limits: Of time and output.
        files: Answers file calls.
        functions: Extra names the snippet may `await`.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        limits: PythonLimits,
        files: FileCalls,
        functions: Mapping[str, AsyncFunction],
    ) -> None:
        self._interpreter = interpreter
        self._limits = limits
        self._files = files
        self._functions = functions
        self._slept_s = 0.0
        self._tasks: dict[int, asyncio.Task[Answer]] = {}
        self.stdout = BoundedOutput(limits.output_bytes)
        self.stderr = BoundedOutput(limits.output_bytes)
        self._started = time.monotonic()

    async def execute(self, code: str) -> PythonRecord:
        """Run `code` to its end and return its record.

        Raises:
            SnippetFailed: only for a limit; other errors of the snippet are in the record.
            WorkerGone: the worker died.
        """
        snippet = showing_result(code)
        value: object = None
        failed: SnippetFailed | None = None
        unwritten: OSError | None = None
        try:
            value = await self._drive(snippet.code)
        except SnippetFailed as error:
            failed = error
        finally:
            unwritten = await self._settle_open_ends()
        if failed is not None and failed.limit:
            raise SnippetFailed(at_original(failed.failure, snippet), limit=True) from failed
        if failed is not None:
            return self.failed(at_original(failed.failure, snippet))
        if unwritten is not None:
            return self.failed(Failure(type(unwritten).__name__, str(unwritten)))
        return self.record(ok=True, result=_shown(value, snippet))

    def failed(self, failure: Failure) -> PythonRecord:
        """Return the record of a run that ended with `failure`."""
        failure = explained(failure)
        return self.record(
            ok=False, error=failure.text, line=failure.line, traceback=format_traceback(failure)
        )

    def record(self, **fields: Any) -> PythonRecord:
        """Return a record with what was printed so far and the time taken."""
        limit = self._limits.output_bytes
        stderr = self.stderr.render(max(limit // 4, limit - self.stdout.total))
        stdout = self.stdout.render(limit - len(stderr.encode()))
        cut = self.stdout.total + self.stderr.total > limit
        return PythonRecord(
            stdout=stdout,
            stderr=stderr,
            truncated=cut,
            spill=(self.stdout.raw_text() or self.stderr.raw_text()) if cut else None,
            duration_ms=round((time.monotonic() - self._started) * 1000),
            **fields,
        )

    def close(self) -> None:
        """Let go of the raw output."""
        self.stdout.close()
        self.stderr.close()

    async def _drive(self, code: str) -> object:
        step = await self._interpreter.start(code, self._printed)
        while not isinstance(step, Ended):
            step = await self._next(step)
        return step.value

    async def _next(self, step: Step) -> Step:
        if isinstance(step, NameNeeded):
            return await self._interpreter.name(step.name, step.name in self._functions)
        if isinstance(step, HostCall):
            return await self._interpreter.answer(await self._answer(step))
        assert not isinstance(step, Ended)
        waited = {call: self._tasks[call] for call in step.ids if call in self._tasks}
        if not waited:
            unknown = Raised("RuntimeError", "what this waits for belongs to an interpreter that has ended")
            return await self._interpreter.settle(dict.fromkeys(step.ids, unknown))
        await asyncio.wait(waited.values(), return_when=asyncio.FIRST_COMPLETED)
        done = {call: self._tasks.pop(call).result() for call, task in waited.items() if task.done()}
        return await self._interpreter.settle(done)

    async def _answer(self, call: HostCall) -> Answer:
        if call.name == "import" and call.args:
            return Raised("ModuleNotFoundError", f"No module named {call.args[0]!r}")
        if call.name in _SLEEPS and call.is_os:
            return await self._sleep(call.args)
        if call.name in _ASYNC_SLEEPS and call.is_os:
            self._tasks[call.id] = asyncio.create_task(self._sleep(call.args))
            return Later()
        if call.is_os:
            return await self._file_call(call)
        function = self._functions.get(call.name)
        if function is not None:
            self._tasks[call.id] = asyncio.create_task(_called(function, call))
            return Later()
        return Raised("NameError", f"name {call.name!r} is not defined")

    async def _sleep(self, args: tuple[Any, ...]) -> Answer:
        seconds = max(0.0, float(args[0])) if args else 0.0
        if not self._slept_s + seconds <= self._limits.timeout_s:
            return Raised(
                "TimeoutError",
                f"sleep limit exceeded: {seconds:g} s asked, {self._limits.timeout_s:g} s in all",
            )
        self._slept_s += seconds
        await asyncio.sleep(seconds)
        return Value(None)

    async def _file_call(self, call: HostCall) -> Answer:
        try:
            return Value(await self._files.call(call.name, call.args, call.kwargs))
        except (OSError, ValueError, MemoryError) as error:
            return raised(error)
        except NoSuchCall:
            return Unsupported()

    def _printed(self, stream: str, text: str) -> None:
        (self.stderr if stream == "stderr" else self.stdout).add(text)

    async def _settle_open_ends(self) -> OSError | None:
        """End what was not awaited, write what is buffered; return why that was refused."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
            self._tasks.clear()
        try:
            await self._files.flush()
        except OSError as error:
            return error
        return None


async def _called(function: AsyncFunction, call: HostCall) -> Answer:
    try:
        result = await function(*call.args, **call.kwargs)
    except Exception as error:  # noqa: BLE001 - whatever the caller's function raises is the snippet's to handle
        return raised(error)
    if not _can_cross(result):
        return Raised(
            "TypeError", f"{call.name} returned a {type(result).__name__}, which cannot be passed on"
        )
    return Value(result)


def raised(error: BaseException) -> Raised:
    """Return `error` as one the snippet can catch; an unknown type becomes RuntimeError."""
    kind = type(error).__name__
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return Raised(kind, text) if kind in _KINDS else Raised("RuntimeError", f"{kind}: {text}")


def at_original(failure: Failure, snippet: Snippet) -> Failure:
    """Return `failure` with the positions the caller wrote."""
    frames = tuple(f if f.where else snippet.original(f) for f in failure.frames)
    return msgspec.structs.replace(failure, frames=frames)


def _shown(value: object, snippet: Snippet) -> str | None:
    if value is None:
        return None
    text = value if snippet.shows_repr and isinstance(value, str) else repr(value)
    return text if len(text) <= RESULT_CHARS else text[: RESULT_CHARS - 1] + "…"


def _can_cross(value: object) -> bool:
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return True
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_can_cross, cast("list[object]", value)))
    if isinstance(value, dict):
        items = cast("dict[object, object]", value)
        return all(map(_can_cross, items)) and all(map(_can_cross, items.values()))
    return False
