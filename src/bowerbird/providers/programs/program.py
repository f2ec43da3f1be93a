"""One program running in a branch's sandbox: its pipes, its limits, its end (PR-15, PR-17, PR-18).

Here: starting it, reading its lines within the limits, watching the clocks, ending it. Not here: what the
lines mean (`readers`, `acp`), its home and branch (`ground`).
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.ids import new_id
from bowerbird.providers.programs.launching import Launch
from bowerbird.providers.programs.outcome import Stopped
from bowerbird.sandbox.run.command import exit_code

if TYPE_CHECKING:
    from bowerbird.providers.programs.relay.relay import Relay
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.sandbox.run.doors import Door
    from bowerbird.sandbox.run.running import RunningCommand

STDOUT_BYTES, STDERR_BYTES, LINE_BYTES = 8 << 20, 1 << 20, 4 << 20
IDLE_S = 180.0
_CHUNK = 1 << 16
_LOOK_S = 0.05
_LAST_WORDS_S = 3.0
"""So long a program may go on once its relay has no hope: most say what happened, some retry for ever."""
_BACKSTOP_S = 30.0
_LIMITS = {
    "memory": "it used more memory than the sandbox allows (sandbox.memory)",
    "disk": "it wrote more than the sandbox allows (sandbox.disk)",
    "pids": "it started more processes than the sandbox allows (sandbox.pids)",
    "cpu": "it used more CPU time than the sandbox allows",
}


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one run.

    Attributes:
        deadline: `time.monotonic()` at which it ends. timeout_s: what a person set, for messages.
        idle_s: longest time without any output. stdout_bytes, line_bytes: of what it prints.
    """

    deadline: float
    timeout_s: float
    idle_s: float = IDLE_S
    stdout_bytes: int = STDOUT_BYTES
    line_bytes: int = LINE_BYTES


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended; `stopped` None = by itself."""

    code: int
    stderr: str
    stopped: Stopped | None


class Program:
    """A started program. `lines` or `chunks` must be read; `finish` must be awaited, whatever happened."""

    def __init__(
        self, sandbox: "BranchSandbox", limits: RunLimits, relay: "Relay | None", stdout: asyncio.StreamReader
    ) -> None:
        self.stdin: asyncio.StreamWriter | None = None
        self.stopped: Stopped | None = None
        self._sandbox, self._limits, self._relay, self._stdout = sandbox, limits, relay, stdout
        self._command: RunningCommand | None = None
        self._out: asyncio.ReadTransport | None = None
        self._heard = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        sandbox: "BranchSandbox",
        launch: Launch,
        limits: RunLimits,
        *,
        relay: "Relay | None" = None,
        doors: Sequence["Door"] = (),
        talks: bool = False,
    ) -> "Program":
        """Start it at the branch's root.

        Args:
            talks: its standard input stays open, for a protocol; else it gets what `launch` says.

        Raises:
            SandboxUnavailable: no sandbox could be had; nothing ran.
        """
        out_read, out_write = os.pipe2(os.O_CLOEXEC)
        in_read, in_write = os.pipe2(os.O_CLOEXEC) if talks else (-1, -1)
        try:
            reader, program_out = await _reading(out_read)
            self = cls(sandbox, limits, relay, reader)
            self._out = program_out
            if talks:
                self.stdin = await _writing(in_write, reader)
                in_write = -1
            await self._begin(launch, in_read if talks else None, out_write, tuple(doors))
            return self
        finally:
            for descriptor in (out_write, in_read, in_write):
                if descriptor >= 0:
                    os.close(descriptor)

    async def _begin(self, launch: Launch, stdin: int | None, stdout: int, doors: tuple["Door", ...]) -> None:
        left = max(1.0, self._limits.deadline - time.monotonic()) + _BACKSTOP_S
        request = self._sandbox.request(
            launch.words,
            stdin=(launch.stdin or b"") if stdin is None else b"",
            stdin_fd=stdin,
            timeout=left,
            configured_timeout=left,
            max_output_bytes=STDERR_BYTES,
        )
        request = msgspec.structs.replace(request, env=launch.env, stdout_fd=stdout, doors=doors)
        try:
            self._command = await self._sandbox.begin(request, call=new_id("agent"), on_output=self._hear)
        except BaseException:
            self._close_pipes()
            raise
        self._heard = time.monotonic()
        self._watch = asyncio.create_task(self._watched(), name="limits of an agent's program")

    def _hear(self, _chunk: bytes) -> None:
        self._heard = time.monotonic()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what it prints, until it closes its standard output or is ended."""
        taken = 0
        while chunk := await self._stdout.read(_CHUNK):
            self._heard = time.monotonic()
            taken += len(chunk)
            if taken > self._limits.stdout_bytes:
                most = self._limits.stdout_bytes
                await self.stop(Stopped("output", f"it printed more than {most:,} bytes, and was ended"))
                return
            yield chunk

    async def lines(self) -> AsyncIterator[str]:
        """Yield its lines, decoded with replacement; a longer one than allowed ends it."""
        rest = bytearray()
        async for chunk in self.chunks():
            *whole, last = chunk.split(b"\n")
            for line in whole:
                rest += line
                if len(rest) <= self._limits.line_bytes:
                    yield rest.decode("utf-8", "replace").rstrip("\r")
                rest.clear()
            rest += last
            if len(rest) > self._limits.line_bytes:
                most = self._limits.line_bytes
                await self.stop(
                    Stopped("line", f"it printed a line of more than {most:,} bytes, and was ended")
                )
                return
        if rest:
            yield rest.decode("utf-8", "replace").rstrip("\r")

    async def _watched(self) -> None:
        limits = self._limits
        gave_up: float | None = None
        while True:
            await asyncio.sleep(_LOOK_S)
            now = time.monotonic()
            if now >= limits.deadline:
                await self.stop(
                    Stopped("timeout", f"it did not finish within {limits.timeout_s:g} s, and was ended")
                )
                return
            if now - self._heard >= limits.idle_s:
                why = f"it printed nothing for {limits.idle_s:g} s (idle_timeout), and was ended"
                await self.stop(Stopped("idle", why))
                return
            if self._relay is not None and self._relay.over.is_set():
                gave_up = gave_up or now
                if now - gave_up >= _LAST_WORDS_S:
                    await self.stop(Stopped("relay", str(self._relay.trouble)))
                    return

    async def stop(self, why: Stopped) -> None:
        """End it: SIGTERM to its whole tree, a second later SIGKILL; the first reason counts."""
        if self.stopped is None:
            self.stopped = why
            if self._command is not None:
                await self._command.end("timeout" if why.kind in ("timeout", "idle") else "cancel")

    async def finish(self) -> Ended:
        """Wait for its end and take what it changed into the branch; nothing of it is left then.

        Cancelling this kills its whole tree at once.
        """
        assert self._command is not None
        try:
            finished = await self._command.wait()
        finally:
            if self._watch is not None:
                self._watch.cancel()
            self._close_pipes()
            await self._sandbox.end(self._command)
        stop = finished.ending.stop
        if self.stopped is None and stop in _LIMITS:
            self.stopped = Stopped(stop, f"{_LIMITS[stop]}, and was ended")
        return Ended(exit_code(finished.ending), finished.output.text, self.stopped)

    def kill(self) -> None:
        """Kill its whole tree at once."""
        if self._command is not None:
            self._command.stop("cancel")

    def _close_pipes(self) -> None:
        if self.stdin is not None and not self.stdin.transport.is_closing():
            self.stdin.transport.abort()
        if self._out is not None:
            self._out.close()


async def _reading(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    reader = asyncio.StreamReader(limit=_CHUNK)
    file = os.fdopen(descriptor, "rb", buffering=0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader, transport


async def _writing(descriptor: int, reader: asyncio.StreamReader) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    file = os.fdopen(descriptor, "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), file
    )
    return asyncio.StreamWriter(transport, protocol, reader, loop)
