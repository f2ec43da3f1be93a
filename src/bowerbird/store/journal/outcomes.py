"""What became of agents' changes: landed, landed in part, discarded, undone, still open.

Here: one row for what one turn changed, how a landing, an undo or a discard moves it, and the counts that
every door shows. Not here: who lands (`sessions/review.py`, `sessions/turn/finish.py`).

A row knows the state of each file, so that of two turns of a session one can land and the other not.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.store.sql.tables import outcomes, sessions, usage

By = Literal["model", "preset", "agent"]
STATES = ("landed", "part", "discarded", "undone", "open")
OWN_AGENT = "bowerbird"
MOST_FILES = 1_000  # of one turn that are looked at; what happens to the others is not counted
_OPEN, _DISCARDED, _UNDONE, _HALF = "", "-", "~", "+"  # of a file; anything else is what it landed with

_MOVED = {"land": ("open", "part", "undone"), "discard": ("open", "part"), "undo": ("landed", "part")}
"""States of rows that have a file which such an event concerns."""

Files = dict[str, str]


class Event(msgspec.Struct, frozen=True):
    """What happened to a session's changes.

    Attributes:
        kind: of it. landing: its id; for `undo` that of the landing that was taken back.
        paths: it concerned. pending: those that differ from the directory now.
        is_half: only some hunks of these files were taken back.
    """

    kind: Literal["land", "discard", "undo"]
    pending: Collection[str]
    paths: Collection[str] = ()
    landing: str = ""
    is_half: bool = False


def state_of(files: Mapping[str, str]) -> str:
    """Return what became of the changes whose files are in these states.

    Example:
        >>> state_of({"/a": "L1", "/b": ""}), state_of({"/a": "", "/b": "-"})
        ('part', 'open')
    """
    kinds = {value if value in (_OPEN, _DISCARDED, _UNDONE, _HALF) else "landed" for value in files.values()}
    if kinds == {"landed"}:
        return "landed"
    if kinds & {"landed", _HALF}:
        return "part"
    return "open" if _OPEN in kinds else "undone" if _UNDONE in kinds else "discarded"


def after(files: Mapping[str, str], event: Event) -> Files:
    """Return the states of files once `event` has happened. Pure."""
    found: Files = dict(files)
    for path, state in files.items():
        is_there = path in event.pending
        if event.kind == "undo":
            if state == event.landing and path in event.paths:
                found[path] = _HALF if event.is_half else _UNDONE
        elif event.kind == "discard":
            if state == _OPEN and not is_there:
                found[path] = _DISCARDED
        elif state in (_OPEN, _HALF) or (state == _UNDONE and path in event.paths):
            if not is_there:
                found[path] = event.landing
            elif path in event.paths:  # some of its hunks
                found[path] = _HALF
    return found


def note_work(
    connection: Connection, thread_id: str, turn_id: str | None, agent: str, paths: Sequence[str]
) -> None:
    """Record that a turn changed these files; the model is the one that answered last in it."""
    if not paths:
        return
    answered = select(usage.c.model).where(
        usage.c.thread_id == thread_id,
        usage.c.purpose == "main",
        *(() if turn_id is None else (usage.c.turn_id == turn_id,)),
    )
    model = connection.scalar(answered.order_by(usage.c.id.desc()).limit(1))
    if turn_id is not None:  # one that was resumed, and ends again
        connection.execute(outcomes.delete().where(outcomes.c.turn_id == turn_id))
    files = dict.fromkeys(paths[:MOST_FILES], _OPEN)
    connection.execute(
        outcomes.insert().values(
            thread_id=thread_id, turn_id=turn_id, agent=agent, files=_text(files),
            model=model or (agent if agent != OWN_AGENT else ""),
            state="open", at=now_iso(),
        )
    )  # fmt: skip


def note_run(connection: Connection, thread_id: str, agent: str, pending: Sequence[str]) -> None:
    """Record what a program's run changed: what differs now and is of no earlier one."""
    known: set[str] = set()
    is_open = (outcomes.c.thread_id == thread_id) & outcomes.c.state.in_(_MOVED["discard"])
    for text in connection.scalars(select(outcomes.c.files).where(is_open)):
        files = decode(text, Files)
        known |= {path for path, state in files.items() if state in (_OPEN, _HALF)}
    note_work(connection, thread_id, None, agent, [path for path in pending if path not in known])


def settle(connection: Connection, thread_id: str, event: Event) -> None:
    """Move the rows of a session on, as far as they can be moved: of a long one most have landed."""
    here = (outcomes.c.thread_id == thread_id) & outcomes.c.state.in_(_MOVED[event.kind])
    for row in connection.execute(select(outcomes.c.id, outcomes.c.files).where(here)).all():
        files = decode(row.files, Files)
        now = after(files, event)
        if now != files:
            connection.execute(
                outcomes.update().where(outcomes.c.id == row.id).values(files=_text(now), state=state_of(now))
            )


def outcome_rows(
    connection: Connection, by: By, *, since: str | None, until: str | None, owner: str | None
) -> list[dict[str, Any]]:
    """Return how many turns' changes came to what, by key; those of a deleted session were discarded.

    Args:
        since, until: record times, the second excluded; None = open.
        owner: only of this user's sessions, None = of all.
    """
    gone = and_(outcomes.c.state == "open", sessions.c.deleted_at.is_not(None))
    state = case((gone, "discarded"), else_=outcomes.c.state)
    key = _key(by)
    wanted = [
        *(() if since is None else (outcomes.c.at >= since,)),
        *(() if until is None else (outcomes.c.at < until,)),
        *(() if owner is None else (sessions.c.owner == owner,)),
    ]
    counts = [func.sum(case((state == name, 1), else_=0)).label(name) for name in STATES]
    rows = connection.execute(
        select(key.label("key"), func.count().label("changes"), *counts)
        .join(sessions, sessions.c.thread_id == outcomes.c.thread_id)
        .where(*wanted)
        .group_by(key)
        .order_by(key)
    ).mappings()
    return [
        {name: value if name == "key" else int(value or 0) for name, value in row.items()} for row in rows
    ]


def _key(by: By) -> ColumnElement[str]:
    if by == "preset":
        return func.coalesce(sessions.c.preset, "default")
    return outcomes.c.model if by == "model" else outcomes.c.agent


def _text(files: Files) -> str:
    return msgspec.json.encode(files).decode()
