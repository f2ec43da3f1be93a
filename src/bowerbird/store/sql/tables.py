"""The tables of the sessions chapter (SE §2), as SQLAlchemy Core knows them.

Here: columns, keys and indexes of the newest schema. Not here: how a database gets there, queries.

Times are text in the record form (`core/timestamps.py`), which sorts; structures are JSON, by msgspec.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
)

from bowerbird.store.sql import channel_tables, provider_tables, schedule_tables, team_tables
from bowerbird.store.sql.schema import RowId, metadata

BESIDE = (channel_tables, provider_tables, schedule_tables, team_tables)  # known through this

sessions = Table(
    "sessions",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # chat web cli scheduler subagent teammate
    Column("channel", Text),
    Column("chat_id", Text),
    Column("counter", Integer, nullable=False, default=0),
    Column("owner", Text),
    Column("title", Text),
    Column("preset", Text),
    Column("system_prompt", Text),
    Column("flags", Text, nullable=False, default="{}"),
    Column("thinking_effort", Text),
    Column("auto_approve", Boolean, nullable=False, default=False),
    Column("workspace", Text),
    Column("branch_id", Text),
    Column("status", Text, nullable=False, default="idle"),
    Column("last_seq", BigInteger, nullable=False, default=0),
    Column("parent_thread_id", Text, ForeignKey("sessions.thread_id"), index=True),
    Column("parent_seq", BigInteger),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False, index=True),
    Column("deleted_at", Text),
    Column("changed_files", Integer, nullable=False, default=0, server_default="0"),
    Column("messages", Integer, nullable=False, default=0, server_default="0"),
    Column("bytes", BigInteger, nullable=False, default=0, server_default="0"),
    Index(None, "channel", "chat_id"),
)

inbox = Table(
    "inbox",
    metadata,
    Column("id", Text, primary_key=True),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False),
    Column("door", Text, nullable=False),
    Column("dedupe_key", Text, nullable=False),
    Column("kind", Text, nullable=False),  # message steer interrupt answer notification
    Column("sender", Text, nullable=False, default="{}"),
    Column("body", Text, nullable=False),
    Column("state", Text, nullable=False, default="queued"),  # queued taken done cancelled
    Column("turn_id", Text, ForeignKey("turns.turn_id"), index=True),
    Column("received_at", Text, nullable=False, index=True),
    UniqueConstraint("door", "dedupe_key"),
    Index(None, "thread_id", "state"),
)

turns = Table(
    "turns",
    metadata,
    Column("turn_id", Text, primary_key=True),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False),
    Column("n", Integer, nullable=False),
    Column("kind", Text, nullable=False, default="user"),
    Column("state", Text, nullable=False, default="queued", index=True),
    Column("waiting_for", Text),
    Column("attempt", Integer, nullable=False, default=0),
    Column("epoch", BigInteger, nullable=False, default=0),
    Column("stop_reason", Text),
    Column("error", Text),
    Column("usage", Text),
    Column("cost", Float),
    Column("snapshot_id", Text),
    Column("started_at", Text),
    Column("ended_at", Text),
    UniqueConstraint("thread_id", "n"),
)

journal = Table(
    "journal",
    metadata,
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("turn_id", Text, ForeignKey("turns.turn_id"), index=True),
    Column("epoch", BigInteger, nullable=False),
    Column("v", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("body", Text, nullable=False),
)

effects = Table(
    "effects",
    metadata,
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("call_id", Text, primary_key=True),
    Column("turn_id", Text, ForeignKey("turns.turn_id"), nullable=False, index=True),
    Column("tool", Text, nullable=False),
    Column("class", Text, nullable=False),  # read branch store keyed external
    Column("state", Text, nullable=False),  # intent outcome abandoned
    Column("intent_seq", BigInteger),
    Column("outcome_seq", BigInteger),
    Column("mark", Text),
)

leases = Table(
    "leases",
    metadata,
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("holder", Text),
    Column("expires_at", Text, nullable=False),
)

executors = Table(
    "executors",
    metadata,
    Column("executor_id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("heartbeat_at", Text, nullable=False),
)

snapshots = Table(
    "snapshots",
    metadata,
    Column("snapshot_id", Text, primary_key=True),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False, index=True),
    Column("turn_id", Text, ForeignKey("turns.turn_id"), nullable=False, index=True),
    Column("seq", BigInteger, nullable=False),
    Column("branch_id", Text, nullable=False),
    Column("layer", Integer),
    Column("paths", Integer, nullable=False, default=0),
    Column("bytes", BigInteger, nullable=False, default=0),
    Column("created_at", Text, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Text, primary_key=True),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False, index=True),
    Column("turn_id", Text, ForeignKey("turns.turn_id"), index=True),
    Column("door", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("part", Integer, nullable=False, default=0),
    Column("body", Text, nullable=False),
    Column("dedupe_key", Text, nullable=False),
    Column("state", Text, nullable=False, default="pending"),  # pending sending sent dead
    Column("attempts", Integer, nullable=False, default=0),
    Column("next_at", Text),
    Column("receipt", Text),
    Column("last_error", Text),
    UniqueConstraint("door", "dedupe_key", "part"),
    Index(None, "state", "next_at"),
)

usage = Table(
    "usage",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False, index=True),
    Column("turn_id", Text, ForeignKey("turns.turn_id"), index=True),
    Column("agent", Text, nullable=False, default="main"),
    Column("purpose", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("input_tokens", BigInteger, nullable=False, default=0),
    Column("output_tokens", BigInteger, nullable=False, default=0),
    Column("cache_read_tokens", BigInteger, nullable=False, default=0),
    Column("cache_write_tokens", BigInteger, nullable=False, default=0),
    Column("cost", Float),
    Column("priced", Boolean, nullable=False),
    Column("estimated", Boolean, nullable=False, default=False),
    Column("at", Text, nullable=False, index=True),
)

outcomes = Table(  # what became of the changes of each turn
    "outcomes",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False, index=True),
    Column("turn_id", Text),
    Column("agent", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("files", Text, nullable=False),  # JSON, path → state
    Column("state", Text, nullable=False),
    Column("at", Text, nullable=False, index=True),
)

budgets = Table(
    "budgets",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("window", Text, primary_key=True),
    Column("limit_usd", Float),
    Column("limit_tokens", BigInteger),
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("scope", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("turn_id", Text, ForeignKey("turns.turn_id"), index=True),
    Column("usd", Float),
    Column("tokens", BigInteger),
    Column("state", Text, nullable=False),  # reserved settled
    Index(None, "scope", "key", "state"),
)

counters = Table(
    "counters",
    metadata,
    Column("base_key", Text, primary_key=True),
    Column("n", Integer, nullable=False),
)

bridge_states = Table(
    "bridge_states",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("body", Text, nullable=False),
)

memory_versions = Table(
    "memory_versions",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("at", Text, nullable=False),
    Index(None, "owner", "workspace", "id"),
)

permission_rules = Table(  # what people always allow
    "permission_rules",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),  # "" = the one user of a machine
    Column("scope", Text, nullable=False),  # session workspace everywhere
    Column("target", Text, nullable=False),  # thread id, workspace's path, ""
    Column("rule", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Text, nullable=False),
    UniqueConstraint("owner", "scope", "target", "rule"),
)

session_texts = Table(  # what was said, folded, for searches; made from the journal
    "session_texts",
    metadata,
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("upto", BigInteger, nullable=False),  # newest record that it covers
    Column("text", Text, nullable=False),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("source", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("raw", Text, nullable=False),
    Column("at", Text, nullable=False),
    Index(None, "source", "key"),
)

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

answers = Table(  # to repeated requests of the HTTP door
    "answers",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("at", Text, nullable=False, index=True),
)

traces = Table(  # requests and answers of models, where tracing is on
    "traces",
    metadata,
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("n", BigInteger, primary_key=True, autoincrement=False),
    Column("turn_id", Text),
    Column("at", Text, nullable=False, index=True),
    Column("bytes", Integer, nullable=False),
    Column("body", Text, nullable=False),
)

tokens = Table(  # credentials of programs and people; the secret itself is nowhere
    "tokens",
    metadata,
    Column("token_id", Text, primary_key=True),
    Column("sha256", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False, index=True),
    Column("role", Text, nullable=False),  # viewer user admin
    Column("user", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("expires_at", Text),
    Column("revoked_at", Text),
)

tickets = Table(  # one-time entrances for sockets, made from a credential
    "tickets",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("caller", Text, nullable=False),  # JSON
    Column("expires_at", Text, nullable=False, index=True),
)

boards = Table(  # one task board per workspace
    "boards",
    metadata,
    Column("board", Text, primary_key=True),  # the workspace's path, or `session:` and a thread id
    Column("next_id", BigInteger, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("created_at", Text, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("board", Text, ForeignKey("boards.board"), primary_key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("subject", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("status", Text, nullable=False),  # pending in_progress completed
    Column("owner", Text, nullable=False),
    Column("active_form", Text, nullable=False),  # "" = follows from the subject
    Column("metadata", Text, nullable=False),  # JSON
    Column("session", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
)

task_edges = Table(
    "task_edges",
    metadata,
    Column("board", Text, ForeignKey("boards.board"), primary_key=True),
    Column("blocker", BigInteger, primary_key=True, autoincrement=False),
    Column("blocked", BigInteger, primary_key=True, autoincrement=False),
    Index(None, "board", "blocked"),
)

todos = Table(  # the list of one session
    "todos",
    metadata,
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("items", Text, nullable=False),  # JSON
    Column("updated_at", Text, nullable=False),
)

notifications = Table(  # what a session's model is told once, before its next call
    "notifications",
    metadata,
    Column("id", Text, primary_key=True),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False),
    Column("source", Text, nullable=False),  # background
    Column("key", Text, nullable=False),
    Column("body", Text, nullable=False),  # JSON: what viewers are told
    Column("content", Text, nullable=False),  # what the model is told
    Column("wakes", Boolean, nullable=False),
    Column("state", Text, nullable=False),  # pending delivered
    Column("created_at", Text, nullable=False),
    UniqueConstraint("thread_id", "source", "key"),
    Index(None, "state", "thread_id"),
)

subagents = Table(  # who a session's children are, and what became of them
    "subagents",
    metadata,
    Column("parent", Text, ForeignKey("sessions.thread_id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("thread_id", Text, ForeignKey("sessions.thread_id"), nullable=False),
    Column("root", Text, nullable=False),
    Column("root_turn", Text, nullable=False),
    Column("state", Text, nullable=False),  # running finished failed merged discarded
    Column("body", Text, nullable=False),  # JSON: the whole record
    UniqueConstraint("thread_id"),
    Index(None, "root", "state"),
    Index(None, "root_turn"),
)

# Who is told through which browser, by web push.
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
