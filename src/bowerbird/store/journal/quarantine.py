"""Things that could not be read, kept as they were found and named (SE-46, 59).

Here: rows of `quarantine`. Not here: deciding that something is damaged.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from bowerbird.store.journal.journal import Record
from bowerbird.store.sql.tables import quarantine


def set_aside(connection: Connection, damaged: Sequence[Record], at: str) -> int:
    """Copy damaged journal records to quarantine, each once; returns how many were new.

    Args:
        damaged: stand-ins of type `corrupt` made by `read_records`.
        at: time in the record form.
    """
    rows = [
        {
            "source": "journal",
            "key": f"{record.body['thread']}:{record.seq}",
            "reason": str(record.body["reason"]),
            "raw": _storable(str(record.body["raw"])),
            "at": at,
        }
        for record in damaged
    ]
    known = set(connection.scalars(
        select(quarantine.c.key).where(
            quarantine.c.source == "journal", quarantine.c.key.in_([row["key"] for row in rows])
        )
    ))  # fmt: skip
    fresh = [row for row in rows if row["key"] not in known]
    if fresh:
        connection.execute(quarantine.insert(), fresh)
    return len(fresh)


def put_aside(connection: Connection, *, source: str, key: str, reason: str, raw: str, at: str) -> None:
    """Copy one unreadable thing of any source (an imported file's entry) to quarantine."""
    connection.execute(
        quarantine.insert().values(source=source, key=key, reason=reason, raw=_storable(raw), at=at)
    )


def _storable(raw: str) -> str:
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
