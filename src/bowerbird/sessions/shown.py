"""Sessions, turns, messages and questions in the one form that every door shows (UI-85, SV-8, SV-9).

Here: that form as plain data; REST answers with it and `--json` prints it. Not here: routes, who may see
what, drawing for a terminal.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from bowerbird.core.messages import blocks_from_data, text_of
from bowerbird.sessions.journal.audit_log import content_text
from bowerbird.sessions.journal.messages import shown_sender
from bowerbird.sessions.thread_ids import root_of

if TYPE_CHECKING:
    from bowerbird.core.events import LandingProgress
    from bowerbird.sessions.queries import Reader
    from bowerbird.sessions.searching import Found
    from bowerbird.sessions.subagents.tournaments import Tournament
    from bowerbird.sessions.values import MessageView, PendingRequest, QueuedInput, SessionInfo, TurnInfo
    from bowerbird.store.journal.journal import Record
    from bowerbird.store.rows.memory import MemoryVersion
    from bowerbird.store.rows.permission_rules import PermissionRow
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.tools import Tool

RESULT_CHARS = 2_000
PAGE = 1000  # records read at once


class Defaults(msgspec.Struct, frozen=True):
    """What a session has when nobody said otherwise."""

    preset: str = "coding"
    enable_approval: bool = False
    enable_thinking: bool | None = None
    thinking_effort: str = "high"


def listed(info: "SessionInfo", *, asked: bool = False) -> dict[str, Any]:
    """Return a session as lists show it.

    Args:
        asked: one of its subagents waits for an approval.
    """
    return {
        "id": info.thread_id,
        "title": info.title,
        "created_at": info.created_at,
        "message_count": info.messages,
        "updated_at": info.updated_at,
        "status": info.status,
        "stop_reason": info.stop_reason,
        "changed_files": info.changed_files,
        "cost": info.cost,
        "pending_approval": asked or info.pending == "approval",
        "pending": info.pending,
        "kind": info.kind,
        "workspace": workspace_name(info.workspace),
        "parent": info.parent,
    }


def hit(found: "Found", *, asked: bool = False) -> dict[str, Any]:
    """Return a session that a search found: as `listed`, with the place of the words."""
    place = {"cursor": found.cursor, "role": found.role, "text": found.text}
    return {**listed(found.info, asked=asked), "found": None if found.cursor is None else place}


def workspace_name(path: str | None) -> str | None:
    """Return the last name of a directory: lists show no absolute path."""
    return Path(path).name if path else None


async def conversation(
    sessions: "Reader",
    row: "SessionRow",
    *,
    model: str,
    window: int,
    defaults: Defaults,
    after: int = 0,
    limit: int = 1000,
) -> dict[str, Any]:
    """Return a session with a page of its messages.

    Args:
        model, window: what it runs on now, and the tokens of context that its turns plan with.
    """
    flags = row.flags
    messages = await sessions.messages(row.thread_id, after=after, limit=limit) if limit else []
    tokens = await sessions.tokens(row.thread_id)
    queued = await sessions.queued(row.thread_id)
    is_open = row.status not in ("done", "failed")
    counted = await sessions.get(row.thread_id) if is_open else row
    return {
        "id": row.thread_id,
        "title": row.title,
        "system_prompt": row.system_prompt,
        "preset": row.preset or defaults.preset,
        "model": model,
        "context_window": window,
        "enable_teams": bool(flags.get("enable_teams")),
        "enable_tracing": bool(flags.get("enable_tracing")),
        "enable_approval": _flag(flags, "enable_approval", default=defaults.enable_approval),
        "enable_plan_mode": bool(flags.get("enable_plan_mode")),
        "enable_thinking": _flag(flags, "enable_thinking", default=defaults.enable_thinking),
        "thinking_effort": row.thinking_effort or defaults.thinking_effort,
        "created_at": row.created_at,
        "messages": [_said(message) for message in messages],
        "total_input_tokens": tokens.input_tokens,
        "total_output_tokens": tokens.output_tokens,
        "total_cache_read_tokens": tokens.cache_read_tokens,
        "total_cache_write_tokens": tokens.cache_write_tokens,
        "updated_at": row.updated_at,
        "status": row.status,
        "auto_approve": row.auto_approve,
        "message_count": row.messages,
        "changed_files": counted.changed_files,
        "workspace": workspace_name(row.workspace),
        "cursor": row.last_seq,
        "queued": [queued_row(found) for found in queued],
        "branch": _branch(row),
        "landing": landing_row(sessions.landing(row.thread_id)),
        "parent": row.parent_thread_id,
        "cost": tokens.cost,
    }


def _flag(flags: Mapping[str, Any], name: str, *, default: bool | None) -> bool | None:
    value = flags.get(name)
    return default if value is None else bool(value)


def _said(message: "MessageView") -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content,
        "created_at": message.created_at,
        "id": message.id,
        "turn_id": message.turn_id,
        "cursor": message.cursor,
        "sender": message.sender,
    }


def queued_row(found: "QueuedInput") -> dict[str, Any]:
    """Return a waiting input."""
    return {
        "inbox_id": found.inbox_id,
        "turn_id": found.turn_id,
        "position": found.position,
        "kind": found.kind,
        "content": found.text,
        "sender": found.sender,
        "received_at": found.received_at,
    }


def _branch(row: "SessionRow") -> dict[str, Any] | None:
    if row.branch_id is None:
        return None
    return {
        "id": row.branch_id,
        "changed_files": row.changed_files,
        "workspace": workspace_name(row.workspace),
    }


def landing_row(progress: "LandingProgress | None") -> dict[str, Any] | None:
    """Return how far a landing is that runs."""
    if progress is None:
        return None
    names = ("kind", "phase", "done", "total", "undoes")
    return {name: getattr(progress, name) for name in names}


# ---------------------------------------------------------------- turns


def turn_row(turn: "TurnInfo") -> dict[str, Any]:
    """Return a turn as lists show it."""
    return {name: value for name, value in msgspec.structs.asdict(turn).items() if name != "thread_id"}


async def answered(sessions: "Reader", turn: "TurnInfo") -> dict[str, Any]:
    """Return how a turn ended or what it waits for, with its final answer; a plan that waits is one."""
    messages = await sessions.messages(turn.thread_id)
    texts = [m.content for m in messages if m.turn_id == turn.turn_id and m.role == "assistant"]
    asked = None
    if turn.state == "waiting":
        waiting = await sessions.pending(turn.thread_id)
        asked = next((found for found in waiting if found.turn_id == turn.turn_id), None)
        if asked is not None and asked.kind == "plan":
            texts.append(asked.text)
    return {
        "state": turn.state,
        "waiting_for": turn.waiting_for,
        "stop_reason": turn.stop_reason,
        "text": texts[-1] if texts else "",
        "usage": turn.usage,
        "cost": turn.cost,
        "snapshot_id": turn.snapshot_id,
        "error": turn.error,
        "request": None if asked is None else question(asked),
    }


def question(request: "PendingRequest") -> dict[str, Any]:
    """Return a pending request."""
    root = root_of(request.thread_id)
    return {
        "request_id": request.request_id,
        "conversation_id": root,
        "subagent_id": request.thread_id if root != request.thread_id else None,
        "turn_id": request.turn_id,
        "kind": request.kind,
        "tools": list(request.tools),
        "text": request.text,
        "asked_at": request.asked_at,
        "expires_at": request.expires_at,
        "cursor": request.cursor,
    }


# ---------------------------------------------------------------- messages with their calls


async def messages_page(
    sessions: "Reader", thread_id: str, *, after: int, limit: int
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
        records = await sessions.history(thread_id, after=at, limit=PAGE)
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
        sender = shown_sender(body.get("sender") or {})
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
        is_long = len(text) > RESULT_CHARS
        call |= {
            "status": body.get("status"),
            "result": text[:RESULT_CHARS] + "..." if is_long else text,
            "truncated": bool(body.get("truncated")) or is_long,
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


# ---------------------------------------------------------------- the rest


def tool_row(tool: "Tool") -> dict[str, Any]:
    """Return a tool as lists show it."""
    return {
        "name": tool.name,
        "description": tool.description,
        "effect": str(tool.effect),
        "aliases": list(tool.aliases),
        "input_schema": tool.input_schema,
    }


def memory_version(version: "MemoryVersion", *, current: bool) -> dict[str, Any]:
    """Return a text of the memory; `current` for the one that counts."""
    return {
        "id": version.id,
        "at": version.at,
        "bytes": len(version.body.encode("utf-8", "surrogateescape")),
        "text": version.body,
        "current": current,
    }


def permission(row: "PermissionRow") -> dict[str, Any]:
    """Return what somebody always allows."""
    return {
        "id": row.id,
        "scope": row.scope,
        "target": row.target,
        "rule": row.rule,
        "user": row.owner,
        "by": row.by,
        "at": row.at,
    }


def tournament_row(thread_id: str, tournament: "Tournament") -> dict[str, Any]:
    """Return a tournament as it stands; `ranking` is empty and `winner` None while it runs."""
    contest = tournament.contest
    result = contest.result or {}
    return {
        "id": tournament.id,
        "conversation_id": thread_id,
        "state": tournament.state,
        "task": contest.task,
        "checks": list(contest.checks),
        "merge": contest.merge,
        "attempts": [child.record() for child in tournament.attempts],
        "winner": result.get("winner"),
        "ranking": result.get("ranking", []),
        "note": result.get("note"),
        "merged": result.get("merge"),
        "error": result.get("error"),
    }
