"""Sessions of provider agents, and what was said in them (PR-30)."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both tables."""
    op.create_table(
        "provider_sessions",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("agent_name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("native_session_id", sa.Text()),
        sa.Column("thread_id", sa.Text()),
        sa.Column("branch_id", sa.Text()),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name="pk_provider_sessions"),
    )
    op.create_index("ix_provider_sessions_owner", "provider_sessions", ["owner"])
    op.create_index("ix_provider_sessions_thread_id", "provider_sessions", ["thread_id"])
    op.create_table(
        "provider_messages",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.Text(), nullable=False),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_provider_messages"),
    )
    op.create_index("ix_provider_messages_session_id", "provider_messages", ["session_id", "id"])
