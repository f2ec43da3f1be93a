"""The order of the files, those that take longest first, and when a test counts as hung.

A worker takes whole files; a long one that is taken last would keep the others waiting for it. Wants
`--no-loadscope-reorder`, which leaves the order of files as it is here.
"""

import os
import signal
from pathlib import Path

import hypothesis
import pytest
from support.patience import patience
from support.progress import Progress

# For hangs only: a machine beside other work is several times slower, and more where it says so.
os.environ.setdefault("PYTEST_TIMEOUT", str(patience(60)))
# A shell's background jobs begin with Ctrl+C ignored, and every command of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long one example takes says how busy the machine is.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

LONGEST = (
    "test_serve_kills.py", "test_kill_drill.py", "test_serve_takeover.py", "test_quality.py", "test_developer_story.py",
    "test_teams_killed.py", "test_further_pages.py", "test_abuse_kernel.py", "test_unprivileged.py", "test_chat.py",
    "test_teams.py", "test_teams_work.py", "test_full_disk.py", "test_stopping.py", "test_crashes.py",
)  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Have the process that reports say more; the workers of xdist report to it."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files before all others, which keep their order."""
    place = {name: index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(Path(item.path).name, len(place)))
