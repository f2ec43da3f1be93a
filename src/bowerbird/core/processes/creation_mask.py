"""The umask of this process: which permissions its user gives no new file (GI-17).

Here: reading it, and keeping from everybody what a careless one would give. Not here: who makes files.
"""

import os
import re
from functools import cache
from pathlib import Path

USUAL = 0o022
EVERYBODYS = 0o002
"""What other people might write is never made, even where a container is started with the umask 0."""


def tighten_umask() -> None:
    """Take from everybody the right to write new files of this process; called before it has threads."""
    os.umask(os.umask(USUAL) | EVERYBODYS)


@cache
def creation_mask() -> int:
    """Return the umask that this process has; that of most machines where it cannot be read.

    It is not asked for by `os.umask`, which sets it: another thread's new file would be open to everybody.

    Example:
        >>> creation_mask() & 0o002
        2
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return USUAL
    found = re.search(r"^Umask:\s*([0-7]+)$", status, re.MULTILINE)
    # The owner's bits stay: what even its maker cannot read, nobody can review.
    return USUAL if found is None else int(found[1], 8) & 0o077 | EVERYBODYS


def new_mode(mode: int) -> int:
    """Return the permissions of something new.

    Example:
        >>> new_mode(0o600) == 0o600
        True
    """
    return mode & ~creation_mask()
