"""Statements compiled once per dialect, for the few that run thousands of times a second.

Here: turning a SQLAlchemy Core statement into the driver's text and positional parameters.
Not here: which statements; everything that is not the journal's hot path executes Core
statements directly.

SQLAlchemy's own execution costs several microseconds per row in parameter handling, more
than SQLite needs to store the row.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import BindParameter, ClauseElement, Connection, Dialect, bindparam
from sqlalchemy.sql.dml import UpdateBase

_SIZES = (1, 8, 64, 512)  # numbers of keys a lookup is compiled for


class Prepared:
    """A statement whose parameters are given as tuples in a fixed order.

    Args:
        statement: an insert, update or delete of Core.
        columns: names of its parameters (columns of an insert, bind names otherwise), in the
            order of the tuples.

    Example:
        >>> from bowerbird.store.tables import counters
        >>> Prepared(counters.insert(), ("base_key", "n")).columns
        ('base_key', 'n')
    """

    def __init__(self, statement: UpdateBase, columns: Sequence[str]) -> None:
        self._statement = statement
        self.columns = tuple(columns)
        self._compiled: dict[str, tuple[str, tuple[int, ...] | None]] = {}

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute once per row of `rows`; nothing happens for none."""
        if not rows:
            return
        dialect = connection.dialect
        text, order = self._compiled.get(dialect.name) or self._compile(dialect)
        given = rows if order is None else [tuple(row[i] for i in order) for row in rows]
        connection.exec_driver_sql(text, list(given))

    def _compile(self, dialect: Dialect) -> tuple[str, tuple[int, ...] | None]:
        # Named columns only: defaults belong to code paths that can afford them.
        keys = list(self.columns) if self._statement.is_insert else None
        compiled = self._statement.compile(dialect=dialect, column_keys=keys)
        names: Sequence[str] = getattr(compiled, "positiontup", None) or ()
        order = tuple(self.columns.index(name) for name in names)
        result = (str(compiled), None if order == tuple(range(len(self.columns))) else order)
        self._compiled[dialect.name] = result
        return result


class PreparedLookup:
    """A select of rows by key, for any number of keys, compiled for a few numbers only.

    Args:
        build: makes the select from the keys' parameters.

    Example:
        >>> from sqlalchemy import select
        >>> from bowerbird.store.tables import counters
        >>> lookup = PreparedLookup(lambda keys: select(counters).where(counters.c.base_key.in_(keys)))
    """

    def __init__(self, build: Callable[[list[BindParameter[Any]]], ClauseElement]) -> None:
        self._build = build
        self._compiled: dict[tuple[str, int], str] = {}

    def run(self, connection: Connection, keys: Sequence[Any]) -> list[Any]:
        """Return the rows of `keys`, in no order."""
        found: list[Any] = []
        for at in range(0, len(keys), _SIZES[-1]):
            part = tuple(keys[at : at + _SIZES[-1]])
            size = next(size for size in _SIZES if size >= len(part))
            # The last key fills the places that are left over: the same rows match.
            padded = part + (part[-1],) * (size - len(part))
            found += connection.exec_driver_sql(self._text(connection.dialect, size), padded).all()
        return found

    def _text(self, dialect: Dialect, size: int) -> str:
        text = self._compiled.get((dialect.name, size))
        if text is None:
            keys: list[BindParameter[Any]] = [bindparam(f"k{index}") for index in range(size)]
            text = str(self._build(keys).compile(dialect=dialect))
            self._compiled[dialect.name, size] = text
        return text
