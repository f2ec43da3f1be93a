"""One at a time, across processes: decisions that read sums before they write (SE-42).

Here: that lock, held until the transaction ends. Not here: what is decided. SQLite lets only one
writer in anyway; PostgreSQL needs to be asked.
"""

from zlib import crc32

from sqlalchemy import Connection, text

_LOCK = text("SELECT pg_advisory_xact_lock(:space, :name)")
_SPACE = 0x626F7765  # "bowe": our own numbers, apart from those of other programs


def pass_alone(connection: Connection, name: str) -> None:
    """Wait until no other transaction is between its own call with this `name` and its end."""
    if connection.dialect.name == "postgresql":
        key = crc32(name.encode()) - (1 << 31)  # the server wants a signed number
        connection.execute(_LOCK, {"space": _SPACE, "name": key})
