"""A branch's lock between processes: who has it, who had it, and taking it from one that is stopped (SE-26, SE-29)."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.patience import HANG_S
from support.servers import serve

from bowerbird.core.errors import BranchBusy
from bowerbird.workspace.registry.lock import WriterLock, note_of

HOLDER = """
import sys
from pathlib import Path
from bowerbird.core.errors import BranchBusy
from bowerbird.workspace.registry.lock import WriterLock, introduced
with introduced("bowerbird serve", "http://127.0.0.1:8000"):
    lock = WriterLock(Path(sys.argv[1]))
    pin = lock.pin("drives a turn on it")
    print("held", flush=True)
    for line in sys.stdin:
        if line == "let go\\n":
            pin.release()
        try:
            with lock.hold():
                print("held", flush=True)
        except BranchBusy:
            print("busy", flush=True)
"""


class Holder:
    """Another process that drives a turn on the branch and changes it when told to."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.pid = self._process.pid
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "held\n"

    def change(self, word: str = "now") -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{word}\n")
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self._process.communicate(timeout=HANG_S)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def other(path: Path) -> Iterator[Holder]:
    holder = Holder(path)
    try:
        yield holder
    finally:
        holder.close()


def test_a_replaced_lock_refuses_its_old_holder_until_its_turn_is_over(path: Path, other: Holder) -> None:
    mine = WriterLock(path)
    assert other.change() == "held"
    holder = mine.holder()
    assert holder is not None and holder.note == note_of(other.pid) != ""
    os.kill(other.pid, signal.SIGSTOP)
    mine.replace()
    with mine.hold():
        assert mine.behind  # whatever it left half done is looked at
    os.kill(other.pid, signal.SIGCONT)
    assert other.change() == "busy"  # although nobody has the lock: its turn was taken over
    assert mine.holder() is None
    assert other.change("let go") == "held"
    assert sorted(p.name for p in path.parent.iterdir()) == ["lock"]


def test_who_is_refused_hears_who_writes_what_it_does_and_what_helps(path: Path, other: Holder) -> None:
    """D-4, server 3: "wait for it" without a name did not help."""
    with pytest.raises(BranchBusy) as refused, WriterLock(path).hold():
        pass
    said = str(refused.value)
    assert f"bowerbird serve (process {other.pid}), which drives a turn on it" in said
    assert "--server http://127.0.0.1:8000" in said


_REFUSED = """
import sys
from pathlib import Path
from bowerbird.workspace.registry.lock import WriterLock
WriterLock(Path(sys.argv[1])).pin("tests it", wait_s=0)
"""


def test_a_process_goes_by_its_servers_name_only_while_it_serves(tmp_path: Path, path: Path) -> None:
    """issue 10 blocker 11: others were sent to the address of a server that had ended in this process."""

    def refused() -> str:
        with WriterLock(path).pin("drives a turn on it"):
            done = subprocess.run(
                [sys.executable, "-c", _REFUSED, str(path)],
                capture_output=True, text=True, timeout=HANG_S, check=False,
            )  # fmt: skip
        assert "BranchBusy" in done.stderr
        return done.stderr

    with serve(tmp_path / "served") as server:
        during = refused()
    after = refused()
    assert "bowerbird serve" in during and f"--server {server.url}" in during
    assert "bowerbird serve" not in after and "fork the branch" in after


def test_a_handle_knows_when_another_one_has_changed_the_branch(path: Path, other: Holder) -> None:
    """D-4: what it remembers is then looked at once more."""
    assert other.change("let go") == "held"
    mine = WriterLock(path)
    for _ in range(2):
        with mine.hold():
            assert mine.behind
        mine.behind = False
        with mine.hold():
            assert not mine.behind
        assert other.change() == "held"


def test_a_change_waits_for_a_change_of_another_process(path: Path, other: Holder) -> None:
    """D-4: two processes that only make a change each are never refused."""
    assert other.change("let go") == "held"
    lock, done = WriterLock(path), threading.Event()

    def change() -> None:
        for _ in range(50):
            with lock.hold():
                time.sleep(0.001)
        done.set()

    thread = threading.Thread(target=change)
    thread.start()
    said: set[str] = set()
    while not done.is_set():
        said.add(other.change())
    thread.join()
    assert said == {"held"}


def test_nobody_holds_the_lock_of_a_process_that_died(path: Path, other: Holder) -> None:
    assert other.change() == "held"
    os.kill(other.pid, signal.SIGKILL)
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    lock = WriterLock(path)
    assert lock.holder() is None
    with lock.hold():
        assert lock.behind
