"""Rows of `provider_sessions` and `provider_messages`: who talked with which agent (PR-30 … PR-33).

Here: reading and writing those rows inside a given transaction, and who runs an agent in a session now. Not
here: running an agent, who may ask (`providers/sessions.py`).
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, select

from bowerbird.core.forms import decode
from bowerbird.core.timestamps import now_iso
from bowerbird.store.rows.leases import Executor, is_dead
from bowerbird.store.sql.clock import DbNow
from bowerbird.store.sql.provider_tables import provider_messages, provider_sessions

INTERRUPTED = "interrupted"
_TURN = "turn"  # in a session's metadata: who runs an agent in it


class ProviderSessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One session with an agent.

    Attributes:
        owner: user id, "" for the one user of a machine.
        native_session_id: the vendor's own name of it. thread_id, branch_id: where its changes are.
    """

    session_id: str
    agent_name: str
    owner: str
    native_session_id: str | None = None
    thread_id: str | None = None
    branch_id: str | None = None
    created_at: str = msgspec.field(default_factory=now_iso)
    updated_at: str = msgspec.field(default_factory=now_iso)
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class ProviderMessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One message of it; `metadata` of a question that has no answer holds `interrupted`."""

    id: int
    session_id: str
    role: str
    content: str
    timestamp: str
    metadata: dict[str, Any]


def find_provider_session(connection: Connection, session_id: str) -> ProviderSessionRow | None:
    """Return a session, whoever's it is."""
    query = select(provider_sessions).where(provider_sessions.c.session_id == session_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else ProviderSessionRow(**_read(row))


def insert_provider_session(connection: Connection, row: ProviderSessionRow) -> None:
    """Add a session; the id must be new."""
    values = {**msgspec.structs.asdict(row), "metadata": _written(row.metadata)}
    connection.execute(provider_sessions.insert().values(**values))


def update_provider_session(connection: Connection, session_id: str, **changes: str | None) -> None:
    """Change columns of a session, and when it was used last."""
    table = provider_sessions
    changed = {**changes, "updated_at": now_iso()}
    connection.execute(table.update().where(table.c.session_id == session_id).values(**changed))


def add_provider_message(
    connection: Connection, session_id: str, role: str, content: str, metadata: dict[str, Any]
) -> int:
    """Add a message and return its number."""
    values = {
        "session_id": session_id, "role": role, "content": content, "timestamp": now_iso(),
        "metadata": _written(metadata),
    }  # fmt: skip
    added = connection.execute(provider_messages.insert().values(**values)).inserted_primary_key
    assert added is not None
    return int(added[0])


def set_message_metadata(connection: Connection, message_id: int, metadata: dict[str, Any]) -> None:
    """Replace what is known of a message."""
    table = provider_messages
    connection.execute(table.update().where(table.c.id == message_id).values(metadata=_written(metadata)))


def newest_messages(
    connection: Connection, session_id: str, most: int, roles: Sequence[str] = ("user", "assistant", "system")
) -> list[ProviderMessageRow]:
    """Return the newest messages of these roles, the oldest of them first."""
    table = provider_messages.c
    query = (
        select(provider_messages)
        .where(table.session_id == session_id, table.role.in_(roles))
        .order_by(table.id.desc())
        .limit(most)
    )
    found = [ProviderMessageRow(**_read(row)) for row in connection.execute(query).mappings()]
    return found[::-1]


def newest_runs(
    connection: Connection, owner: str | None, most: int
) -> list[tuple[ProviderSessionRow, ProviderMessageRow]]:
    """Return the newest questions of a person, or of all for None, each with its session; newest first."""
    table, message = provider_sessions, provider_messages
    query = (
        select(*[column.label(f"s_{column.name}") for column in table.c], message)
        .join(table, table.c.session_id == message.c.session_id)
        .where(message.c.role == "user")
        .order_by(message.c.id.desc())
        .limit(most)
    )
    if owner is not None:
        query = query.where(table.c.owner == owner)
    found: list[tuple[ProviderSessionRow, ProviderMessageRow]] = []
    for row in connection.execute(query).mappings():
        values = {str(key): value for key, value in row.items()}
        own = {name[2:]: value for name, value in values.items() if name.startswith("s_")}
        said = {name: values[name] for name in ProviderMessageRow.__struct_fields__}
        found.append((ProviderSessionRow(**_with_metadata(own)), ProviderMessageRow(**_with_metadata(said))))
    return found


def answer_after(connection: Connection, question: ProviderMessageRow) -> ProviderMessageRow | None:
    """Return the answer to a question, None where none came."""
    table = provider_messages.c
    query = (
        select(provider_messages)
        .where(table.session_id == question.session_id, table.id > question.id)
        .order_by(table.id)
        .limit(1)
    )
    row = connection.execute(query).mappings().first()
    return ProviderMessageRow(**_read(row)) if row is not None and row["role"] == "assistant" else None


def forget_thread(connection: Connection, thread_id: str) -> None:
    """Let go of a deleted session's branch; what was said stays."""
    table = provider_sessions
    connection.execute(
        table.update().where(table.c.thread_id == thread_id).values(thread_id=None, branch_id=None)
    )


def take_turn(connection: Connection, session_id: str, who: Executor, ttl_s: int) -> bool:
    """Take or lengthen the turn in a session; False while another living run has it (PR-33).

    It ends by the database's clock: a process that died without leaving holds up nobody of this machine, and
    others no longer than `ttl_s` seconds.
    """
    known = _held_metadata(connection, session_id)
    now = str(connection.scalar(select(DbNow())))
    if known is None or _is_anothers(known.get(_TURN), who, now):
        return False
    until = str(connection.scalar(select(DbNow(ttl_s))))
    held = {"id": who.executor_id, "host": who.host, "pid": who.pid, "until": until}
    _put(connection, session_id, {**known, _TURN: held})
    return True


def leave_turn(connection: Connection, session_id: str, who: Executor) -> None:
    """Give the turn back, if it is still ours."""
    known = _held_metadata(connection, session_id)
    held: dict[str, Any] | None = known.get(_TURN) if known is not None else None
    if known is not None and held is not None and held["id"] == who.executor_id:
        _put(connection, session_id, {key: value for key, value in known.items() if key != _TURN})


def _is_anothers(held: dict[str, Any] | None, who: Executor, now: str) -> bool:
    if held is None or held["id"] == who.executor_id or held["until"] <= now:
        return False
    return not is_dead(Executor(held["id"], held["host"], held["pid"], "", ""))


def _held_metadata(connection: Connection, session_id: str) -> dict[str, Any] | None:
    query = select(provider_sessions.c.metadata).where(provider_sessions.c.session_id == session_id)
    text = connection.scalar(query.with_for_update())
    return None if text is None else decode(text or "{}")


def _put(connection: Connection, session_id: str, known: dict[str, Any]) -> None:
    here = provider_sessions.c.session_id == session_id
    text = msgspec.json.encode(known).decode()
    connection.execute(provider_sessions.update().where(here).values(metadata=text))


def _read(row: RowMapping) -> dict[str, Any]:
    return _with_metadata({str(key): value for key, value in row.items()})


def _with_metadata(values: dict[str, Any]) -> dict[str, Any]:
    known: Any = decode(values["metadata"] or "{}")
    return {**values, "metadata": known}


def _written(metadata: dict[str, Any]) -> str:
    return msgspec.json.encode(metadata, enc_hook=str).decode()
