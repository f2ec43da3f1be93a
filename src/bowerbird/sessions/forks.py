"""Whole sessions: fork, delete, restore (SE-36, SE-49).

Here: the order of branch and rows, so that a crash leaves the whole operation or none. Not
here: which turn or session a person meant (`service.py`).
"""

import logging
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import (
    BranchBusy,
    InvalidWorkspace,
    NotFound,
    StorageFull,
    TurnRunning,
    UnknownSession,
    UnknownTurn,
    WorkspaceError,
)
from bowerbird.core.ids import new_thread_id
from bowerbird.core.threads import in_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.turn.driver_context import DriverContext
from bowerbird.store.journal.reading import last_seq_of_turn
from bowerbird.store.rows.leases import lease_is_free
from bowerbird.store.rows.sessions import (
    SessionRow,
    deleting_sessions,
    find_session,
    get_session,
    insert_session,
    lock_session,
    update_session,
)
from bowerbird.store.rows.turns import (
    ENDED,
    OPEN,
    SnapshotRow,
    TurnRow,
    find_snapshot,
    inputs_of,
    turns_of,
    update_inputs,
    update_turn,
)

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

NOT_INHERITED = ("enable_approval",)
DELETING = "deleting"  # tombstoned, its branch not yet in the trash

_log = logging.getLogger(__name__)


async def fork_session(
    context: DriverContext, thread_id: str, turn_id: str | None, title: str | None
) -> SessionRow:
    """Make a session that goes on from a turn's end, on a branch of its own.

    Records are referenced, files shared: the cost does not grow with either.

    Raises:
        TurnRunning: the turn has not ended. UnknownSession: no such session or turn.
    """
    parent, turn, seq, row = await context.store.read(lambda c: _fork_point(c, thread_id, turn_id))
    child_id = new_thread_id()
    branch_id: str | None = None
    changed = 0
    if parent.branch_id is not None:
        # First the branch: without its session it is nothing but an empty directory in the store.
        snapshot, of_branch = None if turn is None else turn.snapshot_id, row.branch_id if row else None
        if turn_id is None and of_branch != parent.branch_id:
            # The last turn's files were discarded since: by default a fork goes on from what is there now.
            snapshot, of_branch = None, None
        name = f"fork of {thread_id}"
        branch = await context.branches.fork(parent, snapshot, name, of_branch, carry=True)
        branch_id, changed = branch.id, await in_thread(branch.count)
    now = now_iso()
    child = msgspec.structs.replace(
        parent,
        thread_id=child_id,
        kind="cli" if parent.kind == "cli" else "web",
        channel=None,
        chat_id=None,
        counter=0,
        title=title or parent.title,
        flags={key: value for key, value in parent.flags.items() if key not in NOT_INHERITED},
        auto_approve=False,
        branch_id=branch_id,
        status="idle",
        last_seq=seq,
        parent_thread_id=thread_id,
        parent_seq=seq,
        created_at=now,
        updated_at=now,
        bytes=0,
        changed_files=changed,
        messages=parent.messages if turn is None else 2 * turn.n,
    )
    await context.store.write(lambda c: insert_session(c, child))
    return child


def _fork_point(
    connection: Connection, thread_id: str, turn_id: str | None
) -> tuple[SessionRow, TurnRow | None, int, SnapshotRow | None]:
    session = get_session(connection, thread_id)
    turns = turns_of(connection, thread_id)
    if turn_id is None:
        chosen = next((turn for turn in reversed(turns) if turn.state in ENDED), None)
        if chosen is None and any(turn.state != "queued" for turn in turns):
            raise TurnRunning(f"no turn of session {thread_id} has ended yet")
    else:
        chosen = next((turn for turn in turns if turn.turn_id == turn_id), None)
        if chosen is None:
            raise UnknownTurn(f"session {thread_id} has no turn {turn_id}")
        if not chosen.is_ended:
            raise TurnRunning(f"turn {turn_id} has not ended; wait for it or name an earlier one")
    if chosen is None:
        return session, None, session.last_seq, None
    row = find_snapshot(connection, chosen.turn_id)
    if row is None:  # ended without a branch: the journal alone says where
        return session, chosen, last_seq_of_turn(connection, thread_id, chosen.turn_id), None
    return session, chosen, row.seq, row


