"""kill -9 while an old database is brought up to date, alone and beside a second command.

Shows that an upgrade that dies at any moment is finished by the next command, and that commands which start at
the same time upgrade once: each says what an undisturbed one says, and the file passes SQLite's own check.

    python benchmarks/upgrade_kills.py [--n 20] [--seed 1] [--from 0001 0007 0012]

Exit code 0 only when nothing is wrong.
"""

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "store" / "golden"
COMMAND = (str(Path(sys.executable).with_name("bowerbird")), "sessions", "--all")


class Place:
    """A home whose database is of an earlier version."""

    def __init__(self, home: Path, version: str) -> None:
        self._data = home / ".bowerbird" / "data"
        self._data.mkdir(parents=True, mode=0o700)
        self._environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        with closing(sqlite3.connect(self._data / "agent.db")) as database:
            database.executescript((GOLDEN / f"{version}.sql").read_text())

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            COMMAND, cwd=self._data, env=self._environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def said(self) -> str:
        with self.start() as process:
            return process.communicate()[0]

    def is_whole(self) -> bool:
        with closing(sqlite3.connect(self._data / "agent.db")) as database:
            return database.execute("pragma integrity_check").fetchone() == ("ok",)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=20, help="kills of each version")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", nargs="+", default=["0001", "0007", "0012"], dest="versions")
    options = parser.parse_args()
    chance, wrong = random.Random(options.seed), 0
    for version in options.versions:
        with tempfile.TemporaryDirectory() as directory:
            begun = time.perf_counter()
            expected = Place(Path(directory) / "calm", version).said()
            whole_s = time.perf_counter() - begun
            killed = 0
            for number in range(options.n):
                place = Place(Path(directory) / str(number), version)
                killed += _kill(place, chance.uniform(0.1, whole_s), expected if number % 2 else None)
                if (said := place.said()) != expected or not place.is_whole():
                    wrong += 1
                    print(f"{version}, round {number}: {said.strip()[-300:]}")
        print(f"from {version}: {killed} of {options.n} killed; wrong so far: {wrong}", flush=True)
    return 1 if wrong else 0


def _kill(place: Place, after_s: float, expected: str | None) -> bool:
    """Kill one command after a while; with `expected`, a second one runs beside it and must say that."""
    first = place.start()
    second = place.start() if expected is not None else None
    try:
        first.wait(after_s)
    except subprocess.TimeoutExpired:
        first.kill()
    first.communicate()
    if second is not None and (said := second.communicate()[0]) != expected:
        raise SystemExit(f"the command beside it said: {said}")
    return first.returncode < 0


if __name__ == "__main__":
    sys.exit(main())
