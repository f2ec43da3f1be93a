"""Scheduled tasks as imported and exported: one JSON object per task (SE-45, 46).

Here: keeping them until a scheduler takes them over. Not here: when they run.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.forms import decode
from bowerbird.store.sql.tables import meta

_PREFIX = "schedule:"


def stored_tasks(connection: Connection) -> list[dict[str, Any]]:
    """Return the tasks, by id."""
    rows = connection.execute(
        select(meta.c.value).where(meta.c.key.startswith(_PREFIX, autoescape=True)).order_by(meta.c.key)
    )
    return [decode(row.value, dict[str, Any]) for row in rows]


def has_task(connection: Connection, task_id: str) -> bool:
    """Whether a task with this id is stored."""
    return connection.execute(select(meta.c.key).where(meta.c.key == _PREFIX + task_id)).first() is not None


def store_task(connection: Connection, task: Mapping[str, Any]) -> None:
    """Add a task; its id must be new."""
    value = msgspec.json.encode(task).decode()
    connection.execute(meta.insert().values(key=f"{_PREFIX}{task['id']}", value=value))
