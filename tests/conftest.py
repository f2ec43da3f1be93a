"""The order of the files, those that take longest first, and when a test counts as hung.

A worker takes whole files; a long one that is taken last would keep the others waiting for it. Wants
`--no-loadscope-reorder`, which leaves the order of files as it is here.
"""

import faulthandler
import gc
import os
import signal
import sys
import threading
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
    "test_serve_kills.py", "test_as_nobody.py", "test_kill_drill.py", "test_review.py", "test_chat.py", "test_walks.py",
    "test_capture.py", "test_settings_page.py", "test_oneshot.py", "test_abuse_exhaustion.py", "test_review_trust.py",
    "test_common_rules.py", "test_further_pages.py", "test_recipes.py", "test_clients.py", "test_user_story.py",
    "test_app_on_the_phone.py", "test_markdown.py", "test_project_work.py", "test_bombs.py", "test_quality.py",
    "test_chat_flags.py", "test_errors.py", "test_keyboard.py", "test_backup.py", "test_pages.py", "test_every_door.py",
    "test_served.py", "test_examples.py", "test_serve_takeover.py", "test_sessions.py", "test_crashes.py",
    "test_teams_killed.py", "test_large_reviews.py", "test_developer_story.py", "test_abuse_processes.py",
)  # fmt: skip


# What collecting makes stays until the end: the collector of garbage has nothing to find in it, then or later.
gc.disable()


def pytest_collection_finish() -> None:
    """All test modules are imported."""
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Have the process that reports say more; the workers of xdist report to it."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config))


def pytest_runtest_logstart(nodeid: str) -> None:
    """End a worker whose test does not end: its limit ends the test, and nothing a teardown that hangs after it.

    xdist names the test and goes on with another worker.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        limit = _limits.get(nodeid, 0.0) or float(os.environ["PYTEST_TIMEOUT"])
        _watch.append(timer := threading.Timer(limit + patience(24), _end_worker))
        timer.daemon = True
        timer.start()


def pytest_runtest_logfinish() -> None:
    """The test has ended."""
    while _watch:
        _watch.pop().cancel()


def _end_worker() -> None:
    # pytest cancels faulthandler's own timer when a test fails, which is when a teardown hangs.
    faulthandler.dump_traceback(file=sys.__stderr__)
    os._exit(1)


_watch: list[threading.Timer] = []
_limits: dict[str, float] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files before all others, which keep their order."""
    for item in items:
        if (marker := item.get_closest_marker("timeout")) is not None and marker.args:
            _limits[item.nodeid] = float(marker.args[0])
    place = {name: index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(Path(item.path).name, len(place)))
