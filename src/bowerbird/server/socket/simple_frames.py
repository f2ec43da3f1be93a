"""Events whose frame needs no memory: notices, retries, the sandbox, inputs (SV-41). Pure.

Not here: messages, questions and turns (`translate.py`).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from bowerbird.core.events import (
    BackgroundResult,
    Compaction,
    Egress,
    ModelSwitch,
    Notice,
    SandboxTier,
    SubagentEnd,
    SubagentStart,
    TaskUpdate,
    TeammateStatus,
    ToolProgress,
    Trace,
)
from bowerbird.core.requests import ModelFallback, Retrying
from bowerbird.server.common.safe_text import said
from bowerbird.sessions.live.hub import InputMark

Body = dict[str, Any]

COMMAND_CHARS = 80
OUTCOME_CHARS = 500


def small_bodies(event: object) -> list[Body]:
    """Return what is sent for `event`; nothing for what viewers are not told.

    Example:
        >>> small_bodies(ToolProgress("call_1", "half"))
        [{'type': 'tool_progress', 'id': 'call_1', 'text': 'half'}]
    """
    make = _MAKERS.get(type(event))
    return [] if make is None else make(event)


def _notice(event: Notice) -> list[Body]:
    if event.kind == "compact":
        return []  # its `Compaction` is shown
    if event.kind == "landing":
        return [{"type": "landing", "message": said(event.text)}]
    return [{"type": "notice", "kind": event.kind, "message": said(event.text)}]


def _retrying(event: Retrying) -> list[Body]:
    shown = {"attempt": event.attempt, "delay_s": event.delay_s, "reason": said(event.reason)}
    return [{"type": "retrying", **shown}]


def _fallback(event: ModelFallback) -> list[Body]:
    shown = {"from": event.from_model, "to": event.to_model, "reason": said(event.reason)}
    return [{"type": "model_fallback", **shown}]


def _input(event: InputMark) -> list[Body]:
    body: Body = {
        "type": "turn_queued",
        "inbox_id": event.inbox_id or None,
        "position": event.position,
        "kind": event.kind,
        "state": event.state,
        "content": event.text,
        "sender": {key: event.sender.get(key) for key in ("id", "name", "door")},
    }
    return [body]


def _background(event: BackgroundResult) -> list[Body]:
    cut = {"command": COMMAND_CHARS, "result": OUTCOME_CHARS}
    rows = [
        {key: value[: cut[key]] if key in cut else value for key, value in row.items()}
        for row in event.notifications
    ]
    return [{"type": "background_result", "notifications": rows}]


_MAKERS: dict[type, Callable[[Any], list[Body]]] = {
    InputMark: _input,
    Compaction: lambda e: [{"type": "compact", "message": f"The history was summarised ({e.reason})."}],
    ModelSwitch: lambda e: [{"type": "settings", "changes": {"tier": e.tier}}],
    Retrying: _retrying,
    ModelFallback: _fallback,
    ToolProgress: lambda e: [{"type": "tool_progress", "id": e.call, "text": e.text}],
    Notice: _notice,
    BackgroundResult: _background,
    TaskUpdate: lambda e: [{"type": "task_update", "tasks": list(e.tasks)}],
    # `purpose` is for the stored record only (MO-34).
    Trace: lambda e: [{key: value for key, value in e.record.items() if key != "purpose"}],
    Egress: lambda e: [msgspec.to_builtins(e)],
    SandboxTier: lambda e: [msgspec.to_builtins(e)],
    TeammateStatus: lambda e: [msgspec.to_builtins(e)],
    SubagentStart: lambda e: [msgspec.to_builtins(e)],
    SubagentEnd: lambda e: [msgspec.to_builtins(e)],
}
