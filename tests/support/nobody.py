"""Doing something without rights, in a forked process; for code that is loaded already."""

import os
from collections.abc import Callable, Collection
from pathlib import Path

NOBODY = 65534


def as_nobody(place: Path, work: Callable[[], object], *, not_theirs: Collection[Path] = ()) -> str:
    """Return what `work` raised, or "returned …", when done without rights, in a process of its own.

    Args:
        place: becomes theirs, with all below it but `not_theirs`.
    """
    for path in (place, *place.rglob("*")):
        if path not in not_theirs:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            said = work()
            if said is not None:
                os.write(writing, f"returned {said}".encode())
        except BaseException as error:  # noqa: BLE001 - told to the parent, whatever it is
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return said.read()
