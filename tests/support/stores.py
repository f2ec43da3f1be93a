"""An open store and a session in it, for tests of `store` and `sessions`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bowerbird.store import Append, NewRecord, Record, Store, StoreOptions
from bowerbird.store.rows.leases import heartbeat, take_lease, this_executor
from bowerbird.store.rows.sessions import SessionRow, insert_session
from bowerbird.store.rows.turns import TurnRow, insert_turn

URL = "sqlite+aiosqlite:///./agent.db"
THREAD = "0123456789ab"
TURN = "t_01j00000000000000000000000"


@asynccontextmanager
async def opened(directory: Path, *, url: str = URL, **options: Any) -> AsyncIterator[Store]:
    store = await Store.open(url, data_dir=directory, options=StoreOptions(**{"min_free_mb": 0, **options}))
    try:
        yield store
    finally:
        await store.aclose()


async def with_lease(store: Store, thread: str = THREAD, ttl_s: int = 600) -> int:
    """Make the session `thread` with one turn, and return the epoch of a lease on it."""
    executor = this_executor()

    def make(connection: Any) -> int | None:
        insert_session(connection, SessionRow(thread_id=thread))
        insert_turn(connection, TurnRow(turn_id=turn_of(thread), thread_id=thread, n=1))
        heartbeat(connection, executor)
        return take_lease(connection, thread, executor.executor_id, ttl_s)

    epoch = await store.write(make)
    assert epoch is not None
    return epoch


def turn_of(thread: str) -> str:
    return TURN if thread == THREAD else f"t_{thread}"


def text_record(text: str, turn: str | None = TURN, kind: str = "user") -> NewRecord:
    return NewRecord(kind, {"content": [{"type": "text", "text": text}]}, turn)


async def say(
    store: Store, *texts: str, thread: str = THREAD, epoch: int | None = None
) -> tuple[Record, ...]:
    records = tuple(text_record(text, turn_of(thread)) for text in texts)
    return await store.append(Append(thread, epoch, records))
