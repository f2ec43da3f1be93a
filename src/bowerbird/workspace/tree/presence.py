"""Whether something is there, told apart from what cannot be seen at this moment.

Here: looks that answer "no" only where the system says that nothing is there. Not here: handles and paths
below a workspace (`tree/handles.py`).

A full table of open files, a failing disk or a missing permission says nothing about existence: taken for
absence, they would make a landing unknown, a layer unneeded, a deletion undone. `os.path` answers "no" to
every error, and so does `Path` from Python 3.14 on; this package asks here.
"""

import os
import stat
from pathlib import Path

from bowerbird.core.errors import InvalidWorkspace
from bowerbird.workspace.tree.handles import ABSENT


def is_absence(error: OSError) -> bool:
    """Whether an error means that nothing stands there."""
    return error.errno in ABSENT


def status_of(path: Path | str, *, follow: bool = True) -> os.stat_result | None:
    """Return what stands at a host path, None when nothing does; other errors are raised."""
    try:
        return os.stat(path, follow_symlinks=follow)  # noqa: PTH116 -- asked of each file of a landing
    except OSError as error:
        if is_absence(error):
            return None
        raise


def exists(path: Path | str, *, follow: bool = True) -> bool:
    """Whether anything stands at a host path; a link to nothing does when it is not followed."""
    return status_of(path, follow=follow) is not None


def is_directory(path: Path | str) -> bool:
    """Whether a directory, or a link to one, stands at a host path."""
    seen = status_of(path)
    return seen is not None and stat.S_ISDIR(seen.st_mode)


def given_directory(path: Path | str) -> Path:
    """Return a directory that somebody named, resolved.

    Raises:
        InvalidWorkspace: it is missing or no directory.
    """
    given = Path(path).expanduser().absolute()
    if not is_directory(given):
        reason = "is not a directory" if exists(given) else "does not exist"
        raise InvalidWorkspace(f"workdir {reason}: {path}")
    return given.resolve()
