"""Task boards, lists of sessions, notifications (DE-29, DE-32 … DE-45)."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    _boards()
    op.create_table(
        "todos",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("items", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["sessions.thread_id"], name="fk_todos_thread_id"),
        sa.PrimaryKeyConstraint("thread_id", name="pk_todos"),
    )
    op.create_table(
        "notifications",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("wakes", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["sessions.thread_id"], name="fk_notifications_thread_id"),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
        sa.UniqueConstraint("thread_id", "source", "key", name="uq_notifications_thread_id_source_key"),
    )
    op.create_index("ix_notifications_state_thread_id", "notifications", ["state", "thread_id"])


def _boards() -> None:
    op.create_table(
        "boards",
        sa.Column("board", sa.Text(), nullable=False),
        sa.Column("next_id", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("board", name="pk_boards"),
    )
    texts = ("subject", "description", "status", "owner", "active_form", "metadata", "session")
    op.create_table(
        "tasks",
        sa.Column("board", sa.Text(), nullable=False),
        sa.Column("id", sa.BigInteger(), nullable=False, autoincrement=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in texts),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["board"], ["boards.board"], name="fk_tasks_board"),
        sa.PrimaryKeyConstraint("board", "id", name="pk_tasks"),
    )
    op.create_table(
        "task_edges",
        sa.Column("board", sa.Text(), nullable=False),
        sa.Column("blocker", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("blocked", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.ForeignKeyConstraint(["board"], ["boards.board"], name="fk_task_edges_board"),
        sa.PrimaryKeyConstraint("board", "blocker", "blocked", name="pk_task_edges"),
    )
    op.create_index("ix_task_edges_board_blocked", "task_edges", ["board", "blocked"])
