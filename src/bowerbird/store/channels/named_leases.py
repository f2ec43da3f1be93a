"""Leases by name, for what one process at a time may do: polling with a bot's token, say (AS-13).

Here: taking, keeping and giving back inside a given transaction. Not here: leases of sessions (`leases.py`).

A lease is one value in `meta`: `UNTIL HOLDER`, by the database's clock.
"""

from sqlalchemy import Connection, or_, select
from sqlalchemy.exc import IntegrityError

from bowerbird.store.sql.clock import DbNow
from bowerbird.store.sql.tables import meta

_PREFIX = "lease:"


def take_named_lease(connection: Connection, name: str, holder: str, seconds: int) -> bool:
    """Take a lease, or keep one's own; False while another holder has it."""
    value = f"{connection.scalar(select(DbNow(seconds)))} {holder}"
    now = f"{connection.scalar(select(DbNow()))}"
    table = meta.c
    is_free = or_(table.value < now, table.value.endswith(f" {holder}", autoescape=True))
    taken = connection.execute(meta.update().where(table.key == _PREFIX + name, is_free).values(value=value))
    if taken.rowcount:
        return True
    if connection.scalar(select(table.value).where(table.key == _PREFIX + name)) is not None:
        return False
    try:
        with connection.begin_nested():
            connection.execute(meta.insert().values(key=_PREFIX + name, value=value))
    except IntegrityError:  # another process was first
        return False
    return True


def release_named_lease(connection: Connection, name: str, holder: str) -> None:
    """Give a lease back; nothing happens to another's."""
    is_mine = meta.c.value.endswith(f" {holder}", autoescape=True)
    connection.execute(meta.delete().where(meta.c.key == _PREFIX + name, is_mine))


def release_named_leases(connection: Connection, holder: str) -> None:
    """Give back every lease of a process that has died."""
    is_its = meta.c.value.endswith(f" {holder}", autoescape=True)
    connection.execute(meta.delete().where(meta.c.key.startswith(_PREFIX, autoescape=True), is_its))
