"""Who runs an agent in a provider session now: one process at a time, whichever they are (PR-33).

Here: taking, keeping and leaving that turn inside a given transaction. Not here: waiting for it
(`providers/turns.py`), other columns of the row (`providers`).

It lies in the session's metadata, with its end by the database's clock: a process that died without leaving
holds up nobody of this machine, and others no longer than its term.
"""

from typing import Any

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.forms import decode
from bowerbird.store.rows.leases import Executor, is_dead
from bowerbird.store.sql.clock import DbNow
from bowerbird.store.sql.provider_tables import provider_sessions

_KEY = "turn"


def take_turn(connection: Connection, session_id: str, who: Executor, ttl_s: int) -> bool:
    """Take or lengthen the turn in a session; False while another living run has it."""
    known = _metadata(connection, session_id)
    now = str(connection.scalar(select(DbNow())))
    if known is None or _is_anothers(known.get(_KEY), who, now):
        return False
    until = str(connection.scalar(select(DbNow(ttl_s))))
    held = {"id": who.executor_id, "host": who.host, "pid": who.pid, "until": until}
    _put(connection, session_id, {**known, _KEY: held})
    return True


def leave_turn(connection: Connection, session_id: str, who: Executor) -> None:
    """Give the turn back, if it is still ours."""
    known = _metadata(connection, session_id)
    held: dict[str, Any] | None = known.get(_KEY) if known is not None else None
    if known is not None and held is not None and held["id"] == who.executor_id:
        _put(connection, session_id, {key: value for key, value in known.items() if key != _KEY})


def _is_anothers(held: dict[str, Any] | None, who: Executor, now: str) -> bool:
    if held is None or held["id"] == who.executor_id or held["until"] <= now:
        return False
    return not is_dead(Executor(held["id"], held["host"], held["pid"], "", ""))


def _metadata(connection: Connection, session_id: str) -> dict[str, Any] | None:
    query = select(provider_sessions.c.metadata).where(provider_sessions.c.session_id == session_id)
    text = connection.scalar(query.with_for_update())
    return None if text is None else decode(text or "{}")


def _put(connection: Connection, session_id: str, known: dict[str, Any]) -> None:
    here = provider_sessions.c.session_id == session_id
    text = msgspec.json.encode(known).decode()
    connection.execute(provider_sessions.update().where(here).values(metadata=text))
