"""A server of the stdio transport as a process: its pipes, what it says on stderr, its end (PT-24).

Here: start under a keeper, the ring of its last words, the orderly end. Not here: the protocol
(`stdio.py` frames it), when it is started.
"""

import asyncio
import signal

from bowerbird.core.processes.host_programs import plain_environment
from bowerbird.core.processes.kept_process import KeptProcess
from bowerbird.protocols.mcp_client.spec import ServerSpec

RING_BYTES = 1 << 20
LARGEST_LINE = 16 << 20  # a message; what is longer ends the connection instead of filling memory
STDIN_GRACE_S = 2.0
TERM_GRACE_S = 2.0
_CHUNK = 1 << 16
_FLOOD_PAUSE_S = 0.01  # a server that floods stderr is slowed, not served at full speed


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
    """A started server. `close` must be awaited; it takes at most ten seconds and leaves nothing."""

    def __init__(self, process: KeptProcess, ring: Ring) -> None:
        self._process = process
        self.stdin, self.stdout = process.stdin, process.stdout
        self._listening = asyncio.create_task(_listen(process.stderr, ring), name="mcp stderr")

    @classmethod
    async def start(cls, spec: ServerSpec, ring: Ring) -> "Child":
        """Start the server of `spec` in a process group of its own.

        Raises:
            OSError: no process can be made. A command that cannot run says so on stderr and ends.
        """
        env = plain_environment() | dict(spec.env)
        process = await KeptProcess.start(
            spec.command, spec.args, env=env, cwd=spec.cwd, longest_line=LARGEST_LINE
        )
        return cls(process, ring)

    @property
    def exit_code(self) -> int | None:
        """How the server ended; None while it runs."""
        return self._process.exit_code

    async def close(self) -> None:
        """End the server: stdin closed, 2 s, SIGTERM, 2 s, then everything it started is killed."""
        try:
            self.stdin.close()
            if not await self._process.ended(STDIN_GRACE_S):
                self._process.signal(signal.SIGTERM)
                await self._process.ended(TERM_GRACE_S)
        finally:
            await self._process.kill()
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)


async def _listen(stderr: asyncio.StreamReader, ring: Ring) -> None:
    while data := await stderr.read(_CHUNK):
        ring.add(data)
        if len(data) == _CHUNK:
            await asyncio.sleep(_FLOOD_PAUSE_S)
