"""What the HTTP door keeps: answers to repeated requests (SV-3), traces of model calls (SV-33)."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables, empty."""
    op.create_table(
        "answers",
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "key", name="pk_answers"),
    )
    op.create_index("ix_answers_at", "answers", ["at"])
    op.create_table(
        "traces",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("bytes", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("thread_id", "n", name="pk_traces"),
        sa.ForeignKeyConstraint(["thread_id"], ["sessions.thread_id"], name="fk_traces_thread_id"),
    )
    op.create_index("ix_traces_at", "traces", ["at"])
