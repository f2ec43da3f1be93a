"""Python whose names persist, in CPython in the branch's sandbox: where Monty has no wheel (SB-49).

Here: one interpreter per branch, its queue and its end. Not here: what it does with a snippet
(`inside/session`), how a command runs. While it lives it holds the branch as a background run does, so it
ends with the turn.
"""

import asyncio
import contextlib
import json
import socket
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.forms import decode
from bowerbird.core.ids import new_id
from bowerbird.sandbox.run.output import HEAD_SHARE, readable, shorten
from bowerbird.sandbox.run.running import RunningCommand
from bowerbird.sandbox.run.warden import PACKAGE

if TYPE_CHECKING:
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.sandbox.python.record import PythonRecord, State

_GONE = "variables of earlier snippets are gone; file changes stay"
_LONGEST_ANSWER = 1 << 22
_LONGEST_TRACE = 20_000
_FORGED = "RuntimeError: the interpreter's answer could not be read; the snippet interfered with it"


class _Printed(msgspec.Struct):
    total: int
    head: str
    tail: str


class _Answer(msgspec.Struct):
    """What the interpreter says of a snippet. The snippet runs in the same process and can say anything."""

    id: str
    result: str | None
    error: str | None
    line: int | None
    traceback: str | None
    stdout: _Printed
    stderr: _Printed


class PersistentPython:
    """The interpreter of one branch, started with its first snippet.

    Args:
        sandbox: where it runs.

    Example:
        await python.run("x = 20")
        (await python.run("x + 1")).result  # "21"
    """

    def __init__(self, sandbox: "BranchSandbox") -> None:
        self._sandbox = sandbox
        self._lock = asyncio.Lock()
        self._command: RunningCommand | None = None
        self._end: asyncio.Task[object] | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._lost = False

    async def run(
        self,
        code: str,
        *,
        timeout_s: float = 30.0,
        output_bytes: int = 100_000,
        turn: str | None = None,
        call: str | None = None,
    ) -> "PythonRecord":
        """Run a snippet after those before it; returns the record of SB-43.

        Args:
            timeout_s: seconds, then the interpreter is killed and its names are gone.
            output_bytes: most bytes of output that are returned.
            turn, call: whose changes these are.

        Raises:
            SandboxUnavailable: no sandbox could be had; nothing ran.
        """
        from bowerbird.sandbox.python.record import PythonRecord

        async with self._lock:
            began = asyncio.get_running_loop().time()
            if self._command is None:
                await self._start()
            state: State = "lost" if self._lost else "kept"
            self._lost = False
            try:
                answer = await self._asked(code, timeout_s, output_bytes)
            except asyncio.CancelledError:
                await self._discard()
                raise
            duration = round((asyncio.get_running_loop().time() - began) * 1000)
            if isinstance(answer, str):
                await self._discard()
                return PythonRecord(
                    ok=False, error=f"{answer}; {_GONE}", duration_ms=duration, state="lost", engine="cpython"
                )
            await self._sandbox.capture(turn=turn, call=call)
            return _record(answer, output_bytes, duration, state)

    async def close(self) -> None:
        """End the interpreter; the next snippet is told that its names are gone."""
        async with self._lock:
            if self._command is not None:
                await self._discard()

    async def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            source = (PACKAGE / "inside/session.py").read_text(encoding="utf-8")
            request = self._sandbox.request(
                ["python3", "-u", "-c", source],
                timeout=self._sandbox.longest_s,
                max_output_bytes=4096,
                stdin_fd=theirs.fileno(),
            )
            try:
                self._command = await self._sandbox.begin(request, call=new_id("py"))
            except BaseException:
                ours.close()
                raise
        self._end = asyncio.create_task(self._command.wait())
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_LONGEST_ANSWER)

    async def _asked(self, code: str, timeout_s: float, limit: int) -> _Answer | str:
        """Return the interpreter's answer, or why there is none."""
        assert self._reader is not None and self._writer is not None
        number = new_id("q")  # so that a line written by an earlier snippet answers nothing
        self._writer.write(json.dumps({"id": number, "code": code, "limit": limit}).encode() + b"\n")
        try:
            async with asyncio.timeout(timeout_s):
                await self._writer.drain()
                line = await self._reader.readline()
        except TimeoutError:
            return f"TimeoutError: the snippet did not end within {timeout_s:g} s"
        except (OSError, ValueError):
            line = b""
        if not line.endswith(b"\n"):
            return "RuntimeError: the interpreter died"
        try:
            answer = decode(line, _Answer)
            for printed in (answer.stdout, answer.stderr):
                _bytes(printed)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return _FORGED
        return answer if answer.id == number else _FORGED

    async def _discard(self) -> None:
        command, end, writer = self._command, self._end, self._writer
        self._command = self._end = self._reader = self._writer = None
        self._lost = True
        assert command is not None and end is not None
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        command.stop("cancel")
        await asyncio.wait([end])
        await self._sandbox.end(command)


def _record(answer: _Answer, limit: int, duration_ms: int, state: "State") -> "PythonRecord":
    from bowerbird.sandbox.python.record import RESULT_CHARS, PythonRecord

    out, err = answer.stdout, answer.stderr
    room = max(limit // 4, limit - max(0, out.total))
    stderr = _shown(err, room)
    stdout = _shown(out, limit - len(stderr.encode()))
    return PythonRecord(
        ok=answer.error is None,
        stdout=stdout,
        stderr=stderr,
        result=_cut(answer.result, RESULT_CHARS),
        error=_cut(answer.error, RESULT_CHARS),
        line=answer.line,
        traceback=_cut(answer.traceback, _LONGEST_TRACE),
        truncated=out.total + err.total > limit,
        duration_ms=duration_ms,
        state=state,
        engine="cpython",
    )


def _cut(text: str | None, most: int) -> str | None:
    return text if text is None or len(text) <= most else text[: most - 1] + "…"


def _bytes(printed: _Printed) -> tuple[bytes, bytes]:
    return printed.head.encode("latin-1"), printed.tail.encode("latin-1")


def _shown(printed: _Printed, limit: int) -> str:
    head, tail = _bytes(printed)
    text = readable(head)
    if not tail and len(text.encode()) <= limit:
        return text
    return shorten(head[: int(limit * HEAD_SHARE)], (tail or head)[-limit:], printed.total, limit, None)
