"""`bowerbird serve` for many tests, each a process of its own that starts in half a second.

A process imports what a server takes, once, and forks one for each test; the fork runs the command line
`bowerbird serve` from its first line on. As a program this file is that process: a line of JSON on its input
is a server to start, a line on its output the server's pid.

Here: starting and ending them. Not here: dying at a point (`serve_child.py`), what tests ask.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.patience import HANG_S
from support.prepared import prepare

IMPORTED = (
    "bowerbird.cli.main", "bowerbird.cli.parser", "bowerbird.cli.admin.serve", "bowerbird.app.serving",
    "bowerbird.app.logs", "bowerbird.server.application", "anyio._backends._asyncio", "uvicorn.lifespan.on",
    "uvloop", "sqlalchemy.dialects.sqlite.aiosqlite", "pyseccomp",
)  # fmt: skip


class QuickServer:
    """One running server."""

    def __init__(self, pid: int, url: str, log: Path) -> None:
        self.url = url
        self.log = log
        self._handle = os.pidfd_open(pid)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it and wait for its end; a second call does nothing."""
        if self._handle < 0:
            return
        handle, self._handle = self._handle, -1
        try:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                signal.pidfd_send_signal(handle, number)
            if not select.select([handle], [], [], HANG_S)[0]:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                raise AssertionError(f"the server did not end:\n{self.log.read_text()}")
        finally:
            os.close(handle)


class QuickServers:
    """The process that servers are forked from; made with the first one, ended by `close`.

    Args:
        imports: modules that it imports besides, say those of a chat channel.
    """

    def __init__(self, *imports: str) -> None:
        self._parent: subprocess.Popen[str] | None = None
        self._asking = threading.Lock()  # an answer is for whoever asked last
        self._imports = imports

    def start(
        self, directory: Path, environment: Mapping[str, str], log: Path, *arguments: str
    ) -> QuickServer:
        """Serve `directory` on a free port; returns once the port is open.

        Args:
            environment: its own. log: takes what it writes. arguments: more of the command line.
        """
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        wanted = {
            "arguments": ["serve", "--port", str(port), *arguments],
            "directory": str(directory),
            "environment": dict(environment),
            "log": str(log),
        }
        server = QuickServer(self._forked(wanted, environment), f"http://127.0.0.1:{port}", log)
        deadline = time.monotonic() + HANG_S
        while not _listens(port):
            assert time.monotonic() < deadline, f"the server did not start:\n{log.read_text()}"
            time.sleep(0.02)
        return server

    def _forked(self, wanted: Mapping[str, Any], environment: Mapping[str, str]) -> int:
        with self._asking:
            if self._parent is None:
                self._parent = subprocess.Popen(
                    [sys.executable, __file__, *self._imports], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    text=True, bufsize=1, env={**environment, "PYTHONWARNINGS": "error"},
                )  # fmt: skip
            assert self._parent.stdin is not None and self._parent.stdout is not None
            self._parent.stdin.write(json.dumps(wanted) + "\n")
            return int(self._parent.stdout.readline())

    def close(self) -> None:
        """End the process that servers are forked from, and those that are left."""
        if self._parent is not None:
            self._parent.communicate(timeout=HANG_S)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# ---------------------------------------------------------------- the process that forks


def _serve(wanted: dict[str, Any]) -> int:
    """Be `bowerbird serve` as a shell would start it."""
    os.setsid()
    log = os.open(wanted["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in enumerate((nothing, log, log)):
        os.dup2(target, number)
    os.chdir(wanted["directory"])
    os.environ.clear()
    os.environ.update(wanted["environment"])
    gc.enable()
    return importlib.import_module("bowerbird.cli.main").run_command(wanted["arguments"])


def _reap() -> None:
    """Wait for those that have ended: to a server, one that nobody waited for looks as if it lived.

    Not earlier than the next start: until then whoever started one finds it by its number.
    """
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    """Fork a server for each line of the input; at its end, end those that are left."""
    for name in (*IMPORTED, *sys.argv[1:]):
        importlib.import_module(name)
    prepare()
    gc.collect()
    gc.freeze()
    started: list[int] = []
    for line in sys.stdin:
        _reap()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = _serve(json.loads(line))
            finally:
                os._exit(code)
        started.append(os.pidfd_open(pid))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for handle in started:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)


if __name__ == "__main__":
    main()
