"""Which state of a file a person sees (SV-14, SV-15, SV-17).

Here: the view rule (a named branch, the newest change among the caller's branches, else the workspace),
listing. Not here: routes, uploads (`uploads.py`), looking itself (`workspace`), a file's text
(`sessions/file_text.py`).
"""

import os
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import BowerbirdError, IsDirectory, NotFound
from bowerbird.core.threads import to_thread
from bowerbird.server.common.errors import problem
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import hidden_owner
from bowerbird.server.conversations.review import snapshot_of
from bowerbird.workspace.tree.reserved import is_reserved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.workspace.find.browsing import Browse, FileFacts, OpenFile


MOST_BRANCHES = 200
LANDED = "none"


@dataclass(frozen=True, slots=True)
class Newest:
    """Where the newest change of a path is; `facts` None = it was deleted there."""

    conversation_id: str
    browse: "Browse"
    facts: "FileFacts | None"


def virtual(path: str) -> str:
    """Return a wire path, with a leading slash or without, as a virtual one.

    Raises:
        Problem: 403 outside the workspace, or in one of Bowerbird's own directories; 404 with NUL.

    Example:
        >>> virtual("src/./a.py")
        '/src/a.py'
    """
    if "\0" in path:
        raise problem("not_found", "there is no such file")
    plain = posixpath.normpath(path.lstrip("/") or ".")
    if plain == ".." or plain.startswith("../"):
        raise problem("forbidden", "the path leads outside the workspace")
    whole = "/" if plain == "." else "/" + plain
    if is_reserved(whole):
        raise problem("forbidden", "these are Bowerbird's own records")
    return whole


def virtual_paths(paths: "Sequence[str] | None") -> list[str] | None:
    """Return wire paths as virtual ones, None for None; see `virtual`."""
    return None if paths is None else [virtual(path) for path in paths]


async def list_files(
    context: "ServerContext", caller: "Caller", conversation: str | None, limit: int, at: str | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Return rows of `GET /api/workspace/files`, and whether there are more.

    Args:
        at: a turn or snapshot of `conversation`; ignored without one.
    """
    if conversation is not None and conversation != LANDED:
        browse = await _branch_browse(context, caller, conversation, at)
        rows, more = await to_thread(browse.files, limit)
        return [_row(facts, conversation if facts.changed else None) for facts in rows], more
    base = await _landed(context)
    rows, more = await to_thread(base.files, limit) if base is not None else ([], False)
    if conversation == LANDED:
        return [_row(facts, None) for facts in rows], more
    found: dict[str, dict[str, Any]] = {facts.path: _row(facts, None) for facts in rows}
    for path, newest in (await newest_changes(context, caller)).items():
        if newest.facts is None:
            found.pop(path, None)
        elif path in found or not more:
            found[path] = _row(newest.facts, newest.conversation_id)
    listed = sorted(found.values(), key=lambda row: os.fsencode(row["path"]))
    return listed[:limit], more or len(listed) > limit


async def list_names(
    context: "ServerContext", caller: "Caller", conversation: str | None, limit: int
) -> dict[str, Any]:
    """Return the body of `GET /api/workspace/names`."""
    if conversation is not None:
        browse = await _branch_browse(context, caller, conversation)
    else:
        browse = await _landed(context)
    names, more = await to_thread(browse.names, limit) if browse is not None else ([], False)
    return {"names": names, "truncated": more}


def _row(facts: "FileFacts", conversation: str | None) -> dict[str, Any]:
    path = facts.path.lstrip("/")
    return {
        "name": posixpath.basename(path),
        "path": path,
        "size": facts.size,
        "conversation_id": conversation,
        "state": "landed" if conversation is None else "unlanded",
    }


async def newest_changes(context: "ServerContext", caller: "Caller") -> dict[str, Newest]:
    """Return the newest unlanded change of each path among the caller's branches of the workspace."""
    place = context.settings.workspace
    if place is None:
        return {}
    threads = await context.sessions.lookup.changed(place, hidden_owner(caller))
    found: dict[str, tuple[int, Newest]] = {}
    for thread_id in threads[-MOST_BRANCHES:]:
        try:
            browse = (await context.sessions.branch(thread_id)).browse()
            changes = await to_thread(browse.changes)
        except (BowerbirdError, OSError):
            continue  # deleted or taken over meanwhile: its files are not shown
        for path, facts in changes.items():
            # A deletion has no time of its own: that of its conversation, which is the order of threads.
            at = facts.mtime_ns if facts is not None else -1
            known = found.get(path)
            if known is None or facts is None or at >= known[0]:
                found[path] = (at, Newest(thread_id, browse, facts))
    return {path: newest for path, (_, newest) in found.items()}


async def open_file(
    context: "ServerContext", caller: "Caller", path: str, conversation: str | None, at: str | None = None
) -> "OpenFile":
    """Open a file as the caller sees it; whoever gets it closes it.

    Args:
        at: a turn or snapshot of `conversation`; ignored without one.

    Raises:
        Problem, NotFound, PathEscape …: see `Browse.open`.
    """
    whole = virtual(path)
    try:
        return await _opened(context, caller, whole, conversation, at)
    except IsDirectory as error:
        text = (
            f"{whole[1:] or 'the workspace'} is a directory, not a file; GET /api/workspace/files lists files"
        )
        raise problem(error.code, text, status=404) from error


async def _opened(
    context: "ServerContext", caller: "Caller", whole: str, conversation: str | None, at: str | None
) -> "OpenFile":
    if conversation is not None and conversation != LANDED:
        browse = await _branch_browse(context, caller, conversation, at)
        return await to_thread(browse.open, whole)
    if conversation is None:
        newest = (await newest_changes(context, caller)).get(whole)
        if newest is not None and newest.facts is None:
            raise NotFound("the file does not exist: a conversation deleted it, not landed yet", whole)
        if newest is not None:
            return await to_thread(newest.browse.open, whole)
    base = await _landed(context)
    if base is None:
        raise problem("not_found", "there is no such file")
    return await to_thread(base.open, whole)


async def _branch_browse(
    context: "ServerContext", caller: "Caller", conversation: str, at: str | None = None
) -> "Browse":
    row = await owned_session(context, caller, conversation)
    if row.branch_id is None:
        raise problem("conflict", "this conversation has no branch")
    branch = await context.branches.of(row)
    return await to_thread(branch.browse, await snapshot_of(context, row, at))


async def _landed(context: "ServerContext") -> "Browse | None":
    place = context.settings.workspace
    if place is None:
        return None
    workspace = await context.branches.workspace(place)
    return workspace.browse()
