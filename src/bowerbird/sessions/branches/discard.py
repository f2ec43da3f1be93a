"""Throwing a session's unlanded changes away (SV-28, SV-53, UI-45).

Here: the order of branch and row. Not here: discarding single paths (`Branch.revert`), deleting the
session itself (`forks.py`).
"""

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError, TurnRunning
from bowerbird.sessions.branches.branches import Branches
from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.rows.sessions import get_session, lock_session, update_session
from bowerbird.store.rows.turns import turns_of
from bowerbird.store.store import Store


async def discard_changes(store: Store, branches: Branches, thread_id: str) -> str:
    """Move a session's branch to the trash and give it a fresh one; return the old branch's id.

    Raises:
        TurnRunning: a turn works on the branch. BranchBusy: another process writes it.
        UnknownSession: there is no such session. InvalidWorkspace: it has no branch.
    """
    row = await store.read(lambda c: get_session(c, thread_id))
    old = await branches.of(row)
    fresh = await branches.create(row.workspace, name=None, policy=old.policy, hide=old.hide)

    def swap(connection: Connection) -> None:
        # In one transaction with the look: a turn that begins afterwards works on the fresh branch.
        lock_session(connection, thread_id)
        open_turns = turns_of(connection, thread_id, ("queued", "running"))
        if any(turn.state == "queued" for turn in open_turns) or (
            open_turns and not lease_is_free(connection, thread_id)
        ):
            raise TurnRunning("a turn works, or is about to work, on these changes; cancel it first")
        update_session(connection, thread_id, branch_id=fresh.id, changed_files=0)

    try:
        await store.write(swap)
    except BowerbirdError:
        await branches.discard(msgspec.structs.replace(row, branch_id=fresh.id))
        raise
    await branches.discard(row)
    return old.id
