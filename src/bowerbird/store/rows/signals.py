"""Signals to a driver in another process that shares the database (SE-30).

Here: rows of `meta` that carry them; a signal is taken once. Not here: who sends or obeys them.
"""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select

from bowerbird.store.sql.tables import meta

_PREFIX = "signal:"
_DROP = meta.delete().where(meta.c.key == bindparam("b_key"))


def put_signal(connection: Connection, turn_id: str, raw: str) -> None:
    """Leave a signal for the driver of a turn; the newest one counts."""
    key = _PREFIX + turn_id
    connection.execute(meta.delete().where(meta.c.key == key))
    connection.execute(meta.insert().values(key=key, value=raw))


def take_signals(
    connection: Connection, turn_ids: Collection[str], *, keep: bool = False
) -> list[tuple[str, str]]:
    """Return (turn, signal) of these turns and remove them, unless only looked at (`keep`)."""
    keys = [_PREFIX + turn_id for turn_id in turn_ids]
    rows = connection.execute(select(meta.c.key, meta.c.value).where(meta.c.key.in_(keys))).all()
    if rows and not keep:
        connection.execute(meta.delete().where(meta.c.key.in_([row.key for row in rows])))
    return [(row.key.removeprefix(_PREFIX), row.value) for row in rows]


def drop_signals(connection: Connection, turn_id: str) -> None:
    """Forget what was left for a turn that has ended."""
    connection.execute(_DROP, {"b_key": _PREFIX + turn_id})
