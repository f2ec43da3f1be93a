"""The process above a program that runs outside of the sandbox: it takes all that the program started along.

Run as a program itself, with the standard library only (PT-24, AS-53). Here: starting the program, reaping,
killing the whole tree when the program has ended or Bowerbird is gone, even after kill -9. Not here: what is
said over the program's pipes; the keeper holds none of them.

Usage: keeper.py LIFE_FD PROGRAM NAME [ARGUMENT…]; NAME is what the program is called as; the end of LIFE_FD
ends everything.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_KILL_S = 3.0
_AGAIN_S = 0.01
_NOT_FOUND, _CANNOT_RUN = 127, 126
_FOR_THE_PROGRAM = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1)


def main(arguments: "list[str]") -> int:
    """Run the program to its end; return its exit code, 128 + signal when it was killed."""
    life, program, command = int(arguments[0]), arguments[1], arguments[2:]
    os.set_inheritable(life, False)
    parent = os.getppid()
    # Orphans of the tree become ours, so that none escapes by a double fork.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # The pipe says when Bowerbird is gone; the signal says it even if something holds the pipe open.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGUSR1)
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in _FOR_THE_PROGRAM:
        signal.signal(number, _only_wake)  # those sent to the group are the program's to obey
    try:
        child = os.posix_spawnp(program, command, os.environ, setsigdef=[*_FOR_THE_PROGRAM, signal.SIGPIPE])
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        os.write(2, f"cannot run {command[0]}: {reason}\n".encode(errors="replace"))
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _CANNOT_RUN
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):  # else the program's pipes would not end with it
        os.dup2(nowhere, descriptor)
    code: int | None = None
    while code is None and os.getppid() == parent:
        readable, _, _ = select.select([life, woken], [], [])
        if life in readable:
            break
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 4096)
        code = _reap(child)
    _kill_tree()
    return code if code is not None else 128 + signal.SIGKILL


def _only_wake(_number: int, _frame: object) -> None:
    return


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _reap(child: int) -> "int | None":
    """Reap what has ended; return the program's exit code once it is among them."""
    code: int | None = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                ended = os.waitstatus_to_exitcode(status)
                code = ended if ended >= 0 else 128 - ended
    return code


def _kill_tree() -> None:
    """Kill all descendants; again, until a look finds none: one may fork while another is killed."""
    until = time.monotonic() + _KILL_S
    while time.monotonic() < until:
        alive = _descendants()
        if not alive:
            return
        for pid in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap(0)
        time.sleep(_AGAIN_S)


def _descendants() -> "list[int]":
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123 - pathlib costs 10 ms a start
                fields = stat.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if fields[0] != b"Z" or int(fields[1]) == os.getpid():
            children.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
