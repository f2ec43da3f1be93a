"""Ends helper programs of ours that would outlive this process when it is killed.

Here: one small process that waits for our end and then kills those it was told of. Not here: sandboxes, which
end by themselves (`run/warden`).
"""

import contextlib
import subprocess
import sys
import threading

from bowerbird.core.processes.host_programs import HostProcess, popen

# It holds each by a descriptor, not by its number, which another process may have by then.
_MOURNER = """
import os, select, signal, sys
held = []
for line in sys.stdin:
    held = [fd for fd in held if not select.select([fd], [], [], 0)[0] or os.close(fd)]
    try:
        held.append(os.pidfd_open(int(line)))
    except OSError:
        pass
for fd in held:
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    except OSError:
        pass
"""


class Mourner:
    """Kills what it was told of as soon as this process is gone; started with the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: HostProcess | None = None

    def tell(self, pid: int) -> None:
        """Have a child of this process killed at our end. May be called from any thread."""
        with self._lock, contextlib.suppress(OSError):  # it was killed: the child's own limits end it
            if self._process is None or self._process.poll() is not None:
                self._process = popen(
                    [sys.executable, "-I", "-S", "-c", _MOURNER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={"PATH": "/usr/bin:/bin"},
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            self._process.stdin.write(b"%d\n" % pid)
            self._process.stdin.flush()


MOURNER = Mourner()
"""That of this process."""
