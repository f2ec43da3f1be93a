"""What a task board may hold: links, their cycles, states, claims. Pure (DE-33 … DE-41).

Here: decisions over values. Not here: rows and transactions (`changes.py`), files, tools.

Links are stored once, as edges (blocker, blocked). What a task shows of them is derived: a link counts
while its blocker is not completed, for both of its ends, so the two lists cannot disagree.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.store.rows.board import Edge, TaskRow

Status = Literal["pending", "in_progress", "completed"]
TaskData = dict[str, Any]  # a task in the form of DE-32

STATUSES: tuple[Status, ...] = ("pending", "in_progress", "completed")
MAX_SUBJECT = 500
MAX_DESCRIPTION = 20_000
MAX_OWNER = 100
MAX_METADATA_BYTES = 16_384
MAX_TASKS = 5_000  # on one board
MAX_LINKS = 20_000

_GLYPHS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Shape(msgspec.Struct, frozen=True):
    """What links depend on: the status of each task by id, and the edges (blocker, blocked)."""

    statuses: Mapping[int, str] = msgspec.field(default_factory=dict[int, str])
    edges: frozenset[Edge] = frozenset()

    def blockers(self, task_id: int) -> list[int]:
        """Return what keeps a task from being started, in order."""
        return sorted(u for u, v in self.edges if v == task_id and self._is_open(u))

    def blocked(self, task_id: int) -> list[int]:
        """Return what a task keeps from being started, in order."""
        return sorted(v for u, v in self.edges if u == task_id) if self._is_open(task_id) else []

    def neighbours(self, task_id: int) -> set[int]:
        """Return the tasks that share a link with this one."""
        return {u + v - task_id for u, v in self.edges if task_id in (u, v)}

    def _is_open(self, task_id: int) -> bool:
        return self.statuses.get(task_id) != "completed"


class TaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """What to change of a task; None leaves a field as it is.

    Attributes:
        metadata: is merged; a value None deletes its key.
        add_blocked_by … remove_blocks: ids of other tasks.
    """

    status: str | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    metadata: Mapping[str, Any] | None = None
    add_blocked_by: tuple[int, ...] = ()
    add_blocks: tuple[int, ...] = ()
    remove_blocked_by: tuple[int, ...] = ()
    remove_blocks: tuple[int, ...] = ()

    def links(self, task_id: int) -> tuple[list[Edge], list[Edge]]:
        """Return the edges to add and to remove, for the task that is changed."""
        added = [(u, task_id) for u in self.add_blocked_by] + [(task_id, v) for v in self.add_blocks]
        removed = [(u, task_id) for u in self.remove_blocked_by] + [(task_id, v) for v in self.remove_blocks]
        return added, removed


def task_id_of(value: object) -> int:
    """Return an id given as an integer or a numeric string.

    Raises:
        InvalidArgument: it is neither.

    Example:
        >>> task_id_of("12"), task_id_of(" #3 ")
        (12, 3)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = str(value).strip().removeprefix("#")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidArgument(f"{value!r} is not a task id; ids are numbers, see task_list")
    return int(text)


def unknown(ids: Iterable[int]) -> InvalidArgument:
    """Return the error that names tasks that do not exist."""
    named = ", ".join(str(i) for i in sorted(set(ids)))
    return InvalidArgument(f"there is no task {named} on this board; see task_list")


# ---------------------------------------------------------------- links


def linked(task_id: int, shape: Shape, change: TaskChange) -> frozenset[Edge]:
    """Return the edges of the board after the links of `change` were made and removed.

    Raises:
        InvalidArgument: unknown tasks, the task itself, or a cycle, which is shown.
    """
    added, removed = change.links(task_id)
    missing = {end for edge in (*added, *removed) for end in edge} - set(shape.statuses)
    if missing:
        raise unknown(missing)
    edges = set(shape.edges) - set(removed)
    for blocker, blocked in added:
        if blocker == blocked:
            raise InvalidArgument(f"task {task_id} cannot block itself")
        back = path(edges, blocked, blocker)
        if back is not None:
            circle = " → ".join(str(i) for i in (blocker, *back))
            raise InvalidArgument(
                f"{blocker} cannot block {blocked}: that closes a cycle ({circle}; a → b: a blocks b)"
            )
        edges.add((blocker, blocked))
    if len(edges) > MAX_LINKS:
        raise InvalidArgument(f"a board holds at most {MAX_LINKS} links")
    return frozenset(edges)


def path(edges: Collection[Edge], start: int, goal: int) -> list[int] | None:
    """Return tasks from `start` to `goal`, each blocking the next, a shortest such chain; None without one.

    Example:
        >>> path({(1, 2), (2, 3), (1, 3)}, 1, 3)
        [1, 3]
    """
    following: dict[int, list[int]] = {}
    for blocker, blocked in edges:
        following.setdefault(blocker, []).append(blocked)
    came_from: dict[int, int | None] = {start: None}
    here = [start]
    while here and goal not in came_from:
        ahead: list[int] = []
        for task_id in here:
            for after in sorted(following.get(task_id, ())):
                if after not in came_from:
                    came_from[after] = task_id
                    ahead.append(after)
        here = ahead
    if goal not in came_from:
        return None
    chain: list[int] = []
    at: int | None = goal
    while at is not None:
        chain.append(at)
        at = came_from[at]
    return chain[::-1]


