"""Rows of `subagents`: the children of sessions (DE-4).

Here: reading and writing those rows inside a given transaction. Not here: what a record says
(`bowerbird.subagents.records`), the children's own sessions (`sessions`).
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, func, select

from bowerbird.store.sql.tables import subagents

OPEN = ("running", "finished", "failed")


class SubagentRow(msgspec.Struct, frozen=True, kw_only=True):
    """One subagent; `body` holds its whole record as JSON text."""

    parent: str
    number: int
    thread_id: str
    root: str
    root_turn: str
    state: str
    body: str


def subagents_of(connection: Connection, parent: str) -> list[SubagentRow]:
    """Return the subagents of a session, oldest first, discarded ones too."""
    statement = select(subagents).where(subagents.c.parent == parent).order_by(subagents.c.number)
    return [SubagentRow(**row) for row in connection.execute(statement).mappings()]


def next_subagent(connection: Connection, parent: str) -> int:
    """Return the number of a session's next subagent; rows stay, so none is used twice."""
    newest = connection.scalar(select(func.max(subagents.c.number)).where(subagents.c.parent == parent))
    return 0 if newest is None else int(newest) + 1


def open_subagents(connection: Connection, root: str) -> int:
    """Return how many subagents below `root` are neither merged nor discarded."""
    here = (subagents.c.root == root, subagents.c.state.in_(OPEN))
    return int(connection.scalar(select(func.count()).select_from(subagents).where(*here)) or 0)


def subagents_in_turn(connection: Connection, root_turn: str) -> int:
    """Return how many subagents a turn has made, those of its subagents included."""
    mine = subagents.c.root_turn == root_turn
    return int(connection.scalar(select(func.count()).select_from(subagents).where(mine)) or 0)


def subagents_in_contests(connection: Connection) -> list[SubagentRow]:
    """Return the subagents that a record says are attempts of a door's tournament, in order."""
    marked = subagents.c.body.contains('"contest":{', autoescape=True)
    statement = select(subagents).where(marked).order_by(subagents.c.parent, subagents.c.number)
    return [SubagentRow(**row) for row in connection.execute(statement).mappings()]


def insert_subagents(connection: Connection, rows: Sequence[SubagentRow]) -> None:
    """Add rows; their sessions exist."""
    if rows:
        connection.execute(subagents.insert(), [msgspec.structs.asdict(row) for row in rows])


def replace_subagent(connection: Connection, row: SubagentRow) -> None:
    """Replace the state and record of a row."""
    here = (subagents.c.parent == row.parent) & (subagents.c.number == row.number)
    connection.execute(subagents.update().where(here).values(state=row.state, body=row.body))
