"""The beginning of a long conversation as it was encoded for the call before: only what is new costs time.

Here: messages in pieces of fixed length, their JSON kept with the first message of each. Not here: how a
message is translated (the wires), the rest of a body (`encoding`).

Messages are values, so their JSON stays right as long as they are sent in the same order to the same model.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from bowerbird.core.messages import Message
from bowerbird.models.providers.encoding import encode_part

PIECE = 64  # messages encoded together
NEWEST = 8  # messages that are always translated: marks and what belongs to this call only go there
_KEPT_AS = "_encoded_beginning"

Translate = Callable[[Sequence[Message], int], list[dict[str, Any]]]
"""Translates messages, given also the index of the first of them."""


class _Piece(NamedTuple):
    """JSON of the messages of a provider's list, without the brackets; roles of its first and last.

    `following` are the messages after the one that it is kept with: so it holds no reference to itself.
    """

    key: Hashable
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
        fixed: indexes of messages whose translation holds for this call only.
        merges: adjacent messages of one role become one.
    """
    end = max(0, len(messages) - NEWEST) // PIECE * PIECE
    newest = translate(messages[end:], end)
    if not end or not newest:
        return translate(messages, 0)
    pieces: list[_Piece] = []
    for at in range(0, end, PIECE):
        once = any(at <= index < at + PIECE for index in fixed)
        piece = _piece(messages[at : at + PIECE], at, key, translate, once=once)
        if not piece.content:
            continue
        if merges and pieces and pieces[-1].last == piece.first:
            pieces[-1] = _merged(pieces[-1], piece)
        else:
            pieces.append(piece)
    if merges and pieces and pieces[-1].last == newest[0]["role"]:
        items = encode_part(newest.pop(0)["content"])[1:-1]
        pieces[-1] = _continued(pieces[-1], items)
    return [*(msgspec.Raw(piece.content) for piece in pieces), *newest]


def _piece(
    messages: Sequence[Message], at: int, key: Hashable, translate: Translate, *, once: bool
) -> _Piece:
    first, following = messages[0], tuple(messages[1:])
    kept = cast("_Piece | None", vars(first).get(_KEPT_AS))
    if not once and kept is not None and kept.key == key and kept.following == following:
        return kept
    wire = translate(messages, at)
    roles = (str(wire[0]["role"]), str(wire[-1]["role"])) if wire else ("", "")
    made = _Piece(key, following, encode_part(wire)[1:-1], *roles)
    if not once and not any(message.images for message in messages):  # their bytes may come or go
        vars(first)[_KEPT_AS] = made
    return made


def _end_of(role: str) -> bytes:
    return b'],"role":"%b"}' % role.encode()


def _merged(one: _Piece, other: _Piece) -> _Piece:
    """Put the first message of `other` into the last one of `one`: both are of one role."""
    items = other.content.removeprefix(b'{"content":[')
    joined = one.content.removesuffix(_end_of(one.last)) + b"," + items
    return one._replace(content=joined, last=other.last)


def _continued(piece: _Piece, items: bytes) -> _Piece:
    """Add blocks to the last message of `piece`."""
    end = _end_of(piece.last)
    return piece._replace(content=piece.content.removesuffix(end) + b"," + items + end)
