"""The beginning of a long conversation as it was encoded for the call before: only what is new costs time.

Here: messages in pieces of fixed length, the JSON of each kept with it. Not here: how a message is translated
(the wires), the rest of a body (`encoding`).

Messages are values, so their JSON stays right as long as they are sent in the same order to the same model.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from bowerbird.core.growing import PIECE, Piece
from bowerbird.core.messages import Message
from bowerbird.models.providers.encoding import encode_part

NEWEST = 8  # messages that are always translated: what belongs to this call only goes there
_KEPT_AS = "_encoded_beginning"

Translate = Callable[[Sequence[Message], int], list[dict[str, Any]]]
"""Translates messages, given also the index of the first of them."""


class _Encoded(NamedTuple):
    """JSON of the messages of a provider's list, without the brackets; roles of its first and last.

    It is kept with the piece, or with the first message where there is only a tuple: `following` are then
    the messages after that. So it holds no reference to itself.
    """

    key: Hashable
    marks: tuple[int, ...]
    following: tuple[Message, ...]
    content: bytes
    first: str
    last: str


def translated(
    messages: Sequence[Message],
    key: Hashable,
    translate: Translate,
    *,
    fixed: Sequence[int] = (),
    merges: bool = False,
) -> list[Any]:
    """Return what `translate` makes of `messages`, the beginning of a long list already as JSON.

    Args:
        messages: in the order in which they are sent.
        key: everything beside the messages that the translation depends on.
        translate: makes a provider's messages of a part of them.
        fixed: indexes of messages that are translated in another way, as a mark stands after them.
        merges: adjacent messages of one role become one.
    """
    end = _beginning_of(messages)
    newest = translate(messages[end:], end)
    if not end or not newest:
        return translate(messages, 0)
    parts: list[
        list[bytes]
    ] = []  # JSON of adjacent messages; many where one message goes on in the next piece
    role = ""  # of the last message so far
    for at in range(0, end, PIECE):
        marks = tuple([index - at for index in fixed if at <= index < at + PIECE])
        piece = _encoded(messages[at : at + PIECE], at, key, marks, translate)
        if not piece.content:
            continue
        if merges and parts and role == piece.first:
            _go_on(parts[-1], role, piece.content.removeprefix(b'{"content":['))
        else:
            parts.append([piece.content])
        role = piece.last
    if merges and parts and role == newest[0]["role"]:
        items = encode_part(newest.pop(0)["content"])[1:-1]
        _go_on(parts[-1], role, items + _end_of(role))
    return [*(msgspec.Raw(b"".join(part)) for part in parts), *newest]


def not_kept(messages: Sequence[Message], key: Hashable) -> list[Message]:
    """Return the messages of which nothing is kept that `translated` could use."""
    end = _beginning_of(messages)
    found = list(messages[end:])
    for at in range(0, end, PIECE):
        part = messages[at : at + PIECE]
        kept = _kept_with(part)
        if kept is None or kept.key != key or kept.following != _following(part):
            found += part
    return found


def _beginning_of(messages: Sequence[Message]) -> int:
    return max(0, len(messages) - NEWEST) // PIECE * PIECE


def _encoded(
    part: Sequence[Message], at: int, key: Hashable, marks: tuple[int, ...], translate: Translate
) -> _Encoded:
    kept, following = _kept_with(part), _following(part)
    if kept is not None and (kept.key, kept.marks, kept.following) == (key, marks, following):
        return kept
    wire = translate(part, at)
    roles = (str(wire[0]["role"]), str(wire[-1]["role"])) if wire else ("", "")
    made = _Encoded(key, marks, following, encode_part(wire)[1:-1], *roles)
    if not any(message.images for message in part):  # their bytes may come or go
        vars(_home(part))[_KEPT_AS] = made
    return made


def _home(part: Sequence[Message]) -> Any:
    return cast("Any", part) if isinstance(part, Piece) else part[0]


def _kept_with(part: Sequence[Message]) -> _Encoded | None:
    return cast("dict[str, _Encoded]", vars(_home(part))).get(_KEPT_AS)


def _following(part: Sequence[Message]) -> tuple[Message, ...]:
    return () if isinstance(part, Piece) else tuple(part[1:])


def _end_of(role: str) -> bytes:
    return b'],"role":"%b"}' % role.encode()


def _go_on(part: list[bytes], role: str, content: bytes) -> None:
    """Let the last message of `part` go on with `content`: blocks, and the end of a message of this role."""
    part[-1] = part[-1].removesuffix(_end_of(role))
    part += [b",", content]
