"""Rows of `memory_versions`, and the jobs that write them anew (SE-44).

Here: reading and writing those rows inside a given transaction. Not here: what a memory says
(`memory/rewriting.py`), when it is written (`sessions/upkeep/memory_rewriting.py`).

A job is an inbox row of the door `memory`, so that the unique (door, dedupe key) makes it happen once for
each state of a session, whichever process finds it. It is no turn: turns of a session run one after another,
and a message must not wait for it.
"""

import msgspec
from sqlalchemy import Connection, Text, and_, cast, func, select

from bowerbird.core.errors import NotFound
from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.core.usage import Usage
from bowerbird.store.rows.turns import OPEN
from bowerbird.store.sql.statements import insert_row
from bowerbird.store.sql.tables import inbox, memory_versions, sessions, turns, usage

DOOR = "memory"
KEPT = 20
_KINDS = ("chat", "web", "cli")
_MOST = 100  # sessions looked at in one go


class MemoryVersion(msgspec.Struct, frozen=True):
    """One text of a user's memory about a workspace; the newest one counts.

    Attributes:
        owner: user id, "" for the one user of a server without auth. workspace: path, "" for none.
    """

    id: int
    owner: str
    workspace: str
    body: str
    at: str


class MemoryJob(msgspec.Struct, frozen=True):
    """A session whose memory is to be written: `upto` is its last record then, `tries` counts from 1."""

    inbox_id: str
    thread_id: str
    upto: int
    tries: int


def newest_memory(connection: Connection, owner: str, workspace: str) -> MemoryVersion | None:
    """Return the text that counts, None when nothing was remembered yet."""
    found = memory_log(connection, owner, workspace, limit=1)
    return found[0] if found else None


def memory_log(
    connection: Connection, owner: str, workspace: str, *, limit: int = KEPT
) -> list[MemoryVersion]:
    """Return the versions that are kept, the newest first."""
    rows = connection.execute(
        select(memory_versions)
        .where(memory_versions.c.owner == owner, memory_versions.c.workspace == workspace)
        .order_by(memory_versions.c.id.desc())
        .limit(limit)
    )
    return [MemoryVersion(**row) for row in rows.mappings()]


def add_memory(connection: Connection, owner: str, workspace: str, body: str) -> MemoryVersion:
    """Make `body` the text that counts; versions beyond the newest 20 go."""
    at = now_iso()
    result = connection.execute(
        memory_versions.insert().values(owner=owner, workspace=workspace, body=body, at=at)
    )
    key = result.inserted_primary_key
    assert key is not None, "an insert of one row has a key"
    kept = [version.id for version in memory_log(connection, owner, workspace)]
    connection.execute(
        memory_versions.delete().where(
            memory_versions.c.owner == owner,
            memory_versions.c.workspace == workspace,
            memory_versions.c.id.not_in(kept),
        )
    )
    return MemoryVersion(int(key[0]), owner, workspace, body, at)


def restore_memory(connection: Connection, owner: str, workspace: str, version: int) -> MemoryVersion:
    """Make an earlier text the one that counts, as a new version.

    Raises:
        NotFound: no such version is kept for this user and workspace.
    """
    for found in memory_log(connection, owner, workspace):
        if found.id == version:
            return add_memory(connection, owner, workspace, found.body)
    raise NotFound(f"memory has no version {version}; the newest {KEPT} are kept")


# ---------------------------------------------------------------- jobs


