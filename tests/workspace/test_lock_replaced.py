"""A branch's lock taken from a process that is stopped (SE-26, SE-29)."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bowerbird.core.errors import BranchBusy
from bowerbird.workspace.lock import WriterLock, note_of

HOLDER = """
import sys
from pathlib import Path
from bowerbird.core.errors import BranchBusy
from bowerbird.workspace.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]))
for _ in sys.stdin:
    try:
        with lock.hold():
            print("held", flush=True)
    except BranchBusy:
        print("busy", flush=True)
"""


class Holder:
    """Another process that changes the branch when told to."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.pid = self._process.pid

    def change(self) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("now\n")
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self._process.communicate(timeout=20)


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


def test_a_replaced_lock_refuses_its_old_holder_until_it_is_free_again(path: Path, other: Holder) -> None:
    mine = WriterLock(path)
    assert mine.holder() is None
    assert other.change() == "held"
    assert mine.holder() == note_of(other.pid) != ""
    with pytest.raises(BranchBusy), mine.hold():
        pass
    os.kill(other.pid, signal.SIGSTOP)
    mine.replace()
    with mine.hold():
        pass
    os.kill(other.pid, signal.SIGCONT)
    assert other.change() == "busy"
    assert mine.holder() == note_of(os.getpid())
    second = WriterLock(path)  # another handle of this process goes on with the new one
    with second.hold():
        pass
    second.release()
    mine.release()
    assert other.change() == "held"
    assert sorted(p.name for p in path.parent.iterdir()) == ["lock"]


def test_nobody_holds_the_lock_of_a_process_that_died(path: Path, other: Holder) -> None:
    assert other.change() == "held"
    os.kill(other.pid, signal.SIGKILL)
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert WriterLock(path).holder() is None
