"""What doors look up beside sessions themselves: owners, open work, sums, limits, traces (SV-6, 32, 53).

Here: those reads, and the few small notes that doors keep. Not here: sessions and their turns (`queries.py`),
rows (`store`), who may see what (the doors).
"""

from collections.abc import Sequence
from typing import Any

from bowerbird.sessions.branches.open_work import has_open_work
from bowerbird.sessions.inbox.accept import ANSWER_DOOR
from bowerbird.sessions.money_limits import Authority, set_limit
from bowerbird.sessions.settings import SessionSettings
from bowerbird.store.journal.outcomes import By as OutcomesBy
from bowerbird.store.journal.outcomes import outcome_rows
from bowerbird.store.rows.meta import get_meta, set_meta
from bowerbird.store.rows.owners import (
    changed_sessions,
    owner_of_answer,
    sessions_of_branches,
    workspaces_in_use,
)
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.rows.traces import traces_of
from bowerbird.store.rows.turns import find_turn
from bowerbird.store.rows.usage import MoneyScope, Standing, standings
from bowerbird.store.rows.usage_report import OWN, By, limits_of, standing_limits, usage_rows
from bowerbird.store.store import Store

__all__ = ("OWN", "By", "Lookup", "OutcomesBy", "SessionRow")


class Lookup:
    """Reads over one store; the service has one as `lookup`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def has_work(self, thread_id: str) -> bool:
        """Whether a turn is queued or driven, or a teammate lives; see `has_open_work`."""
        return await self._store.read(lambda c: has_open_work(c, thread_id))

    async def snapshot_of(self, thread_id: str, turn_id: str) -> str | None:
        """Return the snapshot at a turn's end; None for a turn of another session, or without one."""
        turn = await self._store.read(lambda c: find_turn(c, turn_id))
        return None if turn is None or turn.thread_id != thread_id else turn.snapshot_id

    async def owners_of(self, branch_ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        """Return (session, owner) by branch; branches without a session are left out."""
        return await self._store.read(lambda c: sessions_of_branches(c, branch_ids))

    async def workspaces(self, owner: str | None) -> list[str]:
        """Return the directories that sessions work on, of one user or (None) of all."""
        return await self._store.read(lambda c: workspaces_in_use(c, owner))

    async def changed(self, workspace: str, owner: str | None) -> list[str]:
        """Return the sessions on a directory that may have unlanded files, least recent first."""
        return await self._store.read(lambda c: changed_sessions(c, workspace, owner))

    async def owner_of_answer(self, request_id: str) -> tuple[str, str | None] | None:
        """Return (session, owner) of where a request was answered, None when none was."""
        return await self._store.read(lambda c: owner_of_answer(c, ANSWER_DOOR, request_id))

    async def traces(self, thread_id: str, after: int, limit: int) -> list[dict[str, Any]]:
        """Return records of model calls with a number above `after`, in order."""
        return await self._store.read(lambda c: traces_of(c, thread_id, after, limit))

    # ------------------------------------------------------------ money

    async def usage(
        self, by: By, *, since: str | None, until: str | None, owner: str | None
    ) -> list[dict[str, Any]]:
        """Return sums by key; see `usage_rows`."""
        return await self._store.read(lambda c: usage_rows(c, by, since=since, until=until, owner=owner))

    async def outcomes(
        self, by: OutcomesBy, *, since: str | None, until: str | None, owner: str | None
    ) -> list[dict[str, Any]]:
        """Return what became of changes, by key; see `outcome_rows`."""
        return await self._store.read(lambda c: outcome_rows(c, by, since=since, until=until, owner=owner))

    async def limits(self, owner: str | None = None) -> dict[tuple[str, str], float]:
        """Return the limits in USD that people set, by (scope, key); with `owner` only what is theirs."""
        return await self._store.read(lambda c: standing_limits(c) if owner is None else limits_of(c, owner))

    async def standings(self, places: Sequence[MoneyScope]) -> list[Standing]:
        """Return where limits stand, in the order asked for."""
        return await self._store.read(lambda c: standings(c, places))

    async def set_limit(
        self,
        scope: str,
        key: str,
        limit_usd: float | None,
        settings: SessionSettings,
        *,
        authority: Authority,
        by: str,
    ) -> None:
        """See `money_limits.set_limit`."""
        await self._store.write(
            lambda c: set_limit(c, scope, key, limit_usd, settings, authority=authority, by=by)
        )

    # ------------------------------------------------------------ notes of doors

    async def noted(self, key: str) -> str | None:
        """Return what a door noted under a key."""
        return await self._store.read(lambda c: get_meta(c, key))

    async def note(self, key: str, value: str) -> None:
        """Note something for a door, in place of what was noted there."""
        await self._store.write(lambda c: set_meta(c, key, value))
