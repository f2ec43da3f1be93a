"""Records of subagents (DE-4)."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "subagents",
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("root_turn", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["parent"], ["sessions.thread_id"], name="fk_subagents_parent"),
        sa.ForeignKeyConstraint(["thread_id"], ["sessions.thread_id"], name="fk_subagents_thread_id"),
        sa.PrimaryKeyConstraint("parent", "number", name="pk_subagents"),
        sa.UniqueConstraint("thread_id", name="uq_subagents_thread_id"),
    )
    op.create_index("ix_subagents_root_state", "subagents", ["root", "state"])
    op.create_index("ix_subagents_root_turn", "subagents", ["root_turn"])
