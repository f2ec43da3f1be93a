"""From requests to sessions, and from sessions to what the conversation routes show (SV-7 … SV-9, 22).

Here: those two mappings. Not here: routes, the sessions themselves.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bowerbird.core.threads import to_thread
from bowerbird.server.common.errors import invalid, problem
from bowerbird.server.common.json_answers import clean
from bowerbird.sessions.values import NewSession

if TYPE_CHECKING:
    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.sessions.values import MessageView, SessionInfo
    from bowerbird.store.rows.sessions import SessionRow

EFFORTS = Literal["high", "max", "xhigh"]
FLAGS = ("enable_teams", "enable_tracing", "enable_approval", "enable_plan_mode", "enable_thinking")


def new_session(context: "ServerContext", caller: "Caller", asked: Mapping[str, Any]) -> NewSession:
    """Return the session that a request asks for.

    Args:
        asked: members of `POST /api/chat`.

    Raises:
        Problem: 422 for an unknown preset, workspace or model; what there is is listed.
    """
    preset = asked.get("preset")
    if preset is not None:
        names = [found.name for found in context.offers.presets()]
        if preset not in names:
            raise invalid(("body", "preset"), f"there is no preset {preset!r}; there are {', '.join(names)}")
    flags = {name: asked[name] for name in FLAGS if asked.get(name) is not None}
    model = asked.get("model")
    if model is not None:
        flags["model"] = known_model(context, model)
    prompt, title = asked.get("system_prompt"), asked.get("title")
    return NewSession(
        kind="web",
        owner=caller.owner,
        title=clean(title) or None if title else None,
        preset=preset,
        system_prompt=clean(prompt) or None if prompt else None,
        flags=flags,
        thinking_effort=effort_of(asked.get("thinking_effort")),
        workspace=workspace_of(context, asked.get("workspace")),
        policy=context.settings.landing,
        hide=context.settings.hide,
    )


def workspace_of(context: "ServerContext", name: str | None) -> str | None:
    """Return the directory that a request names, the default one for None; made when missing.

    Raises:
        Problem: 422 listing the registered names.
    """
    settings = context.settings
    if name is None:
        if settings.workspace is not None:
            Path(settings.workspace).mkdir(parents=True, exist_ok=True)
        return settings.workspace
    path = settings.registered.get(name)
    if path is None:
        known = ", ".join(sorted(settings.registered)) or "none"
        raise invalid(
            ("body", "workspace"),
            f"there is no workspace {name!r}; registered (workspace.registered): {known}",
        )
    return path


def found_workspace(context: "ServerContext", name: str | None) -> str | None:
    """Return the directory that a request looks something up in; a Problem 404 for an unknown name."""
    if name is not None and name not in context.settings.registered:
        raise problem("not_found", "there is no such workspace; GET /api/workspaces lists them")
    return workspace_of(context, name)


def effort_of(given: str | None) -> str | None:
    """Return the effort in the words of requests to models.

    Example:
        >>> effort_of("xhigh"), effort_of("high"), effort_of(None)
        ('max', 'high', None)
    """
    return "max" if given == "xhigh" else given


def settings_of(context: "ServerContext", given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes that `PATCH` asks for, in the words of sessions.

    Raises:
        Problem: 422 for an unknown model, or a title that is null.
    """
    changes = dict(given)
    if "title" in changes:
        if changes["title"] is None:
            changes.pop("title")
        else:
            changes["title"] = clean(changes["title"])
    if changes.get("model") is not None:
        changes["model"] = known_model(context, changes["model"])
    if "thinking_effort" in changes:
        changes["thinking_effort"] = effort_of(changes["thinking_effort"])
    return changes


def known_model(context: "ServerContext", name: str, loc: tuple[str | int, ...] = ("body", "model")) -> str:
    """Return the name of a model that requests may name; raises Problem 422 saying why it cannot be one."""
    reason = context.offers.knows_model(name)
    if reason is None and re.fullmatch(context.offers.model_pattern, name) is None:
        reason = "the name has characters that no model's name has; write provider:model"
    if reason is not None:
        raise invalid(loc, reason)
    return name.strip()


def hidden_owner(caller: "Caller") -> str | None:
    """Return whose things lists are narrowed to, None for everybody's (an admin, or no auth)."""
    return None if caller.role == "admin" else caller.user_id


# ---------------------------------------------------------------- shown


def listed(info: "SessionInfo", *, asked: bool = False) -> dict[str, Any]:
    """Return a conversation as lists show it (SV-8).

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
        "changed_files": info.changed_files,
        "cost": info.cost,
        "pending_approval": asked or info.pending == "approval",
        "pending": info.pending,
        "kind": info.kind,
        "workspace": workspace_name(info.workspace),
        "parent": info.parent,
    }


def workspace_name(path: str | None) -> str | None:
    """Return the last name of a directory: lists show no absolute path."""
    return Path(path).name if path else None


async def described(context: "ServerContext", row: "SessionRow") -> dict[str, Any]:
    """Return a conversation without its messages."""
    return await conversation(context, row, after=row.last_seq, limit=0)


async def conversation(
    context: "ServerContext", row: "SessionRow", *, after: int, limit: int
) -> dict[str, Any]:
    """Return a conversation with a page of its messages (SV-9)."""
    sessions, defaults = context.sessions, context.settings.defaults
    flags = row.flags
    messages = await sessions.messages(row.thread_id, after=after, limit=limit) if limit else []
    tokens = await sessions.tokens(row.thread_id)
    queued = await sessions.queued(row.thread_id)
    return {
        "id": row.thread_id,
        "title": row.title,
        "system_prompt": row.system_prompt,
        "preset": row.preset or defaults.preset,
        "model": context.offers.model_of(row),
        "context_window": await to_thread(context.offers.window_of, row),
        "enable_teams": bool(flags.get("enable_teams")),
        "enable_tracing": bool(flags.get("enable_tracing")),
        "enable_approval": _flag(flags, "enable_approval", defaults.enable_approval),
        "enable_plan_mode": bool(flags.get("enable_plan_mode")),
        "enable_thinking": _flag(flags, "enable_thinking", defaults.enable_thinking),
        "thinking_effort": row.thinking_effort or defaults.thinking_effort,
        "created_at": row.created_at,
        "messages": [_message(message) for message in messages],
        "total_input_tokens": tokens.input_tokens,
        "total_output_tokens": tokens.output_tokens,
        "total_cache_read_tokens": tokens.cache_read_tokens,
        "total_cache_write_tokens": tokens.cache_write_tokens,
        "updated_at": row.updated_at,
        "status": row.status,
        "auto_approve": row.auto_approve,
        "message_count": row.messages,
        "changed_files": row.changed_files,
        "workspace": workspace_name(row.workspace),
        "cursor": row.last_seq,
        "queued": [queued_row(found) for found in queued],
        "branch": _branch(row),
        "parent": row.parent_thread_id,
        "cost": tokens.cost,
    }


def _flag(flags: Mapping[str, Any], name: str, default: bool) -> bool:
    value = flags.get(name)
    return default if value is None else bool(value)


def _message(message: "MessageView") -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content,
        "created_at": message.created_at,
        "id": message.id,
        "turn_id": message.turn_id,
        "cursor": message.cursor,
        "sender": message.sender,
    }


def queued_row(found: Any) -> dict[str, Any]:
    """Return a waiting input as conversations show it."""
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
