"""One frame as it is sent: its JSON text, made once and shared by every viewer (SV-41, SV-51). Pure.

Here: the text, the cursor of each frame, joining adjacent deltas. Not here: what frames hold
(`core/wire/`), which an event becomes (`translate.py`), queues and sending (`viewer.py`).

A record of the journal may become several frames. All but the last that plain clients see carry the
cursor before the record, so a viewer that is cut between two of them gets the record again, whole, and
never a part of it.
"""

from collections.abc import Iterable, Sequence

import msgspec

from bowerbird.core.wire import ServerFrame, TextDelta, ThinkingDelta, text_of

Delta = TextDelta | ThinkingDelta


class Frame:
    """One event as sent.

    Attributes:
        text: the JSON text. cursor: journal position after it.
        v2: only for viewers that asked for `v=2`. kind: what it is.
        delta: what it says when it is a live piece of a message, else None; adjacent ones can be joined.

    Args:
        is_live: it is a piece that comes while its message is made.
    """

    __slots__ = ("cursor", "delta", "kind", "text", "v2")

    def __init__(self, frame: ServerFrame, *, is_live: bool = False) -> None:
        self.text = text_of(frame)
        self.cursor = frame.cursor
        self.kind = type(frame)
        self.v2 = not frame.is_plain
        self.delta = frame if is_live and isinstance(frame, Delta) else None

    def __repr__(self) -> str:
        return f"Frame({self.text!r})"


def placed(frame: ServerFrame, cursor: int, turn_id: str | None) -> Frame:
    """Return a frame as it is sent at a place of the journal.

    Example:
        >>> placed(Compact("m"), 7, None).text
        '{"type":"compact","message":"m","cursor":7,"turn_id":null}'
    """
    return Frame(msgspec.structs.replace(frame, cursor=cursor, turn_id=turn_id))


def placed_at(frames: Sequence[ServerFrame], before: int, seq: int, turn_id: str | None) -> list[Frame]:
    """Return the frames of one committed event as they are sent.

    Args:
        frames: in order. before: the cursor until now. seq: the event's record.
    """
    plain = [i for i, frame in enumerate(frames) if frame.is_plain]
    last = plain[-1] if plain else len(frames) - 1
    return [placed(frame, seq if i >= last else before, turn_id) for i, frame in enumerate(frames)]


def joined(frames: Iterable[Frame]) -> list[Frame]:
    """Return `frames` with adjacent deltas of one message as one; nothing is lost.

    Example:
        >>> pieces = [Frame(TextDelta(text, "m", at), is_live=True) for at, text in enumerate("ab")]
        >>> [frame.delta.content for frame in joined(pieces)]
        ['ab']
    """
    out: list[Frame] = []
    run: list[Frame] = []
    for frame in frames:
        if run and not _adjacent(run[-1], frame):
            out.append(_one(run))
            run = []
        if frame.delta is None:
            out.append(frame)
        else:
            run.append(frame)
    if run:
        out.append(_one(run))
    return out


def _adjacent(last: Frame, new: Frame) -> bool:
    a, b = last.delta, new.delta
    if a is None or b is None or a.message_id != b.message_id or type(a) is not type(b):
        return False
    return b.offset == a.offset + len(a.content)


def _one(run: list[Frame]) -> Frame:
    if len(run) == 1:
        return run[0]
    content = "".join(frame.delta.content for frame in run if frame.delta is not None)
    first = run[0].delta
    assert first is not None, "runs are made of deltas"
    return Frame(msgspec.structs.replace(first, content=content, cursor=run[-1].cursor), is_live=True)
