"""The tables of scheduled tasks: what runs when, and what became of each run (AS-29 … AS-39).

Here: columns, keys and indexes of the newest schema; `tables.py` exports them with all others. Not here:
queries (`rows/schedules.py`), when a task runs (`bowerbird.scheduler`), migrations.

A run names its turn without a foreign key: its history outlives the session.
"""

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, Table, Text

from bowerbird.store.sql.schema import metadata

scheduled_tasks = Table(
    "scheduled_tasks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("prompt", Text, nullable=False),
    Column("type", Text, nullable=False),  # cron interval once
    Column("value", Text, nullable=False),
    Column("tz", Text),  # None until a scheduler looks: `scheduler.timezone`
    Column("channel", Text),
    Column("chat_id", Text),
    Column("owner", Text),
    Column("workspace", Text),  # None = the server's own
    Column("model_tier", Text),
    Column("catch_up", Text, nullable=False),  # one skip all
    Column("notify", Text, nullable=False),  # silent loud never
    Column("created_at", Text, nullable=False),
    Column("made_by", Text),  # the scheduled turn that made it
    Column("active", Boolean, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("last_run", Text),
    Column("next_run", Text),
    Column("missed", Integer, nullable=False),  # due times that passed while no server ran
    Column("last_status", Text),
    Column("fail_count", Integer, nullable=False),
    Index(None, "active", "next_run"),
    Index(None, "owner", "active"),
    Index(None, "made_by"),
)

scheduled_runs = Table(
    "scheduled_runs",
    metadata,
    Column("task_id", Text, ForeignKey("scheduled_tasks.id"), primary_key=True),
    Column("due", Text, primary_key=True),
    Column("turn_id", Text, nullable=False, index=True),
    Column("started_at", Text, nullable=False),
    Column("ended_at", Text),
    Column("status", Text, nullable=False),  # running retrying done failed cancelled
    Column("cost", Float),
    Column("tries", Integer, nullable=False),  # after failures
    Column("retry_at", Text),
    Column("error", Text),
    Index(None, "ended_at"),
)
