"""How many files this process may still open, and what to say when it may open no more (reliability 12).

Here: counting, recognising such an error, words for people. Not here: closing what is idle
(`sessions/branches/branches.py`), how many connections may stand at the door (`server/common/doorstep.py`).
"""

import errno
import os
import resource

NUMBERS = frozenset({errno.EMFILE, errno.ENFILE})
"""What the system says when a process, or the whole machine, may open no more files."""
ENOUGH = 1024  # what every system gives by default; with less a server is short of files soon
LOW = (
    "this process may have {most} files open, so few conversations can work at the same time: "
    "ulimit -n 4096 before the start, or LimitNOFILE= in a systemd unit, allows more"
)
_CANNOT_OPEN = 14  # SQLITE_CANTOPEN: SQLite says no more than that
_MOST_SPARE = 128
_LEAST_SPARE = 32  # one turn with a command, a search and a model call needs about twenty


def limit() -> int | None:
    """Return how many files this process may have open, None = as many as it likes."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def is_low() -> bool:
    """Whether fewer are free than a turn that begins now may need; asks the system, costs microseconds."""
    most = limit()
    if most is None:
        return False
    return most - _open_now() < min(_MOST_SPARE, max(_LEAST_SPARE, most // 8))


def ran_out(error: BaseException | None) -> OSError | None:
    """Return what shows that `error` came from a lack of descriptors, or None."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, OSError) and error.errno in NUMBERS:
            return error
        if (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF == _CANNOT_OPEN and is_low():
            return OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def words(error: OSError) -> str:
    """Return what happened and what helps, for people and models.

    Example:
        >>> words(OSError(errno.ENFILE, "")).partition(";")[0]
        'this machine has as many files open as it may (fs.file-max)'
    """
    again = "then try again"
    if error.errno == errno.ENFILE:
        return f"this machine has as many files open as it may (fs.file-max); close something, {again}"
    return (
        f"Bowerbird has as many files open as it may ({limit()}); wait until other conversations have ended, "
        f"or raise the limit (ulimit -n 4096 before the start, LimitNOFILE= in a systemd unit), {again}"
    )


def _open_now() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError as error:
        if error.errno in NUMBERS:
            return limit() or 0  # not even this could be opened
        return 0  # a system without /proc: nothing is known
