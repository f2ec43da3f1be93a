"""From requests to sessions, and from a session to what its routes show (SV-7 … SV-9, 22).

Here: those two mappings. Not here: routes, the form of what is shown (`sessions/shown.py`).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bowerbird.core.errors import ConfigError
from bowerbird.core.threads import to_thread
from bowerbird.server.common.errors import invalid, problem
from bowerbird.server.common.json_answers import clean
from bowerbird.sessions import shown
from bowerbird.sessions.values import NewSession

if TYPE_CHECKING:
    from bowerbird.server.common.context import Caller, ServerContext
    from bowerbird.sessions.lookup import SessionRow

EFFORTS = Literal["high", "max", "xhigh"]
FLAGS = (
    "enable_teams", "enable_tracing", "enable_approval", "enable_plan_mode", "enable_thinking",
    "max_turns", "max_cost", "memory", "tools", "network",
)  # fmt: skip


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
    require_turns(context, asked.get("max_turns"))
    require_network(caller, asked.get("network"))
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
        policy=asked.get("landing") or context.settings.landing,
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


def settings_of(context: "ServerContext", caller: "Caller", given: Mapping[str, Any]) -> dict[str, Any]:
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
    require_turns(context, changes.get("max_turns"))
    require_network(caller, changes.get("network"))
    if changes.get("model") is not None:
        changes["model"] = known_model(context, changes["model"])
    if "thinking_effort" in changes:
        changes["thinking_effort"] = effort_of(changes["thinking_effort"])
    return changes


def require_turns(context: "ServerContext", asked: int | None) -> None:
    """Raise Problem 422 for more model calls in a turn than this server's settings allow."""
    most = context.settings.max_turns
    if asked is not None and asked > most:
        raise invalid(
            ("body", "max_turns"), f"max_turns is {asked}; this server allows {most} (agent.max_turns)"
        )


def require_network(caller: "Caller", asked: str | None) -> None:
    """Raise Problem 403 where a caller may not open the network, 422 for hosts that cannot be read."""
    if asked is None:
        return
    from bowerbird.sandbox.network.network import entries_of

    if not caller.may("admin"):
        raise problem("forbidden", "only an admin opens the network for commands (sandbox.network)")
    try:
        entries_of(asked)
    except ConfigError as error:
        raise invalid(("body", "network"), str(error)) from error


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


async def described(context: "ServerContext", row: "SessionRow") -> dict[str, Any]:
    """Return a conversation without its messages."""
    return await conversation(context, row, after=row.last_seq, limit=0)


async def conversation(
    context: "ServerContext", row: "SessionRow", *, after: int, limit: int
) -> dict[str, Any]:
    """Return a conversation with a page of its messages."""
    window = await to_thread(context.offers.window_of, row)
    return await shown.conversation(
        context.sessions,
        row,
        model=context.offers.model_of(row),
        window=window,
        defaults=context.settings.defaults,
        after=after,
        limit=limit,
    )
