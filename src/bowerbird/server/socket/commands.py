"""What clients may say: a frame of text to a command, or to why it is none (SV-37 … SV-40). Pure.

Not here: doing it (`actions.py`), how often somebody may be wrong (`endpoint.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import msgspec

Kind = Literal[
    "message", "interrupt", "steer", "cancel", "resume", "ping", "tool_approval_response", "plan_approval",
    "toggle_plan_mode", "toggle_teams", "toggle_approval", "background", "cancel_background",
]  # fmt: skip

MAX_ID = 128
MAX_REQUEST_ID = 200

FLAGS: dict[str, str] = {
    "toggle_plan_mode": "enable_plan_mode",
    "toggle_teams": "enable_teams",
    "toggle_approval": "enable_approval",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A valid frame.

    Attributes:
        id: the client's own id, by which a repeat is known. request_id: which question is answered.
        task_id: which background command is meant.
    """

    kind: Kind
    content: str = ""
    decision: str = ""
    feedback: str | None = None
    enabled: bool = False
    id: str | None = None
    request_id: str | None = None
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Why a frame is no command."""

    reason: str


class _Bad(Exception):
    pass


def parse(raw: str) -> Command | BadFrame:
    """Return the command in a text frame.

    Text that is not JSON is a message; an object without `type` but with text as `content` too.

    Example:
        >>> parse("hello").content, parse('{"type": "cancel"}').kind
        ('hello', 'cancel')
    """
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError):
        value = {"type": "message", "content": raw}
    except RecursionError:
        return BadFrame("nested too deeply")
    if not isinstance(value, dict):
        return BadFrame("a frame is a JSON object or plain text")
    try:
        return _command(cast("dict[str, Any]", value))
    except _Bad as bad:
        return BadFrame(str(bad))


def _command(frame: Mapping[str, Any]) -> Command:
    kind = frame.get("type")
    if "type" not in frame and isinstance(frame.get("content"), str):
        kind = "message"
    if not isinstance(kind, str) or kind not in _READERS:
        raise _Bad(f"type must be one of {', '.join(_READERS)}")
    common = {"id": _id(frame), "request_id": _request_id(frame)}
    return Command(cast("Kind", kind), **common, **_READERS[kind](frame))


def _id(frame: Mapping[str, Any]) -> str | None:
    value = frame.get("id")
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > MAX_ID:
        raise _Bad(f"id must be text of 1 to {MAX_ID} characters")
    return value


def _request_id(frame: Mapping[str, Any]) -> str | None:
    value = frame.get("request_id")
    if value is None:
        return None
    if not isinstance(value, str) or not value or len(value) > MAX_REQUEST_ID:
        raise _Bad("request_id must be text")
    return value


def _content(frame: Mapping[str, Any]) -> dict[str, Any]:
    value = frame.get("content")
    if not isinstance(value, str):
        raise _Bad("content must be text")
    if not value.strip():
        raise _Bad("content is empty")
    return {"content": value}


def _enabled(frame: Mapping[str, Any]) -> dict[str, Any]:
    value = frame.get("enabled")
    if not isinstance(value, bool):
        raise _Bad("enabled must be true or false")
    return {"enabled": value}


def _decision(allowed: tuple[str, ...] = ()) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def read(frame: Mapping[str, Any]) -> dict[str, Any]:
        value, feedback = frame.get("decision"), frame.get("feedback")
        if not isinstance(value, str) or not value or (allowed and value not in allowed):
            raise _Bad(f"decision must be {' or '.join(allowed) or 'text'}")
        if feedback is not None and not isinstance(feedback, str):
            raise _Bad("feedback must be text")
        return {"decision": value, "feedback": feedback}

    return read


def _task_id(frame: Mapping[str, Any]) -> dict[str, Any]:
    value = frame.get("task_id")
    if not isinstance(value, str) or not value or len(value) > MAX_ID:
        raise _Bad(f"task_id must be text of 1 to {MAX_ID} characters")
    return {"task_id": value}


def _nothing(_: Mapping[str, Any]) -> dict[str, Any]:
    return {}


_READERS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "message": _content,
    "interrupt": _content,
    "steer": _content,
    "cancel": _nothing,
    "resume": _nothing,
    "ping": _nothing,
    "tool_approval_response": _decision(),
    "plan_approval": _decision(("approve", "reject")),
    "toggle_plan_mode": _enabled,
    "toggle_teams": _enabled,
    "toggle_approval": _enabled,
    "background": _nothing,
    "cancel_background": _task_id,
}
