"""What clients say: a frame of text to a command, or to why it is none (SV-37 … SV-40). Pure.

Not here: the commands' form (`core/wire/commands.py`), doing them (`actions.py`), how often somebody may be
wrong (`endpoint.py`).
"""

from dataclasses import dataclass
from typing import Any, Union, cast

import msgspec

from bowerbird.core.wire import CLIENT_FRAMES, ClientFrame

_COMMAND: Any = Union[tuple(CLIENT_FRAMES.values())]  # noqa: UP007 - made of the table


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Why a frame is no command."""

    reason: str


def parse(raw: str) -> ClientFrame | BadFrame:
    """Return the command in a text frame.

    Text that is not JSON is a message; an object without `type` but with text as `content` too.

    Example:
        >>> parse("hello").content, parse('{"type": "ping"}')
        ('hello', Ping(id=None, request_id=None))
    """
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError):
        value = {"type": "message", "content": raw}
    except RecursionError:
        return BadFrame("nested too deeply")
    if not isinstance(value, dict):
        return BadFrame("a frame is a JSON object or plain text")
    frame = cast("dict[str, Any]", value)
    if "type" not in frame and isinstance(frame.get("content"), str):
        frame["type"] = "message"
    kind = frame.get("type")
    if not isinstance(kind, str) or kind not in CLIENT_FRAMES:
        return BadFrame(f"type must be one of {', '.join(CLIENT_FRAMES)}")
    try:
        return cast("ClientFrame", msgspec.convert(frame, _COMMAND))
    except msgspec.ValidationError as error:
        return BadFrame(f"{kind}: {error}")
