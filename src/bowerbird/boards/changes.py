"""Changes of a task board, each inside a given transaction (DE-33 … DE-41, DE-43).

Here: making, changing, claiming, giving back, importing tasks as functions of a connection: an error
changes nothing. Not here: the rules (`rules.py`), who asks, the readable copies.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec
from sqlalchemy import Connection

from bowerbird.boards.rules import (
    MAX_TASKS,
    Shape,
    TaskChange,
    TaskData,
    changed,
    checked_description,
    checked_form,
    checked_owner,
    checked_subject,
    is_claimable,
    linked,
    owned,
    path,
    shown,
    unknown,
)
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.timestamps import now_iso
from bowerbird.store.rows.board import (
    Edge,
    TaskRow,
    board_edges,
    board_tasks,
    delete_edges,
    delete_task,
    find_task,
    insert_board,
    insert_edges,
    insert_tasks,
    put_task,
    statuses,
    take_id,
    touch_board,
)


class Changed(msgspec.Struct, frozen=True):
    """What a change did.

    Attributes:
        task: the task afterwards; of a deleted one its last state with `status: "deleted"`.
        touched: ids whose shown form may be another now, the task's own included.
    """

    task: TaskData
    touched: frozenset[int] = msgspec.field(default_factory=frozenset[int])


def create_task(
    connection: Connection,
    board: str,
    subject: str,
    *,
    description: str = "",
    active_form: str = "",
    session: str = "",
) -> Changed:
    """Add a task with the board's next id.

    Raises:
        InvalidArgument: the subject has not 1 to 500 characters, or the board is full.
    """
    row = TaskRow(
        board=board,
        id=0,
        subject=checked_subject(subject),
        description=checked_description(description),
        active_form=checked_form(active_form),
        session=session,
    )
    head = touch_board(connection, board)
    if head is None:
        insert_board(connection, board, 1)
        head = touch_board(connection, board)
    assert head is not None, "it was just made"
    if len(statuses(connection, board)) >= MAX_TASKS:
        raise InvalidArgument(f"the board holds {MAX_TASKS} tasks, the most it may; delete some first")
    made = msgspec.structs.replace(row, id=take_id(connection, head))
    insert_tasks(connection, [made])
    return Changed(shown(made, Shape({made.id: made.status})), frozenset((made.id,)))


def update_task(connection: Connection, board: str, task_id: int, change: TaskChange) -> Changed:
    """Change a task, its links included; `status: "deleted"` removes it.

    Raises:
        InvalidArgument: unknown tasks, a cycle, a blocked or claimed task, a value that is not allowed.
    """
    task, shape = _locked(connection, board, task_id)
    if change.status == "deleted":
        before = shown(task, shape)
        delete_task(connection, board, task_id)
        return Changed({**before, "status": "deleted"}, frozenset(shape.neighbours(task_id) | {task_id}))
    edges = linked(task_id, shape, change)
    after = Shape(shape.statuses, edges)
    new = msgspec.structs.replace(
        changed(task, change, after.blockers(task_id)), session=task.session, updated_at=now_iso()
    )
    put_task(connection, new)
    delete_edges(connection, board, shape.edges - edges)
    insert_edges(connection, board, edges - shape.edges)
    after = Shape({**shape.statuses, task_id: new.status}, edges)
    touched = {task_id} | after.neighbours(task_id) | shape.neighbours(task_id)
    return Changed(shown(new, after), frozenset(touched))


def claim_task(connection: Connection, board: str, owner: str, task_id: int | None = None) -> Changed | None:
    """Give a task to `owner` and start it, in one conditional write.

    Args:
        task_id: None = the claimable one with the lowest id.

    Returns:
        None when nothing is claimable and no task was named.

    Raises:
        InvalidArgument: the named task is unknown, owned, blocked or not pending.
    """
    name = checked_owner(owner)
    if not name:
        raise InvalidArgument("a claim needs an owner")
    if touch_board(connection, board) is None:
        if task_id is None:
            return None
        raise unknown([task_id])
    shape = shape_of(connection, board)
    rows = board_tasks(connection, board, None if task_id is None else (task_id,))
    task = next((row for row in rows if is_claimable(row, shape)), None)
    if task is None:
        if task_id is None:
            return None
        raise _not_claimable(task_id, rows, shape)
    return update_task(connection, board, task.id, TaskChange(owner=name, status="in_progress"))


def release_claims(
    connection: Connection, board: str, owner: str, reason: str, *, session: str = ""
) -> list[Changed]:
    """Give back what somebody who ended had claimed: pending, nobody's, with a note.

    Args:
        reason: kept in `metadata.released`. session: of whoever ended, kept there too.
    """
    if touch_board(connection, board) is None:
        return []
    note = {"owner": owner, "reason": reason, "at": now_iso(), **({"session": session} if session else {})}
    change = TaskChange(status="pending", owner="", metadata={"released": note})
    mine = [t.id for t in board_tasks(connection, board) if t.owner == owner and t.status == "in_progress"]
    return [update_task(connection, board, task_id, change) for task_id in mine]


def import_tasks(
    connection: Connection, board: str, rows: Sequence[TaskRow], edges: Iterable[Edge], above: int
) -> bool:
    """Make a board with tasks that were found as files; False when the board exists already.

    Args:
        edges: links; those to tasks that are not there, and those that close a cycle, are left out.
        above: new ids begin above this one.
    """
    if touch_board(connection, board) is not None:
        return False
    known = {row.id for row in rows}
    insert_board(connection, board, max([above, *known], default=0) + 1)
    insert_tasks(connection, rows)
    kept: set[Edge] = set()
    for blocker, blocked in sorted(set(edges)):
        if {blocker, blocked} <= known and blocker != blocked and path(kept, blocked, blocker) is None:
            kept.add((blocker, blocked))
    insert_edges(connection, board, sorted(kept))
    return True


def shape_of(connection: Connection, board: str) -> Shape:
    """Return statuses and links of a board."""
    return Shape(statuses(connection, board), board_edges(connection, board))


def all_shown(connection: Connection, board: str, ids: Collection[int] | None = None) -> list[TaskData]:
    """Return tasks in the form of DE-32 and the order of their ids: all, or those of `ids`."""
    shape = shape_of(connection, board)
    return [shown(row, shape) for row in board_tasks(connection, board, ids)]


def one_shown(connection: Connection, board: str, task_id: int) -> TaskData:
    """Return one task; raises InvalidArgument naming an unknown one."""
    found = all_shown(connection, board, (task_id,))
    if not found:
        raise unknown([task_id])
    return found[0]


def _locked(connection: Connection, board: str, task_id: int) -> tuple[TaskRow, Shape]:
    task = find_task(connection, board, task_id) if touch_board(connection, board) is not None else None
    if task is None:
        raise unknown([task_id])
    return task, shape_of(connection, board)


def _not_claimable(task_id: int, rows: Sequence[TaskRow], shape: Shape) -> InvalidArgument:
    if not rows:
        return unknown([task_id])
    task = rows[0]
    if task.owner:
        return owned(task)
    blockers = shape.blockers(task_id)
    if blockers:
        return InvalidArgument(f"task {task_id} is blocked by {', '.join(map(str, blockers))}")
    return InvalidArgument(f"task {task_id} is {task.status}; only pending tasks can be claimed")
