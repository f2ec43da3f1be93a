"""A process that searches a text by patterns, each within its time.

Started by `fields`; standard library only. A job is one JSON object on standard input; answers are lines of
JSON, in the order of the patterns. Python's search looks for signals while it runs, in a process's main
thread, which is why it can be ended here. Not here: who asks.
"""

import json
import re
import signal
import sys


class _TooLong(Exception):
    """The time for one search is over."""


def _ring(number: int, frame: object) -> None:
    raise _TooLong


def _found(pattern: str, text: str, seconds: float) -> str | None:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        match = re.search(pattern, text)
    except (_TooLong, RecursionError, MemoryError):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if match is None:
        return None
    said: str | None = match.group(1 if match.re.groups else 0)
    return said


def main() -> None:
    """Answer one job."""
    signal.signal(signal.SIGALRM, _ring)
    job = json.load(sys.stdin.buffer)
    for pattern in job["patterns"]:
        sys.stdout.write(json.dumps(_found(pattern, job["text"], job["seconds"])) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
