"""Why something does not land, as errors that a person can read.

Here: those sentences: of the file system, of each refused path. Not here: what is tried before the first
change (`obstacles.py`), rolling back.
"""

import contextlib
import errno
import os
from collections.abc import Generator, Sequence

from bowerbird.core.errors import LandingRefused, LimitExceeded, ReadOnly, WorkspaceError
from bowerbird.workspace.marks.table import FLAGS
from bowerbird.workspace.tree.paths import on_one_line


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


def refusal(rows: Sequence[dict[str, str]]) -> LandingRefused:
    """Return the error that names every refused path."""
    few = "; ".join(f"{on_one_line(row['path'])}: {meaning(row['reason'])}" for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return LandingRefused(f"nothing landed: {few}{more}", rows)


MOVED = "moved"
_MEANINGS = {
    MOVED: "it is no longer what you were shown; look at it again",
    "both_modified": "you changed the same lines",
    "both_created": "you created a file of that name, too",
    "delete_modify": "you deleted it",
    "modify_delete": "you changed what the branch deletes",
    "binary": "you changed it, too, and it is not text",
    "uncertain_base": "it changed while a command ran, so its earlier content is not known",
    "mode": "you changed its permissions, too",
    "type": "it is another kind of file by now",
    "symlink": "you changed where it points, too",
    "dir_gained": "it stays: it holds files that the branch does not show, hidden ones such as .env, "
    "or ones added since",
    "holds_ignored": "it stays with the ignored files in it",
    "unreadable": "you may not read it, so its content is not known and could not be brought back; "
    "change its permissions, or delete it yourself",
    "holds_unreadable": "it stays: it holds a file that you may not read",
    "git-moved": "somebody used this repository since, so it stays",
    "git-data": "git's own data never lands as files; commits land with --commits",
    "special": "it is a device, socket or pipe, which does not land",
}


def meaning(reason: str) -> str:
    """Return a reason as people read it.

    Example:
        >>> meaning("type"), meaning("ignored")
        ('type (it is another kind of file by now)', 'ignored')
        >>> meaning("flagged: ci")
        'flagged: ci (runs on the build server, with its secrets)'
    """
    said = _MEANINGS.get(reason)
    flag = FLAGS.get(reason.removeprefix("flagged: ").partition(",")[0])
    if said is None and flag is not None and reason.startswith("flagged: "):
        said = flag.reason[:1].lower() + flag.reason[1:].rstrip(".")
    return reason if said is None else f"{reason} ({said})"
