"""What was said in sessions, for searches (UI-82); filled from the journal by the first of them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "session_texts",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("upto", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["sessions.thread_id"], name="fk_session_texts_thread_id"),
        sa.PrimaryKeyConstraint("thread_id", "part", name="pk_session_texts"),
    )
