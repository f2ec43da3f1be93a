"""An imported dialogue as rows: session, turns, journal, usage (SE-46).

Here: those inserts inside a given transaction. Not here: where dialogues come from.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from sqlalchemy import Connection

from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso
from bowerbird.sessions.inbox.accept import TITLE_CHARS
from bowerbird.sessions.journal.audit_log import content_text
from bowerbird.sessions.journal.messages import message_views
from bowerbird.sessions.thread_ids import chat_of_thread
from bowerbird.sessions.transfer.import_files import Dialogue
from bowerbird.store.journal.journal import Record
from bowerbird.store.rows.sessions import SessionRow, insert_session
from bowerbird.store.rows.turns import ENDED, TurnRow, find_turn, insert_turn
from bowerbird.store.sql.tables import journal, usage

_KEPT = ("kind", "channel", "chat_id", "counter", "owner", "title", "preset", "system_prompt",
         "thinking_effort", "workspace", "created_at", "updated_at")  # fmt: skip
_UNFINISHED = (
    '{"type":"Imported","message":"the export was made in the middle of this turn","retryable":true}'
)
_CHUNK = 500


def insert_dialogue(
    connection: Connection, dialogue: Dialogue, bodies: Sequence[str], workspace: str | None, data_dir: Path
) -> None:
    """Write a dialogue as a session that goes on with its next message.

    Args:
        bodies: the records' bodies as they are stored.
        workspace: used when the dialogue does not name its directory.
        data_dir: where the branch of a session that was exported here still may be.
    """
    session = _session(dialogue, workspace, data_dir)
    insert_session(connection, session)
    known = _turns(connection, dialogue)
    rows = [
        {
            "thread_id": dialogue.thread_id, "seq": r.seq, "turn_id": known.get(r.turn or ""),
            "epoch": r.epoch, "v": r.v, "type": r.type, "at": r.at, "body": body,
        }
        for r, body in zip(dialogue.records, bodies, strict=True)
    ]  # fmt: skip
    for at in range(0, len(rows), _CHUNK):
        connection.execute(journal.insert(), rows[at : at + _CHUNK])
    spent = [row for record in dialogue.records if (row := _usage(dialogue.thread_id, record, known))]
    if spent:
        connection.execute(usage.insert(), spent)


def _session(dialogue: Dialogue, workspace: str | None, data_dir: Path) -> SessionRow:
    about, records = dialogue.about, dialogue.records
    chat = chat_of_thread(dialogue.thread_id)
    values: dict[str, Any] = {
        "kind": "web" if chat is None else "chat",
        "channel": None if chat is None else chat.channel,
        "chat_id": None if chat is None else chat.chat_id,
        "counter": 0 if chat is None else chat.counter,
        "title": _title(records),
        "workspace": workspace,
        "created_at": records[0].at or now_iso(),
        "updated_at": records[-1].at or now_iso(),
    }
    values |= {key: about[key] for key in _KEPT if about.get(key) is not None}
    flags = about.get("flags")
    branch = about.get("branch_id")
    is_here = isinstance(branch, str) and "/" not in branch and (data_dir / "branches" / branch).is_dir()
    return SessionRow(
        thread_id=dialogue.thread_id,
        flags=cast("dict[str, Any]", flags) if isinstance(flags, dict) else {},
        branch_id=branch if is_here else None,
        last_seq=records[-1].seq,
        messages=len(message_views(records)),
        **values,
    )


def _title(records: Sequence[Record]) -> str | None:
    first = next((record for record in records if record.type == "user"), None)
    return None if first is None else content_text(first.body.get("content"))[:TITLE_CHARS] or None


def _turns(connection: Connection, dialogue: Dialogue) -> dict[str, str]:
    """Insert a turn for each `turn_started`; one whose end is missing can be resumed. Returns ids by id.

    A fork's inherited turns are in the parent's export too: ids are unique, so the second gets others.
    """
    ends = {r.turn: r for r in dialogue.records if r.type == "turn_ended"}
    known: dict[str, str] = {}
    numbers: set[int] = set()
    for record in dialogue.records:
        if record.turn is None or record.turn in known:
            continue
        started = record.body if record.type == "turn_started" else {}
        turn_id = record.turn if find_turn(connection, record.turn) is None else new_id("t")
        number = started.get("n")
        if not isinstance(number, int) or number in numbers:
            number = max(numbers, default=0) + 1
        numbers.add(number)
        known[record.turn] = turn_id
        insert_turn(connection, _turn(dialogue.thread_id, turn_id, number, record, ends.get(record.turn)))
    return known


def _turn(thread_id: str, turn_id: str, number: int, first: Record, end: Record | None) -> TurnRow:
    body: Mapping[str, Any] = {} if end is None else end.body
    state = str(body.get("state")) if body.get("state") in ENDED else "failed"
    used = cast("dict[str, Any]", body.get("usage") or {})
    error = body.get("error")
    return TurnRow(
        turn_id=turn_id,
        thread_id=thread_id,
        n=number,
        kind=str(first.body.get("kind") or "user"),
        state=state,
        attempt=1,
        epoch=first.epoch,
        stop_reason=str(body.get("stop_reason") or "error"),
        error=_UNFINISHED if end is None else None if error is None else msgspec.json.encode(error).decode(),
        usage=msgspec.json.encode(used).decode() if used else None,
        cost=used.get("cost") if isinstance(used.get("cost"), float | int) else None,
        started_at=first.at,
        ended_at=first.at if end is None else end.at,
    )


def _usage(thread_id: str, record: Record, known: Mapping[str, str]) -> dict[str, Any] | None:
    used = cast("dict[str, Any]", record.body.get("usage") or {}) if record.type == "assistant" else {}
    if not used.get("model_calls") and not used.get("input_tokens"):
        return None
    cost = used.get("cost")
    return {
        "thread_id": thread_id, "turn_id": known.get(record.turn or ""), "agent": "main", "purpose": "main",
        "model": str(record.body.get("model") or ""), "input_tokens": int(used.get("input_tokens") or 0),
        "output_tokens": int(used.get("output_tokens") or 0),
        "cache_read_tokens": int(used.get("cache_read_tokens") or 0),
        "cache_write_tokens": int(used.get("cache_write_tokens") or 0),
        "cost": cost, "priced": cost is not None, "estimated": bool(used.get("estimated")), "at": record.at,
    }  # fmt: skip
