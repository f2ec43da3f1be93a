"""One command of the host, from its start to an end that leaves no process (AS-50, AS-53, AS-54).

Here: its directory, its pipes, its limits. Not here: whether it may run (`bridges.py`), HTTP.
"""

import asyncio
import codecs
import contextlib
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bowerbird.core.processes.kept_process import KeptProcess
from bowerbird.gateway.bridges import Bridge, Refused, is_within

OUTPUT_BYTES = 1 << 20
TIMED_OUT = -1
NOT_INSTALLED = 127
_CHUNK = 1 << 16
_PIPES_S = 2.0  # for what lies in the pipes of a program that has ended
_TOO_LONG = 7  # E2BIG

OnOutput = Callable[[str, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended; `returncode` as a shell gives it, -1 when its time was over."""

    stdout: str
    stderr: str
    returncode: int
    truncated: bool = False
    timed_out: bool = False
    duration_s: float = 0.0


@contextlib.contextmanager
def directory_for(bridge: Bridge, cwd: str | None) -> Generator[str]:
    """Give the directory a command runs in, held by a descriptor so that it stays the one that was checked.

    Raises:
        Refused: 403 outside of what the bridge allows, 400 where there is no such directory.
    """
    if cwd is None and not bridge.directories:
        with tempfile.TemporaryDirectory(prefix="bowerbird-gateway-", ignore_cleanup_errors=True) as fresh:
            yield fresh
        return
    if not bridge.directories:
        raise Refused(403, f"bridge {bridge.name} allows no cwd; leave it out")
    wanted = bridge.directories[0] if cwd is None else os.path.expanduser(cwd)  # noqa: PTH111 - may be no path
    if not wanted.startswith("/"):
        raise Refused(400, f"cwd {cwd!r} is not absolute")
    try:
        descriptor = os.open(wanted, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(400, f"cwd {wanted!r} cannot be entered: {error.strerror}") from None
    try:
        here = f"/proc/self/fd/{descriptor}"
        if not is_within(os.readlink(here), bridge.directories):  # noqa: PTH115 - a descriptor's name
            raise Refused(403, f"cwd {wanted!r} lies outside of what bridge {bridge.name} allows")
        yield here
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Kept:
    """The beginning of one stream; the rest is read and dropped."""

    data: bytearray = field(default_factory=bytearray)
    is_cut: bool = False

    def add(self, chunk: bytes) -> bytes:
        """Keep what fits of a chunk and return it."""
        fits = chunk[: OUTPUT_BYTES - len(self.data)]
        self.data += fits
        self.is_cut = self.is_cut or len(fits) < len(chunk)
        return fits


async def run(
    program: str,
    cmd: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: str | None,
    timeout_s: float,
    on_output: OnOutput | None = None,
) -> Outcome:
    """Run a command; whatever happens, nothing that it started is left when this returns or raises.

    Args:
        program: the file that runs. cmd: what it is called as and its arguments.
        on_output: told of each piece of `stdout` and `stderr`, decoded.

    Raises:
        Refused: 400, the command line is longer than the system takes.
        OSError: no process can be made.
    """
    began = time.monotonic()
    try:
        process = await KeptProcess.start(program, cmd[1:], env=env, cwd=cwd, name=cmd[0])
    except OSError as error:
        if error.errno == _TOO_LONG:
            raise Refused(400, "the command line is longer than the system takes; use stdin") from None
        raise
    kept = {"stdout": _Kept(), "stderr": _Kept()}
    streams = {"stdout": process.stdout, "stderr": process.stderr}
    tasks = [asyncio.create_task(_read(streams[name], name, kept[name], on_output)) for name in kept]
    tasks.append(asyncio.create_task(_write(process.stdin, stdin)))
    timed_out = False
    try:
        timed_out = not await _ended(process, tasks, timeout_s)
    finally:
        await asyncio.shield(_finish(process, tasks))
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
    code = TIMED_OUT if timed_out else (process.exit_code if process.exit_code is not None else TIMED_OUT)
    return Outcome(
        _text(kept["stdout"]), _text(kept["stderr"]), code,
        truncated=any(one.is_cut for one in kept.values()), timed_out=timed_out,
        duration_s=round(time.monotonic() - began, 3),
    )  # fmt: skip


async def _ended(process: KeptProcess, tasks: Sequence["asyncio.Task[None]"], timeout_s: float) -> bool:
    """Wait for the program's end, or a listener that left; return whether it ended in its time."""
    ending = asyncio.create_task(process.ended(timeout_s))
    try:
        pending: set[asyncio.Task[Any]] = {ending, *tasks}
        while not ending.done():
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            if any(task is not ending and task.exception() is not None for task in done):
                return True  # whoever listened is gone
        return ending.result()
    finally:
        ending.cancel()


async def _finish(process: KeptProcess, tasks: Sequence["asyncio.Task[None]"]) -> None:
    if process.exit_code is not None:  # the whole tree is gone: what it said is in the pipes
        await asyncio.wait(tasks, timeout=_PIPES_S)
    await process.kill()
    await asyncio.wait(tasks, timeout=_PIPES_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _read(stream: asyncio.StreamReader, name: str, kept: _Kept, on_output: OnOutput | None) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := await stream.read(_CHUNK):
        fits = kept.add(chunk)
        if on_output is not None and (text := decoder.decode(fits)):
            await on_output(name, text)
        elif not fits:
            await asyncio.sleep(0)  # a flood is drained, not at the cost of others
    if on_output is not None and (text := decoder.decode(b"", final=True)):
        await on_output(name, text)


async def _write(stream: asyncio.StreamWriter, text: str | None) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it does not want to know
        if text:
            stream.write(text.encode("utf-8", "surrogatepass"))
            await stream.drain()
        stream.close()


def _text(kept: _Kept) -> str:
    return kept.data.decode("utf-8", "replace")


def not_installed(name: str) -> Outcome:
    """Return what a shell would say of a command that is allowed and not there."""
    return Outcome("", f"{name}: not installed on the host\n", NOT_INSTALLED)
