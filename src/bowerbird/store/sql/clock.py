"""The database's clock, for leases: processes that share a database agree on it (SE-28).

Here: one SQL expression per dialect giving the record form of time. Not here: the
process's clock (`core/timestamps.py`).
"""

from typing import Any

from sqlalchemy import Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement


class DbNow(ColumnElement[str]):
    """The present plus `ahead_s` seconds as text that sorts, by the database's clock.

    Example:
        >>> from sqlalchemy import create_engine, select
        >>> with create_engine("sqlite://").connect() as connection:
        ...     now = connection.scalar(select(DbNow()))
        >>> now.endswith("+00:00")
        True
    """

    inherit_cache = False  # `ahead_s` is part of the text, so two of them are not the same
    type = Text()

    def __init__(self, ahead_s: float = 0) -> None:
        self.ahead_s = float(ahead_s)


@compiles(DbNow, "sqlite")
def _on_sqlite(element: DbNow, compiler: SQLCompiler, **_: Any) -> str:
    # SQLite knows milliseconds; the zeros keep the width of the record form.
    return f"(strftime('%Y-%m-%dT%H:%M:%f', 'now', '{element.ahead_s:+.3f} seconds') || '000+00:00')"


@compiles(DbNow, "postgresql")
def _on_postgresql(element: DbNow, compiler: SQLCompiler, **_: Any) -> str:
    moment = f"(clock_timestamp() AT TIME ZONE 'UTC' + interval '{element.ahead_s:.3f} seconds')"
    return f"""(to_char({moment}, 'YYYY-MM-DD"T"HH24:MI:SS.US') || '+00:00')"""
