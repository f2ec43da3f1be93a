"""Tokens of the server and tickets of its sockets (SV-54, SV-55)."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add both tables."""
    op.create_table(
        "tokens",
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text()),
        sa.Column("revoked_at", sa.Text()),
        sa.PrimaryKeyConstraint("token_id", name="pk_tokens"),
        sa.UniqueConstraint("sha256", name="uq_tokens_sha256"),
    )
    op.create_index("ix_tokens_name", "tokens", ["name"])
    op.create_table(
        "tickets",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_tickets"),
    )
    op.create_index("ix_tickets_expires_at", "tickets", ["expires_at"])
