"""Which frames there are, reading one, and the events that are sent as they are.

Here: tables made from the frames' own classes. Not here: any frame.
"""

from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, Union, cast, get_args

import msgspec

from bowerbird.core.events import LiveEvent
from bowerbird.core.forms import convert, decode, decoder
from bowerbird.core.tagged import Tagged
from bowerbird.core.wire import answers, commands, conditions, questions, turns, work
from bowerbird.core.wire.base import ClientFrame, ServerFrame, frame_type


def _frames_in(*modules: ModuleType) -> Iterator[Any]:
    """Yield the frames that modules define, in the order of their text; those without a type are bases."""
    for module in modules:
        for value in vars(module).values():
            bases: tuple[Any, ...] = getattr(value, "__mro__", ())
            is_frame = ServerFrame in bases or ClientFrame in bases
            if is_frame and value.__module__ == module.__name__ and frame_type(value) != value.__name__:
                yield value


SERVER_FRAMES: dict[str, type[ServerFrame]] = {
    frame_type(kind): kind for kind in _frames_in(turns, answers, questions, work, conditions)
}
"""What the server sends, by type, in the order of the manual."""

CLIENT_FRAMES: dict[str, type[ClientFrame]] = {frame_type(kind): kind for kind in _frames_in(commands)}
"""What clients send, by type."""

PLAIN_TYPES = frozenset(name for name, kind in SERVER_FRAMES.items() if kind.is_plain)
"""What a client without `v=2` may meet; anything else is for `v=2` only."""

_EVENTS: dict[str, type[Tagged]] = {frame_type(kind): kind for kind in get_args(LiveEvent)}


@cache
def _decode_frame() -> Callable[[bytes | str], ServerFrame]:
    """Return what reads any frame; only clients of a server need it, and it takes long to make."""
    frame: Any = Union[tuple(SERVER_FRAMES.values())]  # noqa: UP007 - made of the table
    return decoder(frame)


class Unknown(ServerFrame, frozen=True):
    """A frame of a type that this version does not know; not sent itself."""

    kind: str


class _Place(msgspec.Struct):
    type: str
    cursor: int = 0
    turn_id: str | None = None


def read_frame(text: str | bytes) -> ServerFrame:
    """Return what a server sent; `Unknown` for a type that this version does not know.

    Raises:
        msgspec.DecodeError: it is no frame at all, or one with members that do not fit its type.

    Example:
        >>> read_frame('{"type": "pong", "cursor": 1, "turn_id": null}').cursor
        1
    """
    try:
        return _decode_frame()(text)
    except msgspec.ValidationError:
        place = decode(text, _Place)
        if place.type in SERVER_FRAMES:
            raise
        return Unknown(place.type, cursor=place.cursor, turn_id=place.turn_id)


def frame_of_event(event: Tagged) -> ServerFrame | None:
    """Return the frame that is called like an event and has its members, None if there is none.

    Example:
        >>> from bowerbird.core.events import Egress
        >>> frame_of_event(Egress("pypi.org", 443, "allowed")).verdict
        'allowed'
    """
    kind = SERVER_FRAMES.get(event.type)
    if kind is None:
        return None
    members: dict[str, Any] = {
        name: getattr(event, name) for name in kind.__struct_fields__ if name in event.__struct_fields__
    }
    return kind(**members)


def event_of_frame(frame: ServerFrame) -> LiveEvent | None:
    """Return the live event that is called like a frame and has its members, None if there is none."""
    kind = _EVENTS.get(frame_type(type(frame)))
    if kind is None:
        return None
    names = kind.__struct_fields__
    needed = names[: len(names) - len(kind.__struct_defaults__)]
    if not set(needed) <= set(frame.__struct_fields__):
        return None
    members: dict[str, Any] = {name: getattr(frame, name) for name in names if hasattr(frame, name)}
    return cast("LiveEvent", convert(members, kind))
