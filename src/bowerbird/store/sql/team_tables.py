"""The tables of teams: who belongs to one, what they do, write and ask (DE-46 … DE-67).

Here: columns, keys and indexes of the newest schema; `tables.py` exports them with all others. Not here:
queries (`rows/teams.py`, `rows/team_mail.py`), migrations.

`lead` is the session whose team it is; rows go with it.
"""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint

from bowerbird.store.sql.schema import metadata

teammates = Table(  # who a session's teammates are and were
    "teammates",
    metadata,
    Column("lead", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),  # unique among the living ones
    Column("role", Text, nullable=False),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False),
    Column("status", Text, nullable=False),  # working idle shutdown error interrupted
    Column("holder", Text),  # the executor that keeps it going
    Column("created_at", Text, nullable=False),
    Column("ended_at", Text),
    UniqueConstraint("thread_id"),
    Index(None, "status"),
)

team_phases = Table(  # one turn of a teammate each, with the fork it works on
    "team_phases",
    metadata,
    Column("lead", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("turn_id", Text, nullable=False),
    Column("fork", Text, nullable=False),
    Column("state", Text, nullable=False),  # working waiting merged kept
    Column("ended_at", Text),
    Column("counted_in", Text),  # the lead's turn whose usage includes it
)

team_messages = Table(  # what a team writes to each other
    "team_messages",
    metadata,
    Column("lead", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("box", Text, nullable=False),  # name of the recipient
    Column("reader", Text, nullable=False),  # the recipient's thread
    Column("type", Text, nullable=False),
    Column("sender", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("extra", Text, nullable=False),  # JSON
    Column("at", Text, nullable=False),
    Column("read_at", Text),
    Index(None, "reader", "read_at"),
)

team_requests = Table(  # shutdown and plan requests, and what became of them
    "team_requests",
    metadata,
    Column("lead", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("request_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # shutdown plan
    Column("number", Integer, nullable=False),  # of the teammate
    Column("status", Text, nullable=False),  # pending approved rejected expired void
    Column("created_at", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
    Column("answered_at", Text),
    Column("detail", Text, nullable=False),
    Index(None, "status", "expires_at"),
)
