"""Records whose bodies are JSON but not of their form: named in their place, and nothing else fails (SE-59)."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from bowerbird.agent.context.compaction import estimate_tokens, sent_view
from bowerbird.server.socket.translate import Closing, Translator
from bowerbird.sessions.journal.audit_log import audit_lines
from bowerbird.sessions.journal.history import load
from bowerbird.sessions.journal.messages import call_view, message_views
from bowerbird.sessions.live.from_journal import published_of
from bowerbird.store.journal.reading import read_records
from bowerbird.store.rows.sessions import SessionRow, insert_session
from bowerbird.store.sql.tables import journal, metadata

AT = "2026-01-01T00:00:00.000000+00:00"
USAGE = {"input_tokens": 1, "output_tokens": 1}
CALL = {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}}
TEXT = {"type": "text", "text": "hello"}
WHOLE = {
    "turn_started": {"n": 1, "inbox": ["i"], "kind": "user", "model": "m", "mode": "normal"},
    "user": {"content": [TEXT], "sender": {"id": "u", "name": "U", "door": "web"}},
    "assistant": {"content": [TEXT, CALL], "stop_reason": "tool_use", "model": "m", "usage": USAGE},
    "tool_intent": {"call": "c1", "tool": "bash", "input": {"command": "ls"}, "class": "branch", "mark": "m"},
    "tool_outcome": {"call": "c1", "status": "ok", "content": [TEXT], "data": {}, "ms": 3},
    "injected": {"content": [TEXT], "source": "runtime", "ids": ["a"]},
    "request": {
        "id": "r",
        "kind": "approval",
        "calls": ["c1"],
        "tools": [{"name": "bash", "input": {}, "id": "c1"}],
    },
    "answer": {"id": "r", "decision": "approve", "by": "u"},
    "compaction": {"from_seq": 1, "to_seq": 2, "summary": "short", "reason": "auto"},
    "model_switch": {"tier": "big", "by": "user"},
    "settings": {"enable_plan_mode": True, "by": "user"},
    "turn_ended": {
        "state": "done",
        "stop_reason": "end_turn",
        "usage": USAGE,
        "snapshot": None,
        "error": None,
    },
    "unheard_of": {"a": 1},
}
odd = st.sampled_from(
    (None, True, 3, -1, 1.5, "", "x", [], [None], [3], ["x"], [{}], {}, {"x": None}, [{"type": "text"}],
     [{"type": "tool_use"}], [{"type": "tool_use", "id": 3, "name": None, "input": "x"}], [{"type": "image"}])
)  # fmt: skip


@st.composite
def bodies(draw):
    """A record's type and its body, in which some members are wrong or missing."""
    kind = draw(st.sampled_from(sorted(WHOLE)))
    body = dict(WHOLE[kind])
    for name in draw(st.sets(st.sampled_from(sorted(body)), max_size=2)):
        if draw(st.booleans()):
            body[name] = draw(odd)
        else:
            del body[name]
    return kind, draw(st.sampled_from(("t1", "t1", "t2", None))), body


rows = st.lists(bodies(), max_size=8)


@settings(max_examples=300)
@given(rows)
def test_no_body_keeps_a_session_from_being_read(rows):
    with create_engine("sqlite://").connect() as connection:
        metadata.create_all(connection)
        insert_session(connection, SessionRow(thread_id="web_1", kind="web"))
        stored = [
            {"thread_id": "web_1", "seq": seq, "turn_id": turn, "epoch": 1, "v": 1, "type": kind, "at": AT,
             "body": json.dumps(body)}
            for seq, (kind, turn, body) in enumerate(rows, 1)
        ]  # fmt: skip
        if stored:
            connection.execute(journal.insert(), stored)
        records = read_records(connection, "web_1")
    assert [record.seq for record in records] == list(range(1, len(rows) + 1))
    for record, (kind, _, body) in zip(records, rows, strict=True):
        assert record.type == kind or record.body["raw"] == json.dumps(body)
        # As JSON: to Python True is 1.
        assert record.type == kind or json.dumps(body) != json.dumps(WHOLE[kind])
    loaded = load(records, "t1")
    estimate_tokens(sent_view(loaded.history).messages)
    message_views(records)
    call_view(records, "c1")
    audit_lines(records, "web")
    translator = Translator(effort="high", replay=True, aliases={})
    for published in published_of(records, "web_1"):
        for frame in translator.frames(published, Closing()):
            assert frame.text
