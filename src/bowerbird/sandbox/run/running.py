"""One command from start to record: its pipes, its clock, its limits, its end (SB-14 … SB-19, SB-31 … SB-36).

Here: what happens while a command runs in a warm sandbox. Not here: the view it runs on, capture of
its changes, which commands may run.
"""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bowerbird.core.errors import PathEscape, SandboxUnavailable
from bowerbird.sandbox.run.command import CommandRequest, Ending
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.run.output import Collected, LiveOutput, OutputCollector
from bowerbird.sandbox.run.warm_sandbox import Answer, WarmSandbox
from bowerbird.sandbox.run.watch import DiskPlace, LimitWatch

SIGTERM, SIGKILL = 15, 9
TERM_GRACE_S = 1.0
_PIPE_BYTES = 1 << 20
_LAST_BYTES_S = 0.1  # a pipe may still be held by a process that the kernel is tearing down
_LAST_WORD_S = 5.0


class Finished(msgspec.Struct, frozen=True):
    """How a command ended and what it printed.

    Attributes:
        disk_left: bytes that the file system had, when it was ended because they became too few.
    """

    ending: Ending
    output: Collected
    stdout: Collected | None
    stderr: Collected | None
    duration_ms: int
    disk_left: int | None = None


class RunningCommand:
    """A started command. `wait` returns its record; `stop` ends its whole tree.

    Args:
        disk: where it writes; None = not watched.
    """

    def __init__(
        self,
        sandbox: WarmSandbox,
        request: CommandRequest,
        limits: RunLimits,
        *,
        spill: Path,
        spill_name: str,
        on_output: Callable[[bytes], None] | None = None,
        disk: DiskPlace | None = None,
    ) -> None:
        self.spill_name = spill.name
        self._sandbox = sandbox
        self._request = request
        self._limits = limits
        self._stop: str | None = None
        self._stopping = asyncio.Event()
        self._live = LiveOutput(on_output, time.monotonic) if on_output else None
        most = request.max_output_bytes
        self.output = OutputCollector(most, spill, spill_name, keep=request.keep_output)
        apart = request.separate
        self._parts = [OutputCollector(most, spill.with_suffix(s), "") for s in (".1", ".2")] if apart else []
        self._open: list[asyncio.Future[None]] = []
        self._started = time.monotonic()
        self._command, self._ended = self._launch()
        cpu_ms = limits.cpu_s(request.timeout_s) * 1000
        self._watch = LimitWatch(sandbox, self._command, limits, cpu_ms, disk, self.stop)

    def _launch(self) -> tuple[str, asyncio.Future[Answer]]:
        given: list[int] = []
        try:
            stdin = self._feed(given)
            out_read, out_write = _pipe()
            given.append(out_write)
            error_write = out_write
            sinks = [(out_read, 0)]
            stdout = out_write if self._request.stdout_fd is None else self._request.stdout_fd
            if self._parts:
                error_read, error_write = _pipe()
                given.append(error_write)
                sinks.append((error_read, 1))
            for descriptor, part in sinks:
                self._open.append(self._watch_pipe(descriptor, part))
            return self._sandbox.launch(
                self._request.argv,
                cwd=self._request.cwd,
                root=self._request.root,
                env=self._request.env,
                rlimits=self._limits.rlimits(self._request.timeout_s),
                streams=(stdin, stdout, error_write),
            )
        finally:
            for descriptor in given:
                os.close(descriptor)

    def _feed(self, given: list[int]) -> int:
        """Return a descriptor that reads as the command's stdin."""
        if self._request.stdin_fd is not None:
            return self._request.stdin_fd
        if not self._request.stdin:
            null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            given.append(null)
            return null
        file = os.memfd_create("stdin", os.MFD_CLOEXEC)
        given.append(file)
        os.write(file, self._request.stdin)
        os.lseek(file, 0, os.SEEK_SET)
        return file

    def _watch_pipe(self, descriptor: int, part: int) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        closed: asyncio.Future[None] = loop.create_future()

        def read() -> None:
            try:
                chunk = os.read(descriptor, _PIPE_BYTES)
            except BlockingIOError:
                return
            if chunk:
                self.output.feed(chunk)
                if self._parts:
                    self._parts[part].feed(chunk)
                if self._live:
                    self._live.feed(chunk)
            elif not closed.done():
                closed.set_result(None)

        def finish(_: asyncio.Future[None]) -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)

        closed.add_done_callback(finish)
        loop.add_reader(descriptor, read)
        return closed

    @property
    def stopped_by(self) -> str | None:
        """Why it was ended, as in `Ending.stop`."""
        return self._stop

    @property
    def spilled(self) -> bool:
        """Whether its whole output is in a file."""
        return self.output.spilled

    @property
    def running_ms(self) -> int:
        """How long ago it started."""
        return round((time.monotonic() - self._started) * 1000)

    def stop(self, reason: str) -> None:
        """End the command's whole tree; `reason` as in `Ending.stop`. The first reason counts."""
        if self._stop is None:
            self._stop = reason
        self._stopping.set()
        self._sandbox.signal(self._command, SIGKILL)

    async def end(self, reason: str) -> None:
        """End the command as its time limit does: SIGTERM to its tree, a second later SIGKILL."""
        self._stop = self._stop or reason
        self._sandbox.signal(self._command, SIGTERM)
        await asyncio.wait({self._ended}, timeout=TERM_GRACE_S)
        self._sandbox.signal(self._command, SIGKILL)

    async def wait(self) -> Finished:
        """Wait for the end. Cancelling this kills the command's tree, then raises CancelledError."""
        try:
            answer = await self._watched()
            if self._stop is None:
                await self._watch.last_look(answer.get("written_bytes", 0))
        except asyncio.CancelledError:
            self.stop("cancel")
            with contextlib.suppress(TimeoutError):  # what it changes until then is captured
                async with asyncio.timeout(_LAST_WORD_S):
                    await asyncio.shield(self._ended)
            raise
        finally:
            await self._drain()
        if answer.get("escaped"):
            raise PathEscape(f"{self._request.cwd} leads out of the workspace", self._request.cwd)
        if answer["op"] == "failed":
            raise SandboxUnavailable(f"the command could not be started: {answer['error']}")
        parts = [part.close() for part in self._parts]
        if self._live:
            self._live.flush()
        ending = Ending(
            code=answer.get("code"),
            signal=answer.get("signal"),
            cpu_ms=answer["cpu_ms"],
            peak_bytes=answer["peak_bytes"],
            stragglers=answer.get("stragglers", 0),
            not_renamed=tuple(answer.get("not_renamed", ())),
            stop=self._stop or _kernel_limit(answer, self._limits, self._request.timeout_s),
        )
        duration = self.running_ms
        stdout, stderr = (parts[0], parts[1]) if parts else (None, None)
        return Finished(ending, self.output.close(), stdout, stderr, duration, self._watch.left)

    async def _watched(self) -> Answer:
        """Wait for the end, keeping the time limit and looking at memory and disk meanwhile."""
        deadline = self._started + self._request.timeout_s
        watch = asyncio.ensure_future(self._watch.run())
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - time.monotonic()):
                return await asyncio.shield(self._ended)
        except TimeoutError:
            return await self._time_out()
        finally:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch

    async def _time_out(self) -> Answer:
        if self._stop is None:
            self._stop = "timeout"
        self._sandbox.signal(self._command, SIGTERM)
        try:
            async with asyncio.timeout(TERM_GRACE_S):
                return await asyncio.shield(self._ended)
        except TimeoutError:
            self._sandbox.signal(self._command, SIGKILL)
            return await self._ended

    async def _drain(self) -> None:
        """Take what the pipes still hold; every writer is dead, so they end at once."""
        for closed in self._open:
            try:
                async with asyncio.timeout(_LAST_BYTES_S):
                    await asyncio.shield(closed)
            except TimeoutError:
                if not closed.done():
                    closed.set_result(None)
        await asyncio.sleep(0)  # lets the done callbacks close the descriptors


async def stop_when(cancel: asyncio.Event, running: RunningCommand) -> None:
    """End a command as soon as `cancel` is set."""
    await cancel.wait()
    running.stop("cancel")


def _kernel_limit(answer: Answer, limits: RunLimits, timeout_s: float) -> str | None:
    sigxcpu = 24
    if answer.get("signal") == sigxcpu:
        return "cpu"
    # The kernel holds its limit by samples, which on a busy machine are up to a fifth off the time it tells.
    spent = answer["cpu_ms"] >= limits.cpu_s(timeout_s) * 800
    return "cpu" if answer.get("signal") == SIGKILL and spent else None


def _pipe() -> tuple[int, int]:
    read, write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(read, False)
    with contextlib.suppress(OSError):  # the user's pipe quota may be used up; smaller works too
        fcntl.fcntl(write, 1031, _PIPE_BYTES)  # F_SETPIPE_SZ
    return read, write
