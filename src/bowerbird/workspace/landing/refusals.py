"""What the file system refuses while something lands, as an error that a person can read.

Here: those sentences. Not here: what is tried before the first change (`obstacles.py`), rolling back.
"""

import contextlib
import errno
import os
from collections.abc import Generator

from bowerbird.core.errors import LimitExceeded, ReadOnly, WorkspaceError


@contextlib.contextmanager
def said_plainly() -> Generator[None]:
    """Raise what the file system refuses as an error that a person can read."""
    try:
        yield
    except OSError as error:
        raise file_refusal(error) from error


def file_refusal(error: OSError) -> WorkspaceError:
    """Return what an error of the file system means for a person."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    what = error.strerror or os.strerror(error.errno or 0)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LimitExceeded(f"the disk is full, nothing landed: {what}", name)
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return ReadOnly(f"the workspace cannot be written, nothing landed: {what} ({name})", name)
    return WorkspaceError(f"nothing landed: {what} ({name})", name)
