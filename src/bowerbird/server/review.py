"""What the review routes need beyond a branch's own calls: snapshots, landings of a caller.

Here: those. Not here: routes, diffs and landings themselves (`workspace`), comments (`sessions/comments.py`).
"""

from typing import TYPE_CHECKING

from bowerbird.core.errors import InvalidWorkspace
from bowerbird.core.events import Notice
from bowerbird.core.threads import to_thread
from bowerbird.server.conversations import hidden_owner
from bowerbird.server.errors import problem
from bowerbird.sessions.live import Published
from bowerbird.store.owners import sessions_of_branches, workspaces_in_use
from bowerbird.store.turns import find_turn

if TYPE_CHECKING:
    from bowerbird.server.context import Caller, ServerContext
    from bowerbird.store.threads import SessionRow
    from bowerbird.workspace import Branch, Landing, Workspace


async def branch_of(context: "ServerContext", row: "SessionRow") -> "Branch":
    """Return a conversation's branch; a Problem 409 when it has none (it was imported without)."""
    if row.branch_id is None:
        raise problem("conflict", "this conversation has no branch")
    return await context.branches.of(row)


async def snapshot_of(context: "ServerContext", row: "SessionRow", since: str | None) -> str | None:
    """Return the snapshot that `since` means: its own id, or that of a turn's end.

    Raises:
        Problem: 404 for a turn of another conversation, or one without a snapshot.
    """
    if since is None or not since.startswith("t_"):
        return since
    turn = await context.store.read(lambda c: find_turn(c, since))
    if turn is None or turn.thread_id != row.thread_id or turn.snapshot_id is None:
        raise problem("not_found", "this conversation has no such turn, or the turn has not ended")
    return turn.snapshot_id


# ---------------------------------------------------------------- landings


async def landings_of(context: "ServerContext", caller: "Caller") -> "list[tuple[Workspace, Landing]]":
    """Return the landings that exist for a caller, in every workspace they use, the newest first."""
    found: list[tuple[Workspace, Landing]] = []
    for workspace in await _workspaces(context, caller):
        found += [(workspace, landing) for landing in await to_thread(workspace.landings)]
    branches = [str(landing.record["branch"]) for _, landing in found]
    owners = await context.store.read(lambda c: sessions_of_branches(c, branches))
    mine = [row for row in found if _is_of(caller, row[1], owners)]
    return sorted(mine, key=lambda row: str(row[1].record["at"]), reverse=True)


def _is_of(caller: "Caller", landing: "Landing", owners: dict[str, tuple[str, str | None]]) -> bool:
    record = landing.record
    if caller.role == "admin" or (record["door"] == "web" and record["actor"] == caller.user_id):
        return True
    _, owner = owners.get(str(record["branch"]), ("", None))
    return caller.owns(owner)


async def _workspaces(context: "ServerContext", caller: "Caller") -> "list[Workspace]":
    settings = context.settings
    used = await context.store.read(lambda c: workspaces_in_use(c, hidden_owner(caller)))
    named = [settings.workspace, *settings.registered.values(), *used]
    opened: list[Workspace] = []
    for path in dict.fromkeys(path for path in named if path is not None):
        try:
            opened.append(await context.branches.workspace(path))
        except InvalidWorkspace:
            continue  # the directory is gone: nothing of it can be undone
    return opened


async def landing_by_id(
    context: "ServerContext", caller: "Caller", landing_id: str
) -> "tuple[Workspace, Landing]":
    """Return one of the caller's landings with its workspace; a Problem 404 for any other."""
    for workspace, landing in await landings_of(context, caller):
        if landing.id == landing_id:
            return workspace, landing
    raise problem("not_found", "there is no such landing")


async def note_landed(context: "ServerContext", branch_id: str, text: str) -> None:
    """Tell the viewers of the conversation whose branch landed, or came back; count its changes anew."""
    found = await context.store.read(lambda c: sessions_of_branches(c, [branch_id]))
    if branch_id in found:
        thread_id = found[branch_id][0]
        await context.sessions.note_changes(thread_id)
        context.sessions.live.publish(Published(thread_id, None, None, Notice("landing", text)))
