"""How many characters a session's own records hold, for its limit of 1 GB (SE-48)."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_FILL = """
UPDATE sessions SET bytes =
    coalesce((SELECT sum(length(body)) FROM journal WHERE journal.thread_id = sessions.thread_id), 0)
"""


def upgrade() -> None:
    """Add the column and count what is there."""
    op.add_column("sessions", sa.Column("bytes", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(_FILL)
