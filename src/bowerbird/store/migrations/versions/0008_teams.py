"""Teams: teammates, their phases, mail and requests (DE-46 … DE-67)."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    _members()
    _phases()
    _messages()
    _requests()


def _members() -> None:
    op.create_table(
        "teammates",
        sa.Column("lead", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text()),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Text()),
        sa.ForeignKeyConstraint(["lead"], ["sessions.thread_id"], name="fk_teammates_lead"),
        sa.ForeignKeyConstraint(["thread_id"], ["sessions.thread_id"], name="fk_teammates_thread_id"),
        sa.PrimaryKeyConstraint("lead", "number", name="pk_teammates"),
        sa.UniqueConstraint("thread_id", name="uq_teammates_thread_id"),
    )
    op.create_index("ix_teammates_status", "teammates", ["status"])


def _phases() -> None:
    op.create_table(
        "team_phases",
        sa.Column("lead", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("n", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("fork", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("ended_at", sa.Text()),
        sa.Column("counted_in", sa.Text()),
        sa.ForeignKeyConstraint(["lead"], ["sessions.thread_id"], name="fk_team_phases_lead"),
        sa.PrimaryKeyConstraint("lead", "number", "n", name="pk_team_phases"),
    )


def _messages() -> None:
    op.create_table(
        "team_messages",
        sa.Column("lead", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("box", sa.Text(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("extra", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("read_at", sa.Text()),
        sa.ForeignKeyConstraint(["lead"], ["sessions.thread_id"], name="fk_team_messages_lead"),
        sa.PrimaryKeyConstraint("lead", "n", name="pk_team_messages"),
    )
    op.create_index("ix_team_messages_reader_read_at", "team_messages", ["reader", "read_at"])


def _requests() -> None:
    op.create_table(
        "team_requests",
        sa.Column("lead", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.Column("answered_at", sa.Text()),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["lead"], ["sessions.thread_id"], name="fk_team_requests_lead"),
        sa.PrimaryKeyConstraint("lead", "request_id", name="pk_team_requests"),
    )
    op.create_index("ix_team_requests_status_expires_at", "team_requests", ["status", "expires_at"])
