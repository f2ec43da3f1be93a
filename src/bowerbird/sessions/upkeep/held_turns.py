"""Turns that a limit in money holds go on when the limit is lifted; an expired question holds nobody up.

Here: which of them have room now, and the answer that continues them. Not here: who may lift a limit
(`money_limits.py`), what a limit does (`turn/money.py`).

A limit may be lifted by an admin, by the answer to another turn's question, by settings, by the next day, or
in another process. So they are looked at now and then, and at once where this process knows.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError, SessionError
from bowerbird.core.events import ApprovalRequest
from bowerbird.sessions.inbox.accept import supersede
from bowerbird.sessions.inbox.answers import find_request, open_request
from bowerbird.sessions.settings import SessionSettings
from bowerbird.sessions.turn.money import money_scopes
from bowerbird.store.rows.sessions import find_session
from bowerbird.store.rows.turns import TurnRow, message_behind, threads_waiting_for, turns_of
from bowerbird.store.rows.usage import standings
from bowerbird.store.rows.usage_report import limits_now, standing_limits
from bowerbird.store.store import Store

EVERY_S = 60.0
BY = "a limit that was lifted"

_log = logging.getLogger(__name__)


async def wake_held(
    store: Store, settings: SessionSettings, go_on: Callable[[str, str], Awaitable[None]]
) -> int:
    """Continue every turn that waits for money and has room now; returns how many.

    Args:
        go_on: answers a request, given its id and its session's.
    """
    woken = 0
    for thread_id in await store.read(lambda c: threads_waiting_for(c, "budget")):
        try:
            turn, request = await find_request(store, None, thread_id)
            if request.kind == "budget" and await store.read(
                lambda c, turn=turn, request=request: _has_room(c, turn, request, settings)
            ):
                await go_on(request.id, thread_id)
                woken += 1
        except SessionError as error:  # answered, expired or gone meanwhile
            _log.debug("session %s waits for money: %s", thread_id, error)
    return woken


async def let_expired_go(store: Store, wake: Callable[[TurnRow], Awaitable[None]]) -> int:
    """End every turn whose question can no longer be answered, and behind which messages wait."""

    def release(connection: Connection) -> list[TurnRow]:
        let_go: list[TurnRow] = []
        for thread_id in threads_waiting_for(connection):
            for turn in turns_of(connection, thread_id, ("waiting",)):
                if message_behind(connection, turn) and open_request(connection, turn) is None:
                    supersede(connection, turn)
                    let_go.append(turn)
        return let_go

    turns = await store.write(release)
    for turn in turns:
        await wake(turn)
    return len(turns)


async def keep_waking(work: Callable[[], Awaitable[int]]) -> None:
    """Do `work` every minute until cancelled; a failure is a warning."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await work()
        except BowerbirdError as error:
            _log.warning("turns that wait: %s", error)
        except Exception:  # noqa: BLE001  whatever it met, the next look must still come
            _log.warning("turns that wait", exc_info=True)


def _has_room(
    connection: Connection, turn: TurnRow, request: ApprovalRequest, settings: SessionSettings
) -> bool:
    session = find_session(connection, turn.thread_id)
    figures = request.tools[0] if request.tools else {}
    if session is None or figures.get("scope") == "turn":
        return False  # the turn's own limit is raised by an answer only
    scopes = money_scopes(session, turn, settings, standing=standing_limits(connection))
    needed = float(figures.get("needed") or 0.0)
    return all(
        standing.limit_usd - standing.spent - standing.held >= needed
        for standing in standings(connection, limits_now(connection, scopes))
    )
