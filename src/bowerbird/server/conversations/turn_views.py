"""Turns and messages as REST shows them: how a turn stands, what was said and called in it (SV-9, SV-19).

Here: pages of messages with their tool calls, rows of turns. Not here: routes, one call in full (SV-24).
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from bowerbird.core.messages import blocks_from_data, text_of
from bowerbird.server.common.errors import said
from bowerbird.server.common.json_answers import cut
from bowerbird.server.socket.translate import RESULT_CHARS
from bowerbird.sessions.journal.audit_log import content_text

if TYPE_CHECKING:
    from bowerbird.server.common.context import ServerContext
    from bowerbird.sessions.values import TurnInfo
    from bowerbird.store.journal.journal import Record

PAGE = 1000  # records read at once


def turn_row(turn: "TurnInfo") -> dict[str, Any]:
    """Return a turn as lists show it."""
    error = turn.error
    if error is not None and "message" in error:
        error = {**error, "message": said(str(error["message"]))}
    return {
        "turn_id": turn.turn_id,
        "n": turn.n,
        "kind": turn.kind,
        "state": turn.state,
        "waiting_for": turn.waiting_for,
        "stop_reason": turn.stop_reason,
        "attempt": turn.attempt,
        "usage": turn.usage,
        "cost": turn.cost,
        "snapshot_id": turn.snapshot_id,
        "error": error,
        "started_at": turn.started_at,
        "ended_at": turn.ended_at,
    }


async def messages_page(
    context: "ServerContext", thread_id: str, *, after: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Return messages in order, each answer with its tool calls, and the cursor to go on from.

    Args:
        after: only messages with a greater cursor.
        limit: at most so many.
    """
    shown: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    at = after
    while len(shown) <= limit:
        records = await context.store.records(thread_id, after=at, limit=PAGE)
        for record in records:
            _take(record, shown, calls)
        if len(records) < PAGE:
            break
        at = records[-1].seq
    more = len(shown) > limit
    page = shown[:limit]
    return page, int(page[-1]["cursor"]) if more else None


def _take(record: "Record", shown: list[dict[str, Any]], calls: dict[str, dict[str, Any]]) -> None:
    body = record.body
    if record.type == "user":
        sender = dict(body.get("sender") or {})
        shown.append(_message(record, "user", content_text(body.get("content")), sender=sender))
    elif record.type == "assistant":
        blocks = list(_blocks(body.get("content")))
        made = [_call(block) for block in blocks if block.get("type") == "tool_use"]
        calls |= {call["id"]: call for call in made}
        text = content_text([block for block in blocks if block.get("type") == "text"])
        if text or made:
            shown.append(_message(record, "assistant", text, tool_calls=made))
    elif record.type == "tool_outcome" and (call := calls.get(str(body.get("call")))) is not None:
        text = text_of(blocks_from_data(body.get("content") or []))
        call |= {
            "status": body.get("status"),
            "result": cut(text, RESULT_CHARS),
            "truncated": bool(body.get("truncated")) or len(text) > RESULT_CHARS,
            "tainted": bool(body.get("tainted")),
        }


def _message(record: "Record", role: str, content: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"msg_{record.seq}",
        "turn_id": record.turn,
        "cursor": record.seq,
        "role": role,
        "content": content,
        "created_at": record.at,
        **more,
    }


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call that has not ended yet."""
    return {
        "id": str(block.get("id")),
        "tool": str(block.get("name")),
        "input": block.get("input"),
        "status": None,
        "result": None,
        "truncated": False,
        "tainted": False,
    }


def _blocks(content: Any) -> Iterable[dict[str, Any]]:
    return cast("list[dict[str, Any]]", content) if isinstance(content, list) else ()
