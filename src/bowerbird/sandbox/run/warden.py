"""The server's side of the warden process (`inside/warden.py`): mounts and sandbox starts on request.

Here: starting it, asking it, closing it. Not here: what is mounted or started.
"""

import errno
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.processes import descriptors
from bowerbird.core.processes.host_programs import HostProcess, popen
from bowerbird.sandbox.inside import channel

_ANSWER_S = 10.0
PACKAGE = Path(__file__).parents[1]


class Overlay(msgspec.Struct, frozen=True):
    """One kernel overlay: `lower` newest first; `upper` and `work` on one file system.

    Attributes:
        ground: what stands lowest when it holds the layers itself; then it is not in `lower`.
        scratch: an empty directory that is needed with it.
    """

    lower: tuple[str, ...]
    upper: str
    work: str
    ground: str = ""
    scratch: str = ""


class Mounted(msgspec.Struct, frozen=True):
    """Two descriptors of one detached mount; whoever holds them closes them."""

    attach: int
    look: int

    def close(self) -> None:
        """Close both."""
        os.close(self.attach)
        os.close(self.look)


class Warden:
    """A helper process in a user namespace of its own, started on first use.

    One per server. Calls are short (about 1 ms) and may come from any thread. When this process dies,
    the helper and every sandbox it started die with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: HostProcess | None = None
        self._channel: socket.socket | None = None

    def mount(self, overlays: Sequence[Overlay]) -> list[Mounted]:
        """Return detached mounts, one per overlay.

        Raises:
            SandboxUnavailable: the kernel refused; names the step and errno.
        """
        wanted = [msgspec.structs.asdict(overlay) for overlay in overlays]
        _, fds = self._ask({"op": "mount", "overlays": wanted})
        return [Mounted(fds[n], fds[n + 1]) for n in range(0, len(fds), 2)]

    def start(self, argv: Sequence[str], fds: Sequence[int], stderr: int) -> int:
        """Start a program whose descriptors 3, 4, … are `fds`; return its process id."""
        answer, _ = self._ask({"op": "start", "argv": list(argv)}, [stderr, *fds])
        return int(answer["pid"])

    def close(self) -> None:
        """End the helper and all that it started."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _ask(self, message: dict[str, Any], fds: list[int] | None = None) -> tuple[dict[str, Any], list[int]]:
        with self._lock:
            try:
                server = self._channel or self._launch()
                channel.send(server, message, fds)
                answer, received = channel.receive(server)
            except OSError as error:
                if error.errno not in descriptors.NUMBERS:  # which says nothing about the helper
                    self._drop()
                raise SandboxUnavailable(f"the sandbox helper does not answer: {error}") from error
            if answer is None:
                self._drop()
                raise SandboxUnavailable("the sandbox helper ended; the next command starts it again")
        if answer["op"] == "failed":
            name = errno.errorcode.get(answer["errno"], str(answer["errno"]))
            reason = OSError(answer["errno"], answer["error"])
            raise SandboxUnavailable(f"{answer['error']} ({name})") from reason
        return answer, received

    def _launch(self) -> socket.socket:
        ours, theirs = channel.pair()
        load = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); from inside.warden import main"
        try:
            with theirs:
                self._process = popen(
                    [sys.executable, "-I", "-S", "-c", f"{load}; main({theirs.fileno()})"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env={"PATH": "/usr/bin:/bin"},
                    start_new_session=True,
                )
        except OSError:
            ours.close()
            raise
        ours.settimeout(_ANSWER_S)
        answer, _ = channel.receive(ours)
        if answer is None or answer["op"] != "ready":
            ours.close()
            reason = answer["error"] if answer else "it ended at once"
            raise SandboxUnavailable(f"no user namespace: {reason}")
        self._channel = ours
        return ours
