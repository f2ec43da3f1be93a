"""What lists of sessions show without reading journals (SV-8); versions of memory texts (SE-44)."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_MESSAGES = """
UPDATE sessions SET messages =
    (SELECT count(*) FROM turns WHERE turns.thread_id = sessions.thread_id AND started_at IS NOT NULL)
    + (SELECT count(*) FROM turns WHERE turns.thread_id = sessions.thread_id AND state = 'done')
"""


def upgrade() -> None:
    """Add the columns; a branch of before counts as unchanged until its next turn ends."""
    op.add_column("sessions", sa.Column("changed_files", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("sessions", sa.Column("messages", sa.Integer(), nullable=False, server_default="0"))
    op.execute(_MESSAGES)
    op.create_table(
        "memory_versions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_memory_versions"),
    )
    op.create_index("ix_memory_versions_owner_workspace_id", "memory_versions", ["owner", "workspace", "id"])
