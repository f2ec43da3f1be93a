"""Whether a file is still what this agent has read (TO-22).

Here: versions by hash, and the two answers: a note for an edit, one refusal for a write.
Not here: the file tools.
"""

import posixpath
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import Stale, WorkspaceError
from bowerbird.tools.context import ToolContext

if TYPE_CHECKING:
    from bowerbird.workspace import Branch


def key(branch: "Branch", path: str) -> str:
    """Return `path` in one form: absolute in the branch, without the workspace's own path."""
    root = str(branch.root) if branch.root is not None else None
    if root and (path == root or path.startswith(root.rstrip("/") + "/")):
        path = path[len(root.rstrip("/")) :]
    return posixpath.normpath("/" + path.lstrip("/"))


async def version(branch: "Branch", path: str) -> str | None:
    """Return the hash of the file, None when there is none (or it is too large to have one)."""
    try:
        record: dict[str, Any] = await branch.read_file(path, 1, 1)
    except WorkspaceError:
        return None
    return record.get("hash")


async def check_write(context: ToolContext, path: str) -> str | None:
    """Return the present version for `if_hash`, None when there is none.

    Raises:
        Stale: this agent has not seen what stands there; told once of each version.
    """
    name = key(context.files, path)
    now = await version(context.files, path)
    if now is not None and context.reads.refuse_once(name, now):
        if context.reads.seen(name) is None:
            raise Stale(f"{path} exists, and you have not read what is in it; read it, then write", name)
        raise Stale(f"{path} was changed since you read it; read it again, then write", name)
    return now


def edited(context: ToolContext, path: str, was: str, now: str) -> bool:
    """Remember what this agent made of `was`; whether someone else changed the file since it was seen.

    Who had not seen what it edited has not seen all of what is there now.
    """
    seen = context.reads.seen(key(context.files, path))
    if seen == was:
        saw(context, path, now)
    return seen not in (None, was)


def saw(context: ToolContext, path: str, file_hash: str | None) -> None:
    """Remember that this agent has seen `path` as `file_hash`."""
    context.reads.saw(key(context.files, path), file_hash)


def gone(context: ToolContext, path: str) -> None:
    """Forget `path`: it was deleted or moved by this agent."""
    context.reads.forget(key(context.files, path))
