"""What a run that is watched or ended from outside still tells: failures as they come, and what was running."""

import signal
import time
from collections import Counter
from types import FrameType
from typing import Any

import pytest

LINES_OF_A_FAILURE = 30
SLOWEST_FILES = 12


class Progress:
    """Prints what failed at once, and at the end what ran when it came from outside; for the process that reports."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._running: dict[str, float] = {}
        self._failed: list[str] = []
        self._unstable: list[str] = []
        self._seconds: Counter[str] = Counter()
        signal.signal(signal.SIGTERM, self._ended_from_outside)

    def _say(self, text: str) -> None:
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        reporter.ensure_newline()
        reporter.write_line(text, flush=True)

    def _ended_from_outside(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        for name, since in self._running.items():
            self._say(f"still running for {now - since:.0f} s: {name}")
        for name in self._failed:
            self._say(f"failed before: {name}")
        pytest.exit("ended by SIGTERM", returncode=128 + signal.SIGTERM)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._seconds[nodeid.partition("::")[0]] += time.monotonic() - self._running.pop(
            nodeid, time.monotonic()
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        again = report.outcome == "rerun"
        if again or report.failed:
            (self._unstable if again else self._failed).append(report.nodeid)
            lines = report.longreprtext.splitlines()
            word = "UNSTABLE, runs again:" if again else "FAILED"
            self._say(f"{word} {report.when} {report.nodeid}\n" + "\n".join(lines[-LINES_OF_A_FAILURE:]))

    def pytest_terminal_summary(self) -> None:
        slowest = ", ".join(
            f"{name} {seconds:.0f} s" for name, seconds in self._seconds.most_common(SLOWEST_FILES)
        )
        self._say(f"slowest files: {slowest}")
        for name in self._unstable:
            self._say(f"UNSTABLE, failed once: {name}")
