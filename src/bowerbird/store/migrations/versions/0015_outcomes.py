"""What became of the changes that each turn made."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "outcomes",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.Text()),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outcomes"),
        sa.ForeignKeyConstraint(["thread_id"], ["sessions.thread_id"], name="fk_outcomes_thread_id"),
    )
    op.create_index("ix_outcomes_thread_id", "outcomes", ["thread_id"])
    op.create_index("ix_outcomes_at", "outcomes", ["at"])
