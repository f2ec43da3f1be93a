"""Rows of `boards`, `tasks` and `task_edges`: one task board per workspace (DE-32, DE-33, DE-37).

Here: reading and writing those rows inside a given transaction. Not here: what may be changed
(`boards/rules.py`), the readable copies (`boards/files.py`).

Every change begins with `touch_board`, which locks the board's row: changes of one board run one after
another, whichever process makes them, and ids are given out once.
"""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, or_, select

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.store.rows.sessions import SessionRow
from bowerbird.store.sql.statements import rows_where
from bowerbird.store.sql.tables import boards, sessions, task_edges, tasks

Edge = tuple[int, int]  # (blocker, blocked)
_AT_ONCE = 500


class BoardRow(msgspec.Struct, frozen=True):
    """A board; `revision` grows with each change, `next_id` is the id of the next task."""

    board: str
    next_id: int
    revision: int
    created_at: str


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One task as stored; its links are edges.

    Attributes:
        active_form: "" = follows from the subject.
        session: the thread that made it. version: how often it was changed, from 1.
    """

    board: str
    id: int
    subject: str
    description: str = ""
    status: str = "pending"
    owner: str = ""
    active_form: str = ""
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    session: str = ""
    version: int = 1
    created_at: str = msgspec.field(default_factory=now_iso)
    updated_at: str = msgspec.field(default_factory=now_iso)


# ---------------------------------------------------------------- boards


def find_board(connection: Connection, board: str) -> BoardRow | None:
    """Return a board, None before its first use."""
    row = rows_where(connection, boards, {"board": board}).mappings().first()
    return None if row is None else BoardRow(**{str(key): value for key, value in row.items()})


def insert_board(connection: Connection, board: str, next_id: int) -> None:
    """Add a board; it must be new."""
    connection.execute(boards.insert().values(board=board, next_id=next_id, revision=1, created_at=now_iso()))


def touch_board(connection: Connection, board: str) -> BoardRow | None:
    """Lock a board's row until the transaction ends and count a change; None when there is no such board."""
    here = boards.c.board == board
    connection.execute(boards.update().where(here).values(revision=boards.c.revision + 1))
    return find_board(connection, board)


def take_id(connection: Connection, board: BoardRow) -> int:
    """Return the id of a new task of a touched board; it is never given out again."""
    here = boards.c.board == board.board
    connection.execute(boards.update().where(here).values(next_id=board.next_id + 1))
    return board.next_id


def revisions(connection: Connection) -> dict[str, int]:
    """Return the revision of every board."""
    rows = connection.execute(select(boards.c.board, boards.c.revision))
    return {row.board: row.revision for row in rows}


# ---------------------------------------------------------------- tasks


def board_tasks(connection: Connection, board: str, ids: Collection[int] | None = None) -> list[TaskRow]:
    """Return tasks of a board in the order of their ids: all, or those of `ids` that there are."""
    statement = select(tasks).where(tasks.c.board == board).order_by(tasks.c.id)
    if ids is not None:
        statement = statement.where(tasks.c.id.in_(list(ids)))
    return [_task(row) for row in connection.execute(statement).mappings()]


def find_task(connection: Connection, board: str, task_id: int) -> TaskRow | None:
    """Return a task, None when there is none."""
    return next(iter(board_tasks(connection, board, (task_id,))), None)


def statuses(connection: Connection, board: str) -> dict[int, str]:
    """Return the status of every task of a board by id."""
    rows = connection.execute(select(tasks.c.id, tasks.c.status).where(tasks.c.board == board))
    return {row.id: row.status for row in rows}


def insert_tasks(connection: Connection, rows: Iterable[TaskRow]) -> None:
    """Add tasks; their ids must be new."""
    values = [_values(row) for row in rows]
    if values:
        connection.execute(tasks.insert(), values)


def put_task(connection: Connection, row: TaskRow) -> None:
    """Replace a task by `row`."""
    here = (tasks.c.board == row.board) & (tasks.c.id == row.id)
    connection.execute(tasks.update().where(here).values(**_values(row)))


def delete_task(connection: Connection, board: str, task_id: int) -> None:
    """Remove a task and every link of it."""
    of_task = or_(task_edges.c.blocker == task_id, task_edges.c.blocked == task_id)
    connection.execute(task_edges.delete().where(task_edges.c.board == board, of_task))
    connection.execute(tasks.delete().where(tasks.c.board == board, tasks.c.id == task_id))


# ---------------------------------------------------------------- links


def board_edges(connection: Connection, board: str) -> frozenset[Edge]:
    """Return every link of a board."""
    columns = (task_edges.c.blocker, task_edges.c.blocked)
    rows = connection.execute(select(*columns).where(task_edges.c.board == board))
    return frozenset((row.blocker, row.blocked) for row in rows)


def insert_edges(connection: Connection, board: str, edges: Iterable[Edge]) -> None:
    """Add links; they must be new."""
    values = [{"board": board, "blocker": blocker, "blocked": blocked} for blocker, blocked in edges]
    if values:
        connection.execute(task_edges.insert(), values)


def delete_edges(connection: Connection, board: str, edges: Iterable[Edge]) -> None:
    """Remove links."""
    for blocker, blocked in edges:
        same = (task_edges.c.blocker == blocker) & (task_edges.c.blocked == blocked)
        connection.execute(task_edges.delete().where(task_edges.c.board == board, same))


# ---------------------------------------------------------------- whose board


def boards_of_threads(connection: Connection, thread_ids: Collection[str]) -> list[SessionRow]:
    """Return what says which boards these sessions have: rows with id, kind and workspace."""
    columns = (sessions.c.thread_id, sessions.c.kind, sessions.c.workspace)
    found: list[SessionRow] = []
    wanted = sorted(thread_ids)
    for at in range(0, len(wanted), _AT_ONCE):
        part = wanted[at : at + _AT_ONCE]
        rows = connection.execute(select(*columns).where(sessions.c.thread_id.in_(part)))
        found += [SessionRow(thread_id=thread, kind=kind, workspace=path) for thread, kind, path in rows]
    return found


def _task(row: RowMapping) -> TaskRow:
    values: dict[str, Any] = {str(key): value for key, value in row.items()}
    values["metadata"] = decode(values["metadata"], dict[str, Any])
    return TaskRow(**values)


def _values(row: TaskRow) -> dict[str, Any]:
    return {**msgspec.structs.asdict(row), "metadata": msgspec.json.encode(row.metadata).decode()}
