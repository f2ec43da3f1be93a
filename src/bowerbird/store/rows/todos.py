"""Rows of `todos`: the list of one session (DE-45).

Here: reading and replacing it inside a given transaction. Not here: what a list may hold
(`boards/todos.py`).
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.tables import todos


class TodoItem(msgspec.Struct, frozen=True):
    """One entry; `status` is pending, in_progress or completed."""

    content: str
    status: str
    activeForm: str  # the name on wires


def session_todos(connection: Connection, thread_id: str) -> list[TodoItem]:
    """Return a session's list, empty when it has none."""
    found = connection.scalar(select(todos.c["items"]).where(todos.c.thread_id == thread_id))
    return [] if found is None else decode(found, list[TodoItem])


def put_todos(connection: Connection, thread_id: str, items: Sequence[TodoItem]) -> None:
    """Replace a session's list."""
    values = {"items": msgspec.json.encode(list(items)).decode(), "updated_at": now_iso()}
    here = todos.c.thread_id == thread_id
    if connection.execute(todos.update().where(here).values(**values)).rowcount == 0:
        connection.execute(todos.insert().values(thread_id=thread_id, **values))