async def branch_of(context: DriverContext, session: SessionRow) -> "Branch":
    """Return a session's open branch; an imported session without one gets its own now."""
    if session.branch_id is not None:
        return await context.branches.of(session)
    made = await context.branches.create(session.workspace, name=None, policy="review", hide=())

    def note(connection: Connection) -> SessionRow:
        present = lock_session(connection, session.thread_id)
        if present.branch_id is None:
            update_session(connection, session.thread_id, branch_id=made.id, updated_at=present.updated_at)
        return get_session(connection, session.thread_id)

    return await context.branches.of(await context.store.write(note))


async def delete_session(context: DriverContext, thread_id: str) -> bool:
    """Tombstone a session and put its branch into the trash; both can be restored for a while.

    Returns:
        False when a driver has the session: nothing is deleted, but what waited behind its turn is
        cancelled. The caller stops that turn and asks again.
    """

    def bury(connection: Connection) -> SessionRow | None:
        # In one transaction with the look: a turn that would begin afterwards finds no session.
        session = lock_session(connection, thread_id)
        is_free = lease_is_free(connection, thread_id)
        for turn in turns_of(connection, thread_id, OPEN):
            if is_free or turn.started_at is None:
                update_turn(
                    connection, turn.turn_id, state="cancelled", stop_reason="cancelled", ended_at=now_iso()
                )
                left = inputs_of(connection, turn_id=turn.turn_id, states=("queued", "taken"))
                update_inputs(connection, [row.id for row in left], state="cancelled")
        if not is_free:
            return None
        left = inputs_of(connection, thread_id=thread_id, states=("queued", "taken"))
        update_inputs(connection, [row.id for row in left], state="cancelled")
        update_session(connection, thread_id, deleted_at=now_iso(), status=DELETING)
        return session

    try:
        buried = await context.store.write(bury)
    except StorageFull:
        context.store.space.free_reserve()  # set aside for this, too: else a full disk stays full
        buried = await context.store.write(bury)
    if buried is None:
        return False
    try:
        await _put_away(context, buried)
    except BranchBusy as error:  # deleted all the same; the branch goes when its process lets it go
        _log.warning("branch %s of deleted session %s: %s", buried.branch_id, thread_id, error)
    return True


async def finish_deletions(context: DriverContext) -> int:
    """Put away the branches of sessions whose deletion was cut short; returns how many."""
    rows = await context.store.read(deleting_sessions)
    done = 0
    for session in rows:
        try:
            await _put_away(context, session)
        except WorkspaceError as error:  # in use elsewhere, or gone: the next start looks again
            _log.warning("branch %s of deleted session %s: %s", session.branch_id, session.thread_id, error)
        else:
            done += 1
    return done


async def _put_away(context: DriverContext, session: SessionRow) -> None:
    try:
        await context.branches.discard(session)
    except NotFound:
        _log.info("branch %s was in the trash already", session.branch_id)

    def note(connection: Connection) -> None:
        present = find_session(connection, session.thread_id, deleted=True)
        if present is not None and present.status == DELETING:
            update_session(connection, session.thread_id, status="deleted", updated_at=present.updated_at)

    await context.store.write(note)


async def restore_session(context: DriverContext, thread_id: str) -> SessionRow:
    """Bring a deleted session back, its branch included; raises UnknownSession when it is gone."""

    def dig_out(connection: Connection) -> SessionRow:
        found = find_session(connection, thread_id, deleted=True)
        if found is None:
            raise UnknownSession(f"no session {thread_id}, not among the deleted ones either")
        values: dict[str, Any] = {"deleted_at": None, "status": "idle"}
        update_session(connection, thread_id, **values)
        return msgspec.structs.replace(found, **values)

    def bury_again(connection: Connection) -> None:
        update_session(connection, thread_id, deleted_at=now_iso(), status="deleted")

    session = await context.store.write(dig_out)
    try:
        await context.branches.restore(session)
    except InvalidWorkspace:  # its directory is gone: nothing could be done with it
        await context.store.write(bury_again)
        raise
    return session
