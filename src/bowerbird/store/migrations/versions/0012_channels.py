"""Chat channels: who may write, what arrived, what was shown with buttons (AS-5 … AS-21)."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables."""
    _people()
    op.create_table(
        "channel_updates",
        sa.Column("id", ROW_ID, autoincrement=True, nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("dedupe_key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_channel_updates"),
    )
    op.create_index(
        "uq_channel_updates_channel_dedupe_key", "channel_updates", ["channel", "dedupe_key"], unique=True
    )
    op.create_index("ix_channel_updates_at", "channel_updates", ["at"])
    op.create_index("ix_channel_updates_state_channel", "channel_updates", ["state", "channel"])
    _shown()


def _people() -> None:
    op.create_table(
        "channel_users",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "user_id", name="pk_channel_users"),
    )
    op.create_table(
        "channel_codes",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.Column("used_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("sha256", name="pk_channel_codes"),
    )
    op.create_index("ix_channel_codes_expires_at", "channel_codes", ["expires_at"])
    op.create_table(
        "channel_guesses",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("hour", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "user_id", "hour", name="pk_channel_guesses"),
    )


def _shown() -> None:
    op.create_table(
        "channel_cards",
        sa.Column("card_id", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("card_id", name="pk_channel_cards"),
    )
    op.create_index("ix_channel_cards_expires_at", "channel_cards", ["expires_at"])
    op.create_index("ix_channel_cards_thread_id", "channel_cards", ["thread_id"])
    op.create_table(
        "channel_buttons",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("card_id", sa.Text(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("argument", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_channel_buttons"),
    )
    op.create_index("ix_channel_buttons_card_id", "channel_buttons", ["card_id"])
    op.create_table(
        "channel_sent",
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("message_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("channel", "key", "part", name="pk_channel_sent"),
    )
    op.create_index("ix_channel_sent_at", "channel_sent", ["at"])
