"""The beginning of a long conversation as it was encoded for the call before: only what is new costs time.

Here: messages in pieces of fixed length, the JSON of each kept with it. Not here: how a message is translated
(the wires), the rest of a body (`encoding`).

Messages are values, so their JSON stays right as long as they are sent in the same order to the same model.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from bowerbird.core.growing import PIECE, Growing, Piece
from bowerbird.core.messages import Message
from bowerbird.models.providers.encoding import encode_part

NEWEST = 8  # messages that are always translated: what belongs to this call only goes there
RUN = 16  # pieces whose JSON is kept as one
_KEPT_AS = "_encoded_beginning"
_RUN_KEPT_AS = "_encoded_run"

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
    for at, run in _stretches(messages, end, fixed):
        if run:
            piece = _encoded_run(run, at, key, translate, merges=merges)
        else:
            marks = tuple([index - at for index in fixed if at <= index < at + PIECE])
            piece = _encoded(messages[at : at + PIECE], at, key, marks, translate)
        role = _add(parts, role, piece, merges=merges)
    if merges and parts and role == newest[0]["role"]:
        items = encode_part(newest.pop(0)["content"])[1:-1]
        _go_on(parts[-1], role, items + _end_of(role))
    return [*(msgspec.Raw(b"".join(part)) for part in parts), *newest]


def not_kept(messages: Sequence[Message], key: Hashable) -> list[Message]:
    """Return the messages of which nothing is kept that `translated` could use."""
    end = _beginning_of(messages)
    found = list(messages[end:])
    for at, run in _stretches(messages, end, ()):
        if run and _kept_run(run, key) is not None:
            continue
        for part in run or (messages[at : at + PIECE],):
            kept = _kept_with(part)
            if kept is None or kept.key != key or kept.following != _following(part):
                found += part
    return found


def _beginning_of(messages: Sequence[Message]) -> int:
    return max(0, len(messages) - NEWEST) // PIECE * PIECE


def _stretches(
    messages: Sequence[Message], end: int, fixed: Sequence[int]
) -> Iterator[tuple[int, tuple[Piece[Message], ...]]]:
    """Yield where each piece of the beginning starts; or many together, and these, where none is marked."""
    at = 0
    while at < end:
        stop = at + RUN * PIECE
        whole = at % (RUN * PIECE) == 0 and stop <= end and not any(at <= index < stop for index in fixed)
        run = messages.pieces(at, stop) if whole and isinstance(messages, Growing) else ()
        yield at, run
        at = stop if run else at + PIECE


def _encoded_run(
    run: tuple[Piece[Message], ...], at: int, key: Hashable, translate: Translate, *, merges: bool
) -> _Encoded:
    """Return the JSON of many pieces as of one: to look for that of each takes longer than to send it."""
    kept = _kept_run(run, key)
    if kept is not None:
        return kept
    parts: list[list[bytes]] = []
    role = first = ""
    for number, piece in enumerate(run):
        made = _encoded(piece, at + number * PIECE, key, (), translate)
        role, first = _add(parts, role, made, merges=merges), first or made.first
    content = b",".join(b"".join(part) for part in parts)
    whole = _Encoded(key, (), (), content, first, role)
    if all(_kept_with(piece) is not None for piece in run):
        vars(run[-1])[_RUN_KEPT_AS] = (run[:-1], whole)
        for piece in run:
            vars(piece).pop(_KEPT_AS, None)
    return whole


def _kept_run(run: tuple[Piece[Message], ...], key: Hashable) -> _Encoded | None:
    above, kept = cast(
        "tuple[tuple[Piece[Message], ...], _Encoded | None]", vars(run[-1]).get(_RUN_KEPT_AS, ((), None))
    )
    return kept if kept is not None and kept.key == key and above == run[:-1] else None


def _add(parts: list[list[bytes]], role: str, piece: _Encoded, *, merges: bool) -> str:
    """Put a piece after `parts`, whose last message is of `role`; return the role of the last one now."""
    if not piece.content:
        return role
    if merges and parts and role == piece.first:
        _go_on(parts[-1], role, piece.content.removeprefix(b'{"content":['))
    else:
        parts.append([piece.content])
    return piece.last


def _encoded(
    part: Sequence[Message], at: int, key: Hashable, marks: tuple[int, ...], translate: Translate
) -> _Encoded:
    kept, following = _kept_with(part), _following(part)
    if kept is not None and (kept.key, kept.marks, kept.following) == (key, marks, following):
        return kept
    wire = translate(part, at)
    roles = (str(wire[0].get("role", "")), str(wire[-1].get("role", ""))) if wire else ("", "")
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