def due_threads(connection: Connection, ended_after: str, quiet_since: str) -> list[tuple[str, int]]:
    """Return (thread, last record) of sessions with a finished turn that no job has seen, quiet long enough.

    Args:
        ended_after: turns that ended before are of no interest. quiet_since: the newest turn ended before.
    """
    others = turns.alias()
    mine = others.c.thread_id == sessions.c.thread_id
    newest = select(func.max(others.c.n)).where(mine).correlate(sessions).scalar_subquery()
    busy = select(others.c.n).where(mine, others.c.state.in_(OPEN)).correlate(sessions).exists()
    key = sessions.c.thread_id + ":" + cast(sessions.c.last_seq, Text)
    known = select(inbox.c.id).where(inbox.c.door == DOOR, inbox.c.dedupe_key == key).correlate(sessions)
    rows = connection.execute(
        select(sessions.c.thread_id, sessions.c.last_seq)
        .select_from(sessions.join(turns, turns.c.thread_id == sessions.c.thread_id))
        .where(
            turns.c.n == newest,
            sessions.c.deleted_at.is_(None),
            sessions.c.kind.in_(_KINDS),
            sessions.c.updated_at > ended_after,
            turns.c.state == "done",
            turns.c.ended_at > ended_after,
            turns.c.ended_at <= quiet_since,
            ~busy,
            ~known.exists(),
        )
        .order_by(turns.c.ended_at)
        .limit(_MOST)
    )
    return [(row.thread_id, int(row.last_seq)) for row in rows]


def add_job(connection: Connection, inbox_id: str, thread_id: str, upto: int) -> MemoryJob | None:
    """Add a job that the caller does at once; None when another process was first."""
    known = connection.execute(
        select(inbox.c.id).where(inbox.c.door == DOOR, inbox.c.dedupe_key == _key(thread_id, upto))
    ).first()
    if known is not None:
        return None
    job = MemoryJob(inbox_id, thread_id, upto, 1)
    row = {
        "id": inbox_id, "thread_id": thread_id, "door": DOOR, "dedupe_key": _key(thread_id, upto),
        "kind": "notification", "sender": "{}", "body": msgspec.json.encode(job).decode(), "state": "taken",
        "turn_id": None, "received_at": now_iso(),
    }  # fmt: skip
    insert_row(connection, inbox, row)
    return job


def has_left_jobs(connection: Connection, before: str) -> bool:
    """Whether `left_jobs` would claim any."""
    here = (inbox.c.door == DOOR, inbox.c.state == "taken", inbox.c.received_at < before)
    return connection.execute(select(inbox.c.id).where(*here).limit(1)).first() is not None


def left_jobs(connection: Connection, before: str) -> list[MemoryJob]:
    """Claim the jobs that nobody has worked on since `before`: their process died."""
    here = and_(inbox.c.door == DOOR, inbox.c.state == "taken", inbox.c.received_at < before)
    rows = connection.execute(select(inbox.c.id, inbox.c.body).where(here).with_for_update()).all()
    claimed: list[MemoryJob] = []
    for row in rows:
        job = decode(row.body, MemoryJob)
        job = msgspec.structs.replace(job, tries=job.tries + 1)
        body = msgspec.json.encode(job).decode()
        connection.execute(
            inbox.update().where(inbox.c.id == row.id).values(body=body, received_at=now_iso())
        )
        claimed.append(job)
    return claimed


def close_job(connection: Connection, job: MemoryJob, state: str) -> bool:
    """End a job as `done` or `cancelled`; False when it was ended before, say with its session."""
    here = and_(inbox.c.id == job.inbox_id, inbox.c.state == "taken")
    return connection.execute(inbox.update().where(here).values(state=state)).rowcount == 1


def previous_job(connection: Connection, thread_id: str, upto: int) -> int:
    """Return up to which record a session's memory was written before, 0 for never."""
    rows = connection.scalars(
        select(inbox.c.body).where(
            inbox.c.thread_id == thread_id, inbox.c.door == DOOR, inbox.c.state == "done"
        )
    )
    seen = [decode(body, MemoryJob).upto for body in rows]
    return max((seq for seq in seen if seq < upto), default=0)


def add_model_usage(connection: Connection, thread_id: str, purpose: str, model: str, used: Usage) -> None:
    """Write what a model call used that belongs to a session and to none of its turns."""
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    tokens = {name: getattr(used, name) for name in names}
    connection.execute(
        usage.insert().values(
            thread_id=thread_id, turn_id=None, agent="main", purpose=purpose, model=model, cost=used.cost,
            priced=used.cost is not None, estimated=False, at=now_iso(), **tokens,
        )
    )  # fmt: skip


def _key(thread_id: str, upto: int) -> str:
    return f"{thread_id}:{upto}"
