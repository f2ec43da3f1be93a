"""A session's records as people read them: messages, calls, open questions. Pure.

Here: folding records into `MessageView`, `CallView`, `PendingRequest`. Not here: reading
records, the model's history (`history.py`), wire forms of a door.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from bowerbird.core.timestamps import from_iso
from bowerbird.sessions.journal.audit_log import AnswerText, content_text
from bowerbird.sessions.values import CallView, MessageView, PendingRequest
from bowerbird.store.journal.journal import Record

_SHOWN_ENDS = ("done", "cancelled", "interrupted")


def message_views(records: Iterable[Record], limit: int | None = None) -> list[MessageView]:
    """Return what people said and what they were answered, in order.

    An answer is the text that ended its turn; what was said before a tool call is part of the
    events, not of this list. An answer that was cut short by a stop is shown as far as it came.

    Args:
        records: of one session, in order.
        limit: at most so many, the oldest first.
    """
    shown: list[MessageView] = []
    answers: dict[str | None, AnswerText] = {}
    last: dict[str | None, Record] = {}
    for record in records:
        if limit is not None and len(shown) >= limit:
            break
        if record.type == "user":
            shown.append(_said(record))
        elif record.type == "assistant":
            answers[record.turn] = answers.get(record.turn, AnswerText()).plus(record)
            last[record.turn] = record
        elif record.type == "turn_ended" and record.body.get("state") in _SHOWN_ENDS:
            answer, place = answers.pop(record.turn, None), last.pop(record.turn, None)
            if answer is not None and answer.text and place is not None:
                shown.append(_answered(place, answer.text))
    return shown


def call_view(records: Iterable[Record], call_id: str) -> CallView | None:
    """Return a tool call with its input and result, None when no record asks for it."""
    found: dict[str, Any] | None = None
    for record in records:
        body = record.body
        if record.type == "assistant":
            content = body.get("content")  # plain text asks for nothing
            for block in cast("list[dict[str, Any]]", content if isinstance(content, list) else []):
                if block.get("type") == "tool_use" and block.get("id") == call_id:
                    found = {"call_id": call_id, "turn_id": record.turn, "tool": block.get("name", ""),
                             "input": block.get("input"), "cursor": record.seq}  # fmt: skip
        elif record.type == "tool_outcome" and body.get("call") == call_id and found is not None:
            found |= {
                "status": body.get("status"),
                "content": body.get("content") or [],
                "data": body.get("data"),
                "truncated": bool(body.get("truncated")),
                "tainted": bool(body.get("tainted")),
                "ms": int(body.get("ms") or 0),
                "blob": body.get("blob"),
                "cursor": record.seq,
            }
    return None if found is None else CallView(**found)


def pending_requests(
    records: Sequence[Record], thread_id: str, turn_ids: Iterable[str], now: datetime
) -> list[PendingRequest]:
    """Return the questions of these turns that have no answer and have not expired, oldest first."""
    wanted = set(turn_ids)
    found: dict[str, PendingRequest] = {}
    for record in records:
        body = record.body
        if record.type == "request" and record.turn in wanted:
            until = body.get("expires_at")
            if until and from_iso(str(until)) < now:
                continue
            found[str(body.get("id"))] = PendingRequest(
                request_id=str(body.get("id")),
                thread_id=thread_id,
                turn_id=record.turn or "",
                kind=str(body.get("kind")),
                calls=tuple(body.get("calls") or ()),
                tools=tuple(body.get("tools") or ()),
                text=str(body.get("text") or ""),
                asked_at=record.at,
                expires_at=until,
                cursor=record.seq,
            )
        elif record.type == "answer":
            found.pop(str(body.get("id")), None)
    return list(found.values())


def shown_sender(sender: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a sender what people are shown; the rest is for the model and for the door."""
    return {name: sender[name] for name in ("id", "name", "door") if name in sender}


def _said(record: Record) -> MessageView:
    return MessageView(
        id=f"msg_{record.seq}",
        role="user",
        content=content_text(record.body.get("content")),
        created_at=record.at,
        turn_id=record.turn,
        cursor=record.seq,
        sender=shown_sender(record.body.get("sender") or {}),
    )


def _answered(record: Record, text: str) -> MessageView:
    blocks = cast("list[dict[str, Any]]", record.body.get("content") or [])
    thinking = "".join(str(b.get("thinking") or "") for b in blocks if b.get("type") == "thinking")
    return MessageView(
        id=f"msg_{record.seq}",
        role="assistant",
        content=text,
        created_at=record.at,
        turn_id=record.turn,
        cursor=record.seq,
        thinking=thinking,
    )
