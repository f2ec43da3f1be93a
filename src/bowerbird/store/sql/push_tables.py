"""Tables of web push (UI-95), as SQLAlchemy Core knows them.

Here: who is told through which browser. Not here: queries, encryption, sending.
"""

from sqlalchemy import Column, Table, Text, UniqueConstraint

from bowerbird.store.sql.schema import metadata

push_subscriptions = Table(
    "push_subscriptions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False, index=True),  # "" = the one user of a machine
    Column("credential", Text, nullable=False),  # it ends with the token it was made with; "" = none
    Column("endpoint", Text, nullable=False),
    Column("p256dh", Text, nullable=False),
    Column("auth", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    UniqueConstraint("endpoint"),
)
