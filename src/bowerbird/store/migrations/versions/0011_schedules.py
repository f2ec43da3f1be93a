"""Scheduled tasks and their runs (AS-29 … AS-39); tasks that were kept as values until now move there."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_PREFIX = "schedule:"
_COPIED = ("id", "prompt", "type", "value", "channel", "chat_id", "created_at", "last_run", "active")


def upgrade() -> None:
    """Add the tables and fill the first."""
    tasks = op.create_table(
        "scheduled_tasks",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("tz", sa.Text()),
        sa.Column("channel", sa.Text()),
        sa.Column("chat_id", sa.Text()),
        sa.Column("owner", sa.Text()),
        sa.Column("workspace", sa.Text()),
        sa.Column("model_tier", sa.Text()),
        sa.Column("catch_up", sa.Text(), nullable=False),
        sa.Column("notify", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("made_by", sa.Text()),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("last_run", sa.Text()),
        sa.Column("next_run", sa.Text()),
        sa.Column("missed", sa.Integer(), nullable=False),
        sa.Column("last_status", sa.Text()),
        sa.Column("fail_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scheduled_tasks"),
    )
    op.create_index("ix_scheduled_tasks_active_next_run", "scheduled_tasks", ["active", "next_run"])
    op.create_index("ix_scheduled_tasks_owner_active", "scheduled_tasks", ["owner", "active"])
    op.create_index("ix_scheduled_tasks_made_by", "scheduled_tasks", ["made_by"])
    op.create_table(
        "scheduled_runs",
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("due", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Text()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("cost", sa.Float()),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.ForeignKeyConstraint(["task_id"], ["scheduled_tasks.id"], name="fk_scheduled_runs_task_id"),
        sa.PrimaryKeyConstraint("task_id", "due", name="pk_scheduled_runs"),
    )
    op.create_index("ix_scheduled_runs_turn_id", "scheduled_runs", ["turn_id"])
    op.create_index("ix_scheduled_runs_ended_at", "scheduled_runs", ["ended_at"])
    _move(tasks)


def _move(tasks: sa.Table) -> None:
    """Imported tasks lay in `meta`, one JSON object per key; one that is no object stays there."""
    connection = op.get_bind()
    meta = sa.table("meta", sa.column("key", sa.Text()), sa.column("value", sa.Text()))
    here = meta.c.key.startswith(_PREFIX, autoescape=True)
    for key, value in connection.execute(sa.select(meta.c.key, meta.c.value).where(here)).all():
        row = _row(value)
        if row is not None:
            connection.execute(tasks.insert().values(**row))
            connection.execute(meta.delete().where(meta.c.key == key))


def _row(value: str) -> dict[str, Any] | None:
    try:
        task = json.loads(value)
        row = {name: task[name] for name in _COPIED}
    except (ValueError, KeyError, TypeError):
        return None
    return {
        **row, "model_tier": task.get("model_tier"), "catch_up": "one", "notify": "silent",
        "paused": False, "missed": 0, "fail_count": 0,
    }  # fmt: skip
