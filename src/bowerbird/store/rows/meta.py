"""Single values that a database remembers, by key.

Here: reading and setting them inside a given transaction. Not here: what any of them means; signals
between processes have their own keys (`signals.py`).
"""

from sqlalchemy import Connection, select

from bowerbird.store.sql.tables import meta


def get_meta(connection: Connection, key: str) -> str | None:
    """Return a value, None when it was never set."""
    return connection.scalar(select(meta.c.value).where(meta.c.key == key))


def with_prefix(connection: Connection, prefix: str) -> dict[str, str]:
    """Return the values whose keys begin so, by the rest of their keys."""
    rows = connection.execute(
        select(meta.c.key, meta.c.value).where(meta.c.key.startswith(prefix, autoescape=True))
    )
    return {str(row.key).removeprefix(prefix): str(row.value) for row in rows}


def delete_meta(connection: Connection, key: str) -> None:
    """Forget a value."""
    connection.execute(meta.delete().where(meta.c.key == key))


def set_meta(connection: Connection, key: str, value: str) -> None:
    """Set a value."""
    connection.execute(meta.delete().where(meta.c.key == key))
    connection.execute(meta.insert().values(key=key, value=value))
