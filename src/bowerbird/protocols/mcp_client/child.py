"""A server of the stdio transport as a process: its pipes, what it says on stderr, its end (PT-24).

Here: start under a keeper, the ring of its last words, the orderly end. Not here: the protocol
(`stdio.py` frames it), when it is started.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from bowerbird.protocols.mcp_client.spec import ServerSpec

RING_BYTES = 1 << 20
LARGEST_LINE = 16 << 20  # a message; what is longer ends the connection instead of filling memory
STDIN_GRACE_S = 2.0
TERM_GRACE_S = 2.0
_KILL_GRACE_S = 3.0
_LOOK_EVERY_S = 0.01
_CHUNK = 1 << 16
_FLOOD_PAUSE_S = 0.01  # a server that floods stderr is slowed, not served at full speed
_KEEPER = Path(__file__).with_name("keeper.py")


class Ring:
    """The last bytes that a server said, whatever it is asked to say."""

    def __init__(self, most: int = RING_BYTES) -> None:
        self._most = most
        self._bytes = bytearray()

    def add(self, data: bytes) -> None:
        """Keep `data`, dropping what is oldest."""
        self._bytes += data
        if len(self._bytes) > self._most:
            del self._bytes[: len(self._bytes) - self._most]

    @property
    def text(self) -> str:
        """What is kept, decoded as far as it can be."""
        return self._bytes.decode("utf-8", "replace")

    @property
    def last_line(self) -> str:
        """The last line that is not blank, "" when there is none."""
        lines = self.text.strip().splitlines()
        return lines[-1].strip() if lines else ""


class Child:
    """A started server. `close` must be awaited; it takes at most seven seconds and leaves nothing."""

    def __init__(self, process: Process, life: int, ring: Ring) -> None:
        self._process = process
        self._life = life
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin, self.stdout = process.stdin, process.stdout
        self._listening = asyncio.create_task(_listen(process.stderr, ring), name="mcp stderr")

    @classmethod
    async def start(cls, spec: ServerSpec, ring: Ring) -> "Child":
        """Start the server of `spec` in a process group of its own.

        Raises:
            OSError: no process can be made. A command that cannot run says so on stderr and ends.
        """
        from mcp.client.stdio import get_default_environment

        life_read, life_write = os.pipe2(os.O_CLOEXEC)
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", str(_KEEPER), str(life_read), spec.command, *spec.args,
                stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=spec.cwd, limit=LARGEST_LINE,
                env={**get_default_environment(), **spec.env}, pass_fds=(life_read,),
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(life_write)
            raise
        finally:
            os.close(life_read)
        return cls(process, life_write, ring)

    @property
    def exit_code(self) -> int | None:
        """How the server ended; None while it runs."""
        return self._process.returncode

    async def close(self) -> None:
        """End the server: stdin closed, 2 s, SIGTERM, 2 s, then everything it started is killed."""
        try:
            self.stdin.close()
            if not await self._ended(STDIN_GRACE_S):
                self._signal(signal.SIGTERM)
                await self._ended(TERM_GRACE_S)
        finally:
            os.close(self._life)  # the keeper kills what is left
            if not await self._ended(_KILL_GRACE_S) or (self.exit_code or 0) < 0:
                self._signal(signal.SIGKILL)
                await self._ended(_KILL_GRACE_S)
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            self._process._transport.close()  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue] - a killed tree's pipes may outlive it; nothing public closes them

    async def _ended(self, within_s: float) -> bool:
        # Not `wait()`: that waits for the ends of all pipes too, which a grandchild may hold.
        until = asyncio.get_running_loop().time() + within_s
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() >= until:
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def _listen(stderr: asyncio.StreamReader, ring: Ring) -> None:
    while data := await stderr.read(_CHUNK):
        ring.add(data)
        if len(data) == _CHUNK:
            await asyncio.sleep(_FLOOD_PAUSE_S)
