"""Tables of provider agents' sessions (PR-30), as SQLAlchemy Core knows them.

Here: who talked with which agent, and what was said. Not here: queries, agents.
"""

from sqlalchemy import Column, Index, Table, Text

from bowerbird.store.sql.schema import RowId, metadata

provider_sessions = Table(
    "provider_sessions",
    metadata,
    Column("session_id", Text, primary_key=True),
    Column("agent_name", Text, nullable=False),
    Column("owner", Text, nullable=False, index=True),  # "" = the one user of a machine
    Column("native_session_id", Text),  # the vendor's own name of it
    Column("thread_id", Text, index=True),  # the session whose branch it works on
    Column("branch_id", Text),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("metadata", Text, nullable=False),
)

provider_messages = Table(
    "provider_messages",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("session_id", Text, nullable=False),
    Column("role", Text, nullable=False),  # user assistant system
    Column("content", Text, nullable=False),
    Column("timestamp", Text, nullable=False),
    Column("metadata", Text, nullable=False),
    Index("ix_provider_messages_session_id", "session_id", "id"),
)
