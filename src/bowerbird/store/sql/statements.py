"""Statements made once, for those that run often.

Here: turning a SQLAlchemy Core statement into the driver's text and positional parameters, for the
few that run thousands of times a second; statements of one table by equal columns, kept once built.
Not here: which statements; what is asked seldom executes Core statements directly.

SQLAlchemy's own execution costs several microseconds per row in parameter handling, more
than SQLite needs to store the row. Building a statement costs four times as much as executing it
again: a turn's thirty statements took three milliseconds that way.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ClauseElement,
    Connection,
    CursorResult,
    Dialect,
    Select,
    Table,
    bindparam,
    select,
)
from sqlalchemy.sql.dml import UpdateBase

_SIZES = (1, 8, 64, 512)  # numbers of keys a lookup is compiled for


class Prepared:
    """A statement whose parameters are given as tuples in a fixed order.

    Args:
        statement: an insert, update or delete of Core.
        columns: names of its parameters (columns of an insert, bind names otherwise), in the
            order of the tuples.

    Example:
        >>> from bowerbird.store.sql.tables import counters
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
        if len(rows) == 1:
            self.one(connection, rows[0])
            return
        text, order = self._for(connection.dialect)
        given = rows if order is None else [tuple(row[i] for i in order) for row in rows]
        connection.exec_driver_sql(text, list(given))

    def one(self, connection: Connection, row: tuple[Any, ...]) -> int:
        """Execute once; returns how many rows of the table were concerned."""
        text, order = self._for(connection.dialect)
        given = row if order is None else tuple(row[i] for i in order)
        return connection.exec_driver_sql(text, given).rowcount

    def _for(self, dialect: Dialect) -> tuple[str, tuple[int, ...] | None]:
        return self._compiled.get(dialect.name) or self._compile(dialect)

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
        >>> from bowerbird.store.sql.tables import counters
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


# ---------------------------------------------------------------- one table, equal columns


def insert_row(connection: Connection, table: Table, values: Mapping[str, Any]) -> None:
    """Add a row of plain values."""
    _insert(table, tuple(values)).one(connection, tuple(values.values()))


def update_rows(
    connection: Connection, table: Table, where: Mapping[str, Any], values: Mapping[str, Any]
) -> int:
    """Set plain values in the rows whose columns equal `where`; returns how many there were."""
    prepared = _update(table, tuple(where), tuple(values))
    return prepared.one(connection, (*values.values(), *where.values()))


def rows_where(connection: Connection, table: Table, where: Mapping[str, Any]) -> CursorResult[Any]:
    """Return the rows whose columns equal `where`, in no order."""
    return connection.execute(_select(table, tuple(where)), {f"b_{name}": v for name, v in where.items()})


@lru_cache(maxsize=64)
def _insert(table: Table, names: tuple[str, ...]) -> Prepared:
    return Prepared(table.insert(), names)


@lru_cache(maxsize=512)
def _update(table: Table, where: tuple[str, ...], names: tuple[str, ...]) -> Prepared:
    here = [table.c[name] == bindparam(f"b_{name}") for name in where]
    values: dict[str, Any] = {name: bindparam(f"v_{name}") for name in names}
    columns = (*(f"v_{name}" for name in names), *(f"b_{name}" for name in where))
    return Prepared(table.update().where(*here).values(values), columns)


@lru_cache(maxsize=128)
def _select(table: Table, where: tuple[str, ...]) -> Select[Any]:
    return select(table).where(*(table.c[name] == bindparam(f"b_{name}") for name in where))