# ---------------------------------------------------------------- one task


def changed(task: TaskRow, change: TaskChange, blockers: Sequence[int]) -> TaskRow:
    """Return `task` after `change`; its links are not its own (`linked`).

    Args:
        blockers: open ones, after the links of the same change were made.

    Raises:
        InvalidArgument: a value is not allowed, the task is blocked, or another has claimed it.
    """
    status = task.status if change.status is None else checked_status(change.status)
    starts = status not in (task.status, "pending")
    if starts and blockers:
        named = ", ".join(str(i) for i in blockers)
        raise InvalidArgument(f"task {task.id} is blocked by {named}; complete what blocks it first")
    owner = task.owner if change.owner is None else checked_owner(change.owner)
    # Owner and in_progress in one change is a claim: the second of two hears of the first.
    if change.owner and change.status == "in_progress" and task.owner not in ("", owner):
        raise owned(task)
    return msgspec.structs.replace(
        task,
        status=status,
        owner=owner,
        subject=task.subject if change.subject is None else checked_subject(change.subject),
        description=(
            task.description if change.description is None else checked_description(change.description)
        ),
        active_form=task.active_form if change.active_form is None else checked_form(change.active_form),
        metadata=merged(task.metadata, change.metadata or {}),
        version=task.version + 1,
    )


def owned(task: TaskRow) -> InvalidArgument:
    """Return the error that names who has claimed a task."""
    return InvalidArgument(f"task {task.id} is owned by {task.owner}")


def is_claimable(task: TaskRow, shape: Shape) -> bool:
    """Whether somebody may take the task: pending, nobody's, nothing open before it."""
    return task.status == "pending" and not task.owner and not shape.blockers(task.id)


def merged(metadata: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return `metadata` with the keys of `more` set; None deletes a key.

    Raises:
        InvalidArgument: the result is too large.

    Example:
        >>> merged({"a": 1, "b": 2}, {"b": None, "c": 3})
        {'a': 1, 'c': 3}
    """
    together = {**metadata, **more}
    kept = {key: value for key, value in together.items() if value is not None}
    if more and len(msgspec.json.encode(kept)) > MAX_METADATA_BYTES:
        raise InvalidArgument(f"metadata has more than {MAX_METADATA_BYTES} bytes")
    return kept


def checked_status(value: str) -> Status:
    """Return a status; raises InvalidArgument for another word."""
    if value not in STATUSES:
        raise InvalidArgument(f"status is {value!r}; use {', '.join(STATUSES)} or deleted")
    return value


def checked_subject(value: str) -> str:
    """Return a subject of 1 to 500 characters; raises InvalidArgument."""
    if not value.strip() or len(value) > MAX_SUBJECT:
        raise InvalidArgument(f"subject has {len(value.strip())} characters; it needs 1 to {MAX_SUBJECT}")
    return value


def checked_description(value: str) -> str:
    """Return a description; raises InvalidArgument when it is too long."""
    return _short("description", value, MAX_DESCRIPTION)


def checked_form(value: str) -> str:
    """Return an active form; raises InvalidArgument when it is too long."""
    return _short("activeForm", value, MAX_SUBJECT)


def checked_owner(value: str) -> str:
    """Return an owner's name; raises InvalidArgument when it is too long."""
    return _short("owner", value.strip(), MAX_OWNER)


def _short(name: str, value: str, most: int) -> str:
    if len(value) > most:
        raise InvalidArgument(f"{name} has {len(value)} characters; at most {most} are allowed")
    return value


# ---------------------------------------------------------------- as shown


def shown(task: TaskRow, shape: Shape) -> TaskData:
    """Return a task in the form of DE-32."""
    from bowerbird.boards.words import active_form

    return {
        "id": task.id,
        "subject": task.subject,
        "description": task.description,
        "status": task.status,
        "blockedBy": shape.blockers(task.id),
        "blocks": shape.blocked(task.id),
        "owner": task.owner,
        "activeForm": task.active_form or active_form(task.subject),
        "metadata": task.metadata,
    }


def board_lines(tasks: Sequence[TaskData]) -> str:
    """Return the readable list: a line per task, then how many are done.

    Args:
        tasks: in order, as `shown`.

    Example:
        >>> task = {"id": 2, "subject": "Test", "status": "pending", "blockedBy": [1], "owner": "a"}
        >>> print(board_lines([task]))
        [ ] #2: Test (blocked by #1) @a
        <BLANKLINE>
        0 of 1 done
    """
    if not tasks:
        return "There are no tasks."
    done = sum(1 for task in tasks if task["status"] == "completed")
    return "\n".join([*(task_line(task) for task in tasks), "", f"{done} of {len(tasks)} done"])


def task_line(task: TaskData) -> str:
    """Return one task as a line of the list."""
    blockers = cast("list[int]", task["blockedBy"])
    waits = f" (blocked by {', '.join(f'#{i}' for i in blockers)})" if blockers else ""
    owner = f" @{task['owner']}" if task["owner"] else ""
    subject = " ".join(str(task["subject"]).split())
    return f"{_GLYPHS.get(task['status'], '[?]')} #{task['id']}: {subject}{waits}{owner}"
