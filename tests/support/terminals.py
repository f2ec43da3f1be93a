"""The `bowerbird` command as a real process: with pipes, or under a pseudo-terminal.

Here: starting it with a home and data of its own, typing, waiting for output. Not here:
what tests expect.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from support.patience import HANG_S

COMMAND = [sys.executable, "-m", "bowerbird.cli.main"]
_ESCAPES = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]|\x1b[=>78]")


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment that knows nothing of this machine's settings and keys."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(home), "TERM": "xterm-256color", "PYTHONWARNINGS": "error", **more}


class Terminal:
    """A process under a pseudo-terminal; use as a context manager.

    Args:
        arguments: of the command. columns, rows: size of the terminal.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        columns: int = 100,
        rows: int = 40,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [*command, *arguments], stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=dict(environment),
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call, then exec
        )  # fmt: skip
        os.close(slave)
        self.seen = 0
        self._output = bytearray()
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(HANG_S)
        self._reader.join(HANG_S)
        os.close(self._master)

    @property
    def raw(self) -> bytes:
        """Everything written so far."""
        with self._changed:
            return bytes(self._output)

    @property
    def text(self) -> str:
        """Everything written so far, without escape sequences."""
        return _ESCAPES.sub(b"", self.raw).decode("utf-8", "replace")

    def send(self, text: str) -> None:
        """Type `text`; "\\r" is Enter."""
        os.write(self._master, text.encode())

    def wait_for(self, text: str, *, timeout: float = HANG_S) -> None:
        """Wait until `text` was written after what was waited for last."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                written = _ESCAPES.sub(b"", bytes(self._output)).decode("utf-8", "replace")
                at = written.find(text, self.seen)
                if at >= 0:
                    self.seen = at + len(text)
                    return
                left = deadline - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive()):
                    end = re.sub(r"\n\s*(?=\n)", "", written)[-3000:]
                    raise AssertionError(f"{text!r} did not appear; the end of the screen:\n{end}")
                self._changed.wait(min(left, 0.5))

    def wait(self, timeout: float = HANG_S) -> int:
        """Wait for the end of the process; return its exit code."""
        code = self.process.wait(timeout)
        self._reader.join(timeout)
        return code

    def resize(self, columns: int, rows: int = 40) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def is_restored(self) -> bool:
        """Whether the terminal echoes and edits lines again, as it was given."""
        flags = termios.tcgetattr(self._master)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._master], [], [], 0.2)
            if not ready:
                if self.process.poll() is not None:
                    break
                continue
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                break
            if not data:
                break
            if b"\x1b[6n" in data:  # a real terminal tells where its cursor is
                os.write(self._master, b"\x1b[1;1R")
            with self._changed:
                self._output += data
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()
