"""Starting `bowerbird serve` for drills: as forks that can die at a point inside, or as anybody would.

Here: both ways. Not here: what the forks run (`serve_child.py`), the drill (`serve_drill.py`).
"""

import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from support.patience import HANG_S

CHILD = Path(__file__).with_name("serve_child.py")
WAIT_S = HANG_S


class Serves:
    """The server of `bowerbird serve` processes; one at a time."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(CHILD)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1,
        )  # fmt: skip

    def start(self, config: dict[str, Any]) -> int:
        """Start a process and return its pid."""
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(config) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def wait(self) -> int:
        """Return the wait status of the process that was started, when it has ended."""
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())

    def close(self) -> None:
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(HANG_S)
        self._server.stdout.close()


class Plain:
    """Starts `bowerbird serve` as anybody would, and kills it by hand when the database shows a certain row.

    A kill from outside comes a moment after the row: where the process really was is read from what it left.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watching: threading.Thread | None = None

    def start(self, config: dict[str, Any]) -> int:
        command = [sys.executable, "-m", "bowerbird", "--config", config["config"], "serve"]
        with Path(config["log"]).open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--port", str(config["port"])],
                cwd=config["cwd"], env=config["env"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        if config["kill"]:
            watch = (
                self._process,
                Path(config["cwd"]) / "data" / "agent.db",
                config["kill"],
                Path(config["died"]),
            )
            self._watching = threading.Thread(target=_kill_at_row, args=watch)
            self._watching.start()
        return self._process.pid

    def wait(self) -> int:
        assert self._process is not None
        code = self._process.wait(WAIT_S)
        if self._watching is not None:
            self._watching.join()
            self._watching = None
        return -code if code == -signal.SIGKILL else 0 if code in (0, -signal.SIGTERM) else abs(code) << 8

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _kill_at_row(process: "subprocess.Popen[bytes]", path: Path, kind: str, died: Path) -> None:
    """Kill a process when a record of `kind` is committed; note what the last committed one was."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)
    try:
        newest = "SELECT max(rowid) FROM journal"
        last = database.execute(newest).fetchone()[0] or 0
        while process.poll() is None:
            found = database.execute(
                "SELECT rowid, type FROM journal WHERE rowid > ? ORDER BY rowid", (last,)
            )
            if kind in [row[1] for row in found]:
                process.kill()
                process.wait()
                seen = database.execute("SELECT type FROM journal ORDER BY rowid DESC LIMIT 1").fetchone()[0]
                with died.open("a") as file:
                    file.write(f"from outside: after {seen}\n")
                return
            time.sleep(0.001)
    finally:
        database.close()
