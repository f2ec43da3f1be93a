"""Whose a branch or an answered question is: lookups that doors need to check ownership (SV-56).

Here: those reads inside a given transaction. Not here: the check itself (`server/common/ownership.py`).
"""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from bowerbird.store.sql.tables import inbox, sessions

_AT_ONCE = 500


def sessions_of_branches(
    connection: Connection, branch_ids: Sequence[str]
) -> dict[str, tuple[str, str | None]]:
    """Return (thread, owner) by branch; branches without a session are left out."""
    found: dict[str, tuple[str, str | None]] = {}
    for at in range(0, len(branch_ids), _AT_ONCE):
        part = branch_ids[at : at + _AT_ONCE]
        columns = (sessions.c.branch_id, sessions.c.thread_id, sessions.c.owner)
        rows = connection.execute(select(*columns).where(sessions.c.branch_id.in_(part)))
        found |= {branch: (thread, owner) for branch, thread, owner in rows}
    return found


def workspaces_in_use(connection: Connection, owner: str | None) -> list[str]:
    """Return the directories that sessions work on, of one user or (None) of all."""
    statement = select(sessions.c.workspace).where(sessions.c.workspace.is_not(None)).distinct()
    if owner is not None:
        statement = statement.where(sessions.c.owner == owner)
    return sorted(connection.scalars(statement))


def owner_of_answer(connection: Connection, door: str, request_id: str) -> tuple[str, str | None] | None:
    """Return (thread, owner) of the session in which a request was answered, None when none was."""
    row = connection.execute(
        select(sessions.c.thread_id, sessions.c.owner)
        .join(inbox, inbox.c.thread_id == sessions.c.thread_id)
        .where(inbox.c.door == door, inbox.c.dedupe_key == request_id)
    ).first()
    return None if row is None else (row.thread_id, row.owner)


def changed_sessions(connection: Connection, workspace: str, owner: str | None) -> list[str]:
    """Return the living sessions on a directory that may have unlanded files, least recent first.

    A session whose turn runs may have some that are not counted yet.
    """
    statement = select(sessions.c.thread_id).where(
        sessions.c.deleted_at.is_(None),
        sessions.c.workspace == workspace,
        sessions.c.branch_id.is_not(None),
        (sessions.c.changed_files > 0) | sessions.c.status.in_(("running", "waiting", "queued")),
    )
    if owner is not None:
        statement = statement.where(sessions.c.owner == owner)
    return list(connection.scalars(statement.order_by(sessions.c.updated_at, sessions.c.thread_id)))
