"""A program outside of the sandbox as a process whose whole tree ends with it, or with us.

Here: starting it under a keeper (`keeper.py`), waiting, signals, the end that leaves nothing. Not here: what
is said over its pipes.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path

from bowerbird.core.processes.host_programs import neutral_directory

_KILL_GRACE_S = 3.0
_LOOK_EVERY_S = 0.01
_KEEPER = Path(__file__).with_name("keeper.py")


def kept_words(life: int, program: str, name: str) -> tuple[str, ...]:
    """Return the beginning of a command line that runs a program under a keeper; its arguments follow.

    Args:
        life: read end of a pipe, passed on to it; when nobody has the write end, the whole tree ends.
        name: what the program is called as (`argv[0]`).
    """
    return (sys.executable, "-I", "-S", str(_KEEPER), str(life), program, name)


class KeptProcess:
    """A started program with pipes on its three standard streams. `kill` must be awaited.

    Attributes:
        stdin, stdout, stderr: its pipes.
    """

    def __init__(self, process: Process, life: int) -> None:
        self._process = process
        self._life: int | None = life
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.stdin, self.stdout, self.stderr = process.stdin, process.stdout, process.stderr

    @classmethod
    async def start(
        cls,
        program: str,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | Path | None = None,
        name: str | None = None,
        longest_line: int = 1 << 16,
    ) -> "KeptProcess":
        """Start a program in a process group of its own.

        Args:
            program: a path, or a name that is looked for on the PATH of `env`.
            arguments: those behind its name.
            cwd: a directory that a person named, or one of ours; one where nothing is when None.
            name: what it is called as (`argv[0]`); `program` when None.
            longest_line: bytes that a reader of its lines keeps.

        Raises:
            OSError: no process can be made. A program that cannot run says so on stderr and ends with 126 or
                127.
        """
        life_read, life_write = os.pipe2(os.O_CLOEXEC)
        try:
            process = await asyncio.create_subprocess_exec(
                *kept_words(life_read, program, name or program), *arguments,
                stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=longest_line, env=dict(env),
                cwd=cwd or neutral_directory(), pass_fds=(life_read,), start_new_session=True,
            )  # fmt: skip
        except BaseException:
            os.close(life_write)
            raise
        finally:
            os.close(life_read)
        return cls(process, life_write)

    @property
    def exit_code(self) -> int | None:
        """How the program ended, 128 + signal when it was killed; None while it runs."""
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program's group, if there is one."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def ended(self, within_s: float) -> bool:
        """Wait until the program has ended, at most so many seconds; return whether it has."""
        # Not `Process.wait()`: that waits for the ends of all pipes too, which a grandchild may hold.
        until = asyncio.get_running_loop().time() + within_s
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() >= until:
                return False
            await asyncio.sleep(_LOOK_EVERY_S)
        return True

    async def kill(self) -> None:
        """End the program and everything that it started, also what left its group; at most six seconds."""
        if self._life is not None:
            os.close(self._life)  # the keeper kills what is left
            self._life = None
        if not await self.ended(_KILL_GRACE_S) or (self.exit_code or 0) < 0:
            self.signal(signal.SIGKILL)
            await self.ended(_KILL_GRACE_S)
        self._process._transport.close()  # type: ignore[attr-defined]  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportAttributeAccessIssue] - a killed tree's pipes may outlive it; nothing public closes them
