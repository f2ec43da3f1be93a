"""The first schema: sessions, turns, journal, effects, snapshots, usage and their neighbours."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _text(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _text_or_null(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Text(), nullable=True) for name in names]


def _whole(*names: str, null: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.Integer(), nullable=null) for name in names]


def _big(*names: str, null: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=null) for name in names]


def _key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{table}")


def _refers(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}")


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _to_session(table: str) -> sa.ForeignKeyConstraint:
    return _refers(table, "thread_id", "sessions.thread_id")


def _to_turn(table: str) -> sa.ForeignKeyConstraint:
    return _refers(table, "turn_id", "turns.turn_id")


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")


def upgrade() -> None:
    """Create every table of the first release."""
    _standing_alone()
    _sessions_and_turns()
    _steps()
    _deliveries()
    _money()


def _standing_alone() -> None:
    op.create_table("meta", *_text("key", "value"), _key("meta", "key"))
    op.create_table("counters", *_text("base_key"), *_whole("n"), _key("counters", "base_key"))
    op.create_table("bridge_states", *_text("user_id", "body"), _key("bridge_states", "user_id"))
    op.create_table(
        "executors",
        *_text("executor_id", "host"),
        *_whole("pid"),
        *_text("started_at", "heartbeat_at"),
        _key("executors", "executor_id"),
    )
    op.create_table(
        "quarantine",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        *_text("source", "key", "reason", "raw", "at"),
        _key("quarantine", "id"),
    )
    _index("quarantine", "source", "key")


def _sessions_and_turns() -> None:
    op.create_table(
        "sessions",
        *_text("thread_id", "kind"),
        *_text_or_null("channel", "chat_id"),
        *_whole("counter"),
        *_text_or_null("owner", "title", "preset", "system_prompt"),
        *_text("flags"),
        *_text_or_null("thinking_effort"),
        sa.Column("auto_approve", sa.Boolean(), nullable=False),
        *_text_or_null("workspace", "branch_id"),
        *_text("status"),
        *_big("last_seq"),
        *_text_or_null("parent_thread_id"),
        *_big("parent_seq", null=True),
        *_text("created_at", "updated_at"),
        *_text_or_null("deleted_at"),
        _refers("sessions", "parent_thread_id", "sessions.thread_id"),
        _key("sessions", "thread_id"),
    )
    _index("sessions", "channel", "chat_id")
    _index("sessions", "parent_thread_id")
    _index("sessions", "updated_at")
    op.create_table(
        "leases",
        *_text("thread_id"),
        *_big("epoch"),
        *_text_or_null("holder"),
        *_text("expires_at"),
        _to_session("leases"),
        _key("leases", "thread_id"),
    )
    op.create_table(
        "turns",
        *_text("turn_id", "thread_id"),
        *_whole("n"),
        *_text("kind", "state"),
        *_text_or_null("waiting_for"),
        *_whole("attempt"),
        *_big("epoch"),
        *_text_or_null("stop_reason", "error", "usage"),
        sa.Column("cost", sa.Float(), nullable=True),
        *_text_or_null("snapshot_id", "started_at", "ended_at"),
        _to_session("turns"),
        _key("turns", "turn_id"),
        _unique("turns", "thread_id", "n"),
    )
    _index("turns", "state")


def _steps() -> None:
    op.create_table(
        "journal",
        *_text("thread_id"),
        *_big("seq"),
        *_text_or_null("turn_id"),
        *_big("epoch"),
        *_whole("v"),
        *_text("type", "at", "body"),
        _to_session("journal"),
        _to_turn("journal"),
        _key("journal", "thread_id", "seq"),
    )
    _index("journal", "turn_id")
    op.create_table(
        "effects",
        *_text("thread_id", "call_id", "turn_id", "tool", "class", "state"),
        *_big("intent_seq", "outcome_seq", null=True),
        *_text_or_null("mark"),
        _to_session("effects"),
        _to_turn("effects"),
        _key("effects", "thread_id", "call_id"),
    )
    _index("effects", "turn_id")
    op.create_table(
        "snapshots",
        *_text("snapshot_id", "thread_id", "turn_id"),
        *_big("seq"),
        *_text("branch_id"),
        *_whole("layer", null=True),
        *_whole("paths"),
        *_big("bytes"),
        *_text("created_at"),
        _to_session("snapshots"),
        _to_turn("snapshots"),
        _key("snapshots", "snapshot_id"),
    )
    _index("snapshots", "thread_id")
    _index("snapshots", "turn_id")


def _deliveries() -> None:
    op.create_table(
        "inbox",
        *_text("id", "thread_id", "door", "dedupe_key", "kind", "sender", "body", "state"),
        *_text_or_null("turn_id"),
        *_text("received_at"),
        _to_session("inbox"),
        _to_turn("inbox"),
        _key("inbox", "id"),
        _unique("inbox", "door", "dedupe_key"),
    )
    _index("inbox", "thread_id", "state")
    _index("inbox", "turn_id")
    _index("inbox", "received_at")
    op.create_table(
        "outbox",
        *_text("id", "thread_id"),
        *_text_or_null("turn_id"),
        *_text("door", "address"),
        *_whole("part"),
        *_text("body", "dedupe_key", "state"),
        *_whole("attempts"),
        *_text_or_null("next_at", "receipt", "last_error"),
        _to_session("outbox"),
        _to_turn("outbox"),
        _key("outbox", "id"),
        _unique("outbox", "door", "dedupe_key", "part"),
    )
    _index("outbox", "thread_id")
    _index("outbox", "turn_id")
    _index("outbox", "state", "next_at")


def _money() -> None:
    op.create_table(
        "usage",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        *_text("thread_id"),
        *_text_or_null("turn_id"),
        *_text("agent", "purpose", "model"),
        *_big("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
        sa.Column("cost", sa.Float(), nullable=True),
        sa.Column("priced", sa.Boolean(), nullable=False),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        *_text("at"),
        _to_session("usage"),
        _to_turn("usage"),
        _key("usage", "id"),
    )
    _index("usage", "thread_id")
    _index("usage", "turn_id")
    _index("usage", "at")
    op.create_table(
        "budgets",
        *_text("scope", "key", "window"),
        sa.Column("limit_usd", sa.Float(), nullable=True),
        *_big("limit_tokens", null=True),
        _key("budgets", "scope", "key", "window"),
    )
    op.create_table(
        "reservations",
        sa.Column("id", _ROW_ID, autoincrement=True, nullable=False),
        *_text("scope", "key"),
        *_text_or_null("turn_id"),
        sa.Column("usd", sa.Float(), nullable=True),
        *_big("tokens", null=True),
        *_text("state"),
        _to_turn("reservations"),
        _key("reservations", "id"),
    )
    _index("reservations", "turn_id")
    _index("reservations", "scope", "key", "state")
