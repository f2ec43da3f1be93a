"""What was thrown away and can still be had back: deleted sessions, discarded changes (D-22).

Here: listing it, bringing one thing back, emptying it. Not here: throwing away (`forks.py`,
`branches/discard.py`), what goes by itself after its days (`retention.py`).
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.errors import BowerbirdError, NotFound, TurnRunning, WorkspaceError
from bowerbird.core.threads import in_thread
from bowerbird.core.timestamps import from_iso, to_iso
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.journal.audit_log import AuditLog
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.upkeep.forgetting import forget, free_blobs
from bowerbird.store.rows.retention import branches_of_sessions, forgettable_sessions
from bowerbird.store.rows.sessions import SessionRow, find_session, get_session, lock_session, update_session
from bowerbird.store.rows.turns import OPEN, turns_of
from bowerbird.store.sql.tables import sessions, snapshots

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

_PEOPLE = ("chat", "web", "cli", "scheduler")  # subagents and teammates go with the session above them


class Trashed(msgspec.Struct, frozen=True):
    """One thing in the trash.

    Attributes:
        id: of the session, or of the branch that holds the changes.
        session: the session it belongs to. title, workspace: that session's.
        at: when it was thrown away. until: when it goes for good, None = never by itself.
    """

    id: str
    kind: Literal["session", "changes"]
    session: str
    title: str
    workspace: str | None
    at: str
    until: str | None


class Emptied(msgspec.Struct, frozen=True):
    """How much went for good."""

    sessions: int
    branches: int


class Trash(msgspec.Struct, frozen=True):
    """The trash of one data directory.

    Args:
        service: whose sessions. branches: whose branches; those of the service.

    Example:
        for entry in await Trash(service, branches).entries():
            print(entry.kind, entry.title, entry.until)
    """

    service: SessionService
    branches: Branches

    async def entries(self) -> list[Trashed]:
        """Return what can be had back, the newest first."""
        days = self.service.settings.deleted_days
        discarded = await self.branches.trashed()
        deleted, owners = await self.service.store.read(lambda c: _rows(c, list(discarded)))
        found = [_trashed(row, row.thread_id, "session", str(row.deleted_at), days) for row in deleted]
        found += [_trashed(row, id_, "changes", discarded[id_], days) for id_, row in owners.items()]
        return sorted(found, key=lambda entry: entry.at, reverse=True)

    async def restore(self, id_: str) -> str:
        """Bring a session or discarded changes back; returns the session's id.

        Args:
            id_: as `entries` gives it, or the beginning of one that only one thing has.

        Raises:
            NotFound: it is not in the trash.
            TurnRunning: a turn of the session works. WorkspaceError: it has other changes by now.
        """
        found = [entry for entry in await self.entries() if entry.id.startswith(id_)]
        if len(found) != 1:
            what = "matches several things in" if found else "is not in"
            raise NotFound(f"{id_} {what} the trash; `bowerbird trash list` shows what is there")
        entry = found[0]
        if entry.kind == "session":
            await self.service.restore(entry.id)
        else:
            await self._put_changes_back(entry)
        return entry.session

    async def empty(self) -> Emptied:
        """Remove everything in it for good, but what a fork stands on; returns how much that was."""
        store, audit, gone = self.service.store, AuditLog(self.service.store.data_dir / "sessions"), 0
        now = datetime.now(UTC) + timedelta(seconds=1)
        while threads := await store.read(lambda c: forgettable_sessions(c, to_iso(now))):
            await forget(store, audit, threads)
            gone += len(threads)
        await free_blobs(store)
        wanted = set(await store.read(branches_of_sessions))
        return Emptied(gone, await self.branches.empty_trash(0.0, wanted, now.timestamp()))

    async def _put_changes_back(self, entry: Trashed) -> None:
        store = self.service.store
        row = await store.read(lambda c: get_session(c, entry.session))
        if row.branch_id is not None and await _is_changed(await self.branches.of(row)):
            raise WorkspaceError(
                f"session {row.thread_id} has other changes by now; land or discard those first"
            )
        old = msgspec.structs.replace(row, branch_id=entry.id)
        await self.branches.restore(old)
        changed = await in_thread((await self.branches.of(old)).count)

        def swap(connection: Connection) -> None:
            present = lock_session(connection, row.thread_id)
            if present.branch_id != row.branch_id or turns_of(connection, row.thread_id, OPEN):
                raise TurnRunning(f"a turn of session {row.thread_id} works or waits; cancel it first")
            update_session(connection, row.thread_id, branch_id=entry.id, changed_files=changed)

        try:
            await store.write(swap)
        except BowerbirdError:
            await self.branches.discard(old)
            raise
        await self.branches.discard(row)


async def _is_changed(branch: "Branch") -> bool:
    return bool((await in_thread(branch.changes)).paths)


def _trashed(row: SessionRow, id_: str, kind: Literal["session", "changes"], at: str, days: float) -> Trashed:
    until = to_iso(from_iso(at) + timedelta(days=days)) if days else None
    return Trashed(id_, kind, row.thread_id, row.title or "", row.workspace, at, until)


def _rows(connection: Connection, branches: list[str]) -> tuple[list[SessionRow], dict[str, SessionRow]]:
    """The deleted sessions, and the living session of each branch that is no session's any more."""
    gone = select(sessions.c.thread_id).where(
        sessions.c.deleted_at.is_not(None), sessions.c.kind.in_(_PEOPLE)
    )
    deleted = [find_session(connection, thread, deleted=True) for thread in connection.scalars(gone)]
    mine = set(branches_of_sessions(connection))
    owners: dict[str, SessionRow] = {}
    for branch in branches:
        if branch not in mine:
            owner = _owner(connection, branch)
            if owner is not None:
                owners[branch] = owner
    return [row for row in deleted if row is not None], owners


def _owner(connection: Connection, branch: str) -> SessionRow | None:
    thread = connection.scalar(select(snapshots.c.thread_id).where(snapshots.c.branch_id == branch).limit(1))
    return find_session(connection, str(thread)) if thread is not None else None
