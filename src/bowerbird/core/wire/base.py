"""What all frames of the WebSocket have in common, and their JSON text.

Here: the two base classes, encoding. Not here: any frame, how frames are described to people and machines
(`described.py`), when which is sent (`server/socket/`).
"""

from typing import Annotated, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bowerbird.core.json_text import json_text

MAX_ID = 128
MAX_REQUEST_ID = 200


class ServerFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Something the server tells a viewer; its type, its own fields, then these.

    The docstring of each frame is its documentation: what it means, its fields under `Attributes:`, and
    under `Example:` one frame as sent.

    Attributes:
        is_plain: clients that did not ask for `v=2` get it too; new frames are for `v=2`.
        line: how one line says it to people; `{name}` stands for a field. "" = it is drawn in its own way.
        replay: it is repeated for a viewer that has just come.
        cursor: position in the conversation's journal after it; never falls.
        turn_id: the turn it belongs to, null for none.
    """

    is_plain: ClassVar[bool] = False
    line: ClassVar[str] = ""

    replay: bool | UnsetType = UNSET
    cursor: int = 0
    turn_id: str | None = None


class ClientFrame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Something a client asks of the server; its type, its own fields, then these.

    Attributes:
        id: the client's own id of this frame; a frame whose id was seen before does nothing, and each is
            answered with `accepted`.
        request_id: which question an answer is for; without it, it is for the one that waits.
    """

    id: Annotated[str, Meta(min_length=1, max_length=MAX_ID)] | None = None
    request_id: Annotated[str, Meta(min_length=1, max_length=MAX_REQUEST_ID)] | None = None


def frame_type(kind: type[msgspec.Struct]) -> str:
    """Return the `type` of a kind of frame.

    Example:
        >>> from bowerbird.core import wire
        >>> frame_type(wire.TurnStarted)
        'turn_started'
    """
    return str(kind.__struct_config__.tag)


def text_of(frame: ServerFrame | ClientFrame) -> str:
    """Return the JSON text of a frame; bytes that are no UTF-8 show as `\\xHH`."""
    return json_text(frame)


def said_in_a_line(frame: ServerFrame) -> str:
    """Return the line that says a frame to people, "" for one that is drawn in its own way.

    Example:
        >>> from bowerbird.core import wire
        >>> said_in_a_line(wire.SandboxTier("copy", "none", {}))
        'commands now run in the sandbox tier copy'
    """
    return frame.line.format_map(msgspec.to_builtins(frame)) if frame.line else ""
