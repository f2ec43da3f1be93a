"""What the review routes need beyond the review itself: a caller's branch, snapshots and landings.

Here: those. Not here: routes, what is done (`sessions/review.py`).
"""

import contextlib
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import InvalidWorkspace
from bowerbird.server.common.errors import problem
from bowerbird.server.common.ownership import owned_session
from bowerbird.server.conversations.conversations import hidden_owner
from bowerbird.sessions.shown import landing_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.sessions.lookup import SessionRow
    from bowerbird.workspace import Branch, Landing


def require_branch(row: "SessionRow") -> None:
    """Raise a Problem 409 for a conversation without a branch (it was imported without)."""
    if row.branch_id is None:
        raise problem("conflict", "this conversation has no branch")


async def branch_of(context: "ServerContext", row: "SessionRow") -> "Branch":
    """Return a conversation's branch; else as `require_branch`."""
    require_branch(row)
    return await context.branches.of(row)


async def snapshot_of(context: "ServerContext", row: "SessionRow", since: str | None) -> str | None:
    """Return the snapshot that `since` means: its own id, or that of a turn's end.

    Raises:
        Problem: 404 for a turn of another conversation, or one without a snapshot.
    """
    if since is None or not since.startswith("t_"):
        return since
    snapshot = await context.sessions.lookup.snapshot_of(row.thread_id, since)
    if snapshot is None:
        raise problem("not_found", "this conversation has no such turn, or the turn has not ended")
    return snapshot


# ---------------------------------------------------------------- landings


async def landings_of(
    context: "ServerContext", caller: "Caller", conversation: str | None = None
) -> "list[tuple[str, Landing]]":
    """Return the landings that exist for a caller, or those of one conversation, the newest first.

    Each with its directory. Raises a Problem 404 for a conversation that does not exist for the caller.
    """
    row = await owned_session(context, caller, conversation) if conversation is not None else None
    directories = (
        await _directories(context, caller) if row is None else [row.workspace] if row.workspace else []
    )
    found: list[tuple[str, Landing]] = []
    for path in directories:
        with contextlib.suppress(InvalidWorkspace):  # the directory is gone: nothing of it can be undone
            found += [(path, landing) for landing in await context.sessions.review.landings(path)]
    branches = [landing.branch for _, landing in found]
    owners = await context.sessions.lookup.owners_of(branches)
    mine = [
        (path, landing)
        for path, landing in found
        if (landing.branch == row.branch_id if row is not None else _is_of(caller, landing, owners))
    ]
    return sorted(mine, key=lambda row: row[1].at, reverse=True)


def following(found: "Sequence[tuple[str, Landing]]", before: str | None) -> "list[Landing]":
    """Return the landings of a list that follow one of it, all without one; raises a Problem 404."""
    landings = [landing for _, landing in found]
    if before is None:
        return landings
    for number, landing in enumerate(landings, 1):
        if landing.id == before:
            return landings[number:]
    raise problem("not_found", "there is no such landing in `before`; begin the list again without it")


def _is_of(caller: "Caller", landing: "Landing", owners: dict[str, tuple[str, str | None]]) -> bool:
    if caller.role == "admin" or (landing.door == "web" and landing.actor == caller.user_id):
        return True
    _, owner = owners.get(landing.branch, ("", None))
    return caller.owns(owner)


async def _directories(context: "ServerContext", caller: "Caller") -> list[str]:
    settings = context.settings
    used = await context.sessions.lookup.workspaces(hidden_owner(caller))
    named = [settings.workspace, *settings.registered.values(), *used]
    return list(dict.fromkeys(path for path in named if path is not None))


async def landing_by_id(context: "ServerContext", caller: "Caller", landing_id: str) -> "tuple[str, Landing]":
    """Return one of the caller's landings with its directory; a Problem 404 for any other."""
    for directory, landing in await landings_of(context, caller):
        if landing.id == landing_id:
            return directory, landing
    raise problem("not_found", "there is no such landing")


async def running_landings(context: "ServerContext", caller: "Caller") -> list[dict[str, Any]]:
    """Return how far the landings are that run in a caller's conversations now."""
    rows: list[dict[str, Any]] = []
    for thread_id, progress in context.sessions.landings().items():
        session = await context.sessions.find(thread_id)
        if session is not None and caller.owns(session.owner):
            rows.append({"conversation_id": thread_id, **(landing_row(progress) or {})})
    return rows


def shown_landing(landing: "Landing") -> dict[str, Any]:
    """Return a landing's record as clients get it: without where the workspace lies on the server."""
    return {name: value for name, value in landing.record().items() if name != "workspace"}
