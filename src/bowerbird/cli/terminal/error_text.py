"""An error as a person reads it: what happened, to what, and what to do (UI-63, UI-66).

Here: the sentence of an error, and the program's own log lines without their tracebacks. Not here: exit
codes (`exits.py`), when it is shown (`main.py`).
"""

import errno
import logging
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from bowerbird.core.errors import BowerbirdError, ConfigError, StorageFull, UnknownSession

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def sentence(error: BaseException) -> str:
    """Return what is said of an error that ended a command.

    Example:
        >>> sentence(UnknownSession("no session 'x123'"))
        "no session 'x123'; `bowerbird sessions --all` lists them"
    """
    if isinstance(error, OSError) and not isinstance(error, BowerbirdError):
        return _of_system(error)
    text = str(error)
    if isinstance(error, UnknownSession) and not ("fits" in text or "`bowerbird " in text):
        return f"{text}; `bowerbird sessions --all` lists them"
    if isinstance(error, ConfigError) and "bowerbird config" not in text and "\n" in text:
        return f"{text}\n`bowerbird config check` looks again; `bowerbird config schema` says what is allowed"
    if isinstance(error, StorageFull):
        return text + _free_at(text.partition(": ")[0])
    return text


def _of_system(error: OSError) -> str:
    if lack := lack_of_memory(error):
        return lack
    where = f"{error.filename}: " if error.filename else ""
    text = f"{where}{error.strerror or error}"
    if error.errno in _NO_ROOM and error.filename:
        return text + _free_at(str(error.filename)) + "; free some space and try again"
    if error.errno in _NO_ROOM:
        return f"{text}; free some space where the data or temporary files are (`bowerbird disk` shows it)"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) and error.filename:
        return f"{text}; check its permissions, or keep the data elsewhere with --data-dir"
    return text


def lack_of_memory(error: BaseException) -> str:
    """Return what is said where an error means that memory or threads ran out, "" for any other.

    Example:
        >>> lack_of_memory(ValueError("x"))
        ''
    """
    text = str(error)
    is_thread = isinstance(error, RuntimeError) and "start new thread" in text
    is_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    is_import = isinstance(error, ImportError) and ("map segment" in text or "allocate memory" in text)
    if not (is_thread or is_memory or is_import):
        return ""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        from bowerbird.cli.terminal.text import size

        return (
            f"out of memory: programs of this shell may have {size(limit)} of address space (ulimit -v);"
            " lift that with `ulimit -v unlimited`, and try again"
        )
    if is_thread:
        return "no more threads may be started here; allow more processes (ulimit -u, TasksMax, --pids-limit)"
    return "this machine has not enough memory left; end other programs, and try again"


def _free_at(path: str) -> str:
    """Return how much is free where `path` is; "" for what is no path."""
    from bowerbird.cli.terminal.text import size

    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_absolute():
        return ""
    return f" ({size(shutil.disk_usage(place).free)} free at {place})"


class LogLines(logging.Handler):
    """Log records of this command as one line each, above the prompt if there is one.

    A traceback is for who asks for it (BOWERBIRD_DEBUG=1); what failed is said by the command itself.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record to standard error, whatever that is now."""
        from bowerbird.cli.terminal.text import one_line

        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
        with suppress(OSError):  # a full disk below a log, or nobody who reads
            sys.stderr.write(f"{record.levelname.lower()}: {one_line(text, 400)}\n")


@contextmanager
def log_in_lines() -> Generator[None]:
    """Have warnings that nobody handles otherwise shown as lines."""
    before = logging.lastResort
    logging.lastResort = LogLines(logging.WARNING)
    try:
        yield
    finally:
        logging.lastResort = before
