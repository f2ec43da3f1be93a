"""The lock between processes that write one branch (WS-7)."""

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bowerbird.workspace import Workspace
from bowerbird.workspace.registry.lock import WriterLock

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


def test_closing_takes_nothing_from_who_is_reading(tmp_path):
    """WS-12: else the system gives its number to the next file, and the reader, or a writer, goes on in that."""
    (tmp_path / "p").mkdir()
    workspace = Workspace(tmp_path / "p", data_dir=tmp_path / "data")
    branch = workspace.branch()
    (tmp_path / "data/branches" / branch.id / "open/new.txt").write_text("new")
    expected, done = branch.changes(), threading.Event()

    def read() -> int:
        reads = 0
        while not done.is_set():
            assert branch.changes() == expected
            reads += 1
        return reads

    with ThreadPoolExecutor(2) as threads:
        readers = [threads.submit(read) for _ in range(2)]
        for _ in range(100):
            workspace.close()
        done.set()
        assert all(reader.result() for reader in readers)
    workspace.close()
    gc.collect()
    open_now = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [path for path in open_now if path.startswith(str(tmp_path))]


async def test_a_plan_beside_a_snapshot_finds_every_file(tmp_path):
    """A turn that ends seals its layer while a review reads it; the file was said not to exist."""
    (tmp_path / "p").mkdir()
    with Workspace(tmp_path / "p", data_dir=tmp_path / "data") as workspace:
        branch, done = workspace.branch(), threading.Event()

        def plan() -> int:
            plans = 0
            while not done.is_set():
                branch.plan_landing()
                branch.diff()
                plans += 1
            return plans

        with ThreadPoolExecutor(2) as threads:
            reviews = [threads.submit(plan) for _ in range(2)]
            try:
                for n in range(60):
                    await branch.write_file(f"f{n % 5}.txt", f"{n}\n" * 50)
                    branch.end_turn()
            finally:
                done.set()
            assert all(review.result() for review in reviews)
