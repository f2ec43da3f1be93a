"""The tables of chat channels: who may write, what arrived, what was shown with buttons (AS-5 … AS-21).

Here: columns, keys and indexes of the newest schema; `tables.py` exports them with all others. Not here:
queries (`store/channels/`), migrations.

None of them refers to a session's row: what was shown in a chat outlives the session for some days.
"""

from sqlalchemy import Column, Index, Integer, Table, Text

from bowerbird.store.sql.schema import RowId, metadata

channel_users = Table(  # the stored list, which is united with that of the settings
    "channel_users",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("role", Text, nullable=False),  # owner guest denied
    Column("name", Text, nullable=False, default=""),
    Column("by", Text, nullable=False),  # cli, or the code that was used
    Column("at", Text, nullable=False),
)

channel_codes = Table(  # one-time codes that add a user; the code itself is nowhere
    "channel_codes",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("expires_at", Text, nullable=False, index=True),
    Column("used_by", Text),
)

channel_guesses = Table(  # wrong codes of one sender in one hour
    "channel_guesses",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("hour", Text, primary_key=True),
    Column("n", Integer, nullable=False),
)

channel_updates = Table(  # what arrived and is no plain message: commands, buttons, files; also what failed
    "channel_updates",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("channel", Text, nullable=False),
    Column("dedupe_key", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting done set_aside
    Column("attempts", Integer, nullable=False, default=0),
    Column("body", Text, nullable=False),  # JSON of the message, "" once it is done
    Column("at", Text, nullable=False, index=True),
    Index("uq_channel_updates_channel_dedupe_key", "channel", "dedupe_key", unique=True),
    Index(None, "state", "channel"),
)

channel_cards = Table(  # a message with buttons
    "channel_cards",
    metadata,
    Column("card_id", Text, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("chat_id", Text, nullable=False),
    Column("message_id", Text),
    Column("thread_id", Text, nullable=False, index=True),
    Column("kind", Text, nullable=False),  # review, ask, retry, or a part's own
    Column("body", Text, nullable=False),  # JSON
    Column("state", Text, nullable=False),  # open taken done
    Column("claim", Text),  # dedupe key of the press that took it
    Column("result", Text),
    Column("expires_at", Text, nullable=False, index=True),
)

channel_buttons = Table(
    "channel_buttons",
    metadata,
    Column("key", Text, primary_key=True),  # 128 random bits
    Column("card_id", Text, nullable=False, index=True),
    Column("verb", Text, nullable=False),
    Column("argument", Text, nullable=False, default=""),
    Column("who", Text, nullable=False),  # owner, any, or a user's id
)

channel_sent = Table(  # which parts of a parcel arrived
    "channel_sent",
    metadata,
    Column("channel", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("message_id", Text, nullable=False),
    Column("at", Text, nullable=False, index=True),
)

CHANNEL_TABLES = (
    channel_users, channel_codes, channel_guesses, channel_updates, channel_cards, channel_buttons,
    channel_sent,
)  # fmt: skip
