"""The lock between processes that write one branch (WS-7)."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bowerbird.workspace.registry.lock import WriterLock
from bowerbird.workspace.tree.open_layer import OpenLayer

_TAKE = "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def _another_process_gets(path: Path) -> bool:
    done = subprocess.run([sys.executable, "-c", _TAKE, str(path)], check=False, capture_output=True)
    return done.returncode == 0


def test_threads_that_take_it_at_once_give_it_back_at_once(tmp_path):
    """WS-7: tools of one step write in parallel; the closed branch is free for others."""
    path = tmp_path / "lock"
    for _ in range(200):
        lock, start = WriterLock(path), threading.Barrier(4)

        def take(lock: WriterLock = lock, start: threading.Barrier = start) -> None:
            start.wait()
            with lock.hold():
                pass

        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(take) for _ in range(4)]:
                future.result()
    assert _another_process_gets(path)


def test_the_lock_is_held_while_something_writes_and_no_longer(tmp_path):
    """D-4, reliability 6: between two changes any process may write."""
    path = tmp_path / "lock"
    first, second = WriterLock(path), WriterLock(path)
    for lock in (first, second):
        with lock.hold():
            assert not _another_process_gets(path)
        assert _another_process_gets(path)
    turn = first.pin("drives a turn on it")
    with second.hold():  # handles of one process never exclude each other
        pass
    assert not _another_process_gets(path)
    turn.release()
    turn.release()
    assert _another_process_gets(path)


def test_a_layer_that_was_closed_never_touches_what_got_its_number(tmp_path):
    """WS-12: a stale handle fails; the system gives its number to the next file that is opened."""
    layer = OpenLayer(tmp_path / "open", tmp_path, 1, None)
    number = layer.fd
    layer.close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    handle = os.open(elsewhere, os.O_RDONLY | os.O_DIRECTORY)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            layer.is_empty()
        with pytest.raises(OSError, match="Bad file descriptor"):
            layer.find("/x")
    finally:
        os.close(number)
