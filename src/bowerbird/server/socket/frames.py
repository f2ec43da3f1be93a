"""One frame of the wire: its JSON text, made once and shared by every viewer (SV-41, SV-51). Pure.

Here: encoding, the cursor of each frame, joining adjacent deltas. Not here: which frames an event
becomes (`translate.py`), queues (`backlog.py`), sending.

A record of the journal may become several frames. All but the last that plain clients see carry the
cursor before the record, so a viewer that is cut between two of them gets the record again, whole, and
never a part of it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from bowerbird.store.journal.journal import encode_body

DeltaKind = Literal["text_delta", "thinking_delta"]

# What a client without `v=2` may meet (SV-41); anything else is for `v=2` only.
PLAIN_TYPES = frozenset(
    """
    text_delta thinking_delta thinking tool_call tool_result tool_approval_request tool_approval_result
    subagent_start subagent_end todo_update task_update background_result teammate_status compact
    llm_request llm_response plan_ready plan_approved plan_rejected plan_mode_changed teams_changed
    approval_changed interrupted done error accepted
    """.split()
)


class Delta(NamedTuple):
    """What a delta frame says, kept so that adjacent ones can be joined."""

    kind: DeltaKind
    message_id: str
    turn_id: str | None
    content: str
    effort: str | None


class Frame:
    """One event as sent.

    Attributes:
        text: the JSON text. cursor: journal position after it.
        v2: only for viewers that asked for `v=2`.
        delta: its content when it is a live delta, else None.
    """

    __slots__ = ("cursor", "delta", "text", "v2")

    def __init__(self, text: str, cursor: int, *, v2: bool = False, delta: Delta | None = None) -> None:
        self.text = text
        self.cursor = cursor
        self.v2 = v2
        self.delta = delta

    def __repr__(self) -> str:
        return f"Frame({self.text!r})"


class _Text(msgspec.Struct, tag_field="type", tag="text_delta", gc=False):
    content: str
    message_id: str
    cursor: int
    turn_id: str | None


class _Thinking(msgspec.Struct, tag_field="type", tag="thinking_delta", gc=False):
    content: str
    effort: str | None
    message_id: str
    cursor: int
    turn_id: str | None


_encode = msgspec.json.Encoder().encode


def delta_frame(delta: Delta, cursor: int) -> Frame:
    """Return the frame of a live delta; the hot path of the server.

    Example:
        >>> delta_frame(Delta("text_delta", "msg_3", "t_1", "hi", None), 2).text
        '{"type":"text_delta","content":"hi","message_id":"msg_3","cursor":2,"turn_id":"t_1"}'
    """
    kind, message_id, turn_id, content, effort = delta
    if kind == "text_delta":
        body: _Text | _Thinking = _Text(content, message_id, cursor, turn_id)
    else:
        body = _Thinking(content, effort, message_id, cursor, turn_id)
    try:
        text = _encode(body).decode()
    except UnicodeEncodeError:  # a lone surrogate: shown as \xHH
        text = encode_body({"type": kind, **msgspec.structs.asdict(body)})
    return Frame(text, cursor, delta=delta)


def frame_of(body: dict[str, Any], cursor: int, turn_id: str | None) -> Frame:
    """Return the frame of an event; `cursor` and `turn_id` are added at its end.

    Example:
        >>> frame_of({"type": "compact", "message": "m"}, 7, None).text
        '{"type":"compact","message":"m","cursor":7,"turn_id":null}'
    """
    text = encode_body({**body, "cursor": cursor, "turn_id": turn_id})
    return Frame(text, cursor, v2=body["type"] not in PLAIN_TYPES)


def frames_at(bodies: Sequence[dict[str, Any]], before: int, seq: int, turn_id: str | None) -> list[Frame]:
    """Return the frames of one committed event.

    Args:
        bodies: in order. before: the cursor until now. seq: the event's record.
    """
    plain = [i for i, body in enumerate(bodies) if body["type"] in PLAIN_TYPES]
    last = plain[-1] if plain else len(bodies) - 1
    return [frame_of(body, seq if i >= last else before, turn_id) for i, body in enumerate(bodies)]


def joined(frames: Iterable[Frame]) -> list[Frame]:
    """Return `frames` with adjacent deltas of one message as one; nothing is lost.

    Example:
        >>> pieces = [delta_frame(Delta("text_delta", "m", None, text, None), 1) for text in ("a", "b")]
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
    return a is not None and b is not None and a.message_id == b.message_id and a.kind == b.kind


def _one(run: list[Frame]) -> Frame:
    if len(run) == 1:
        return run[0]
    content = "".join(frame.delta.content for frame in run if frame.delta is not None)
    last = run[-1].delta
    assert last is not None, "runs are made of deltas"
    return delta_frame(last._replace(content=content), run[-1].cursor)
