"""What a record's body must hold for anybody to read it (SE-7, SE-59).

Here: the members that readers count on, by record type, and the check. Not here: what they mean
(`sessions/journal/events_as_records.py`); members that are not named are nobody's business here.

A body that is JSON but not of its form (a disk's fault, another program's write) is set aside like one
that is no JSON: else it would fail in the middle of whatever reads it, the start of a server included.
"""

from collections.abc import Mapping
from typing import Any, Required, TypedDict

import msgspec

from bowerbird.core.events import RunError
from bowerbird.core.forms import convert
from bowerbird.core.usage import Usage

Content = str | list[dict[str, Any]]


class _TurnStarted(TypedDict, total=False):
    n: int
    inbox: list[str]
    kind: str
    model: str | None
    mode: str


class _User(TypedDict, total=False):
    content: Required[Content]
    sender: dict[str, Any] | None


class _Assistant(TypedDict, total=False):
    content: Required[Content]
    stop_reason: Required[str]
    model: Required[str]
    usage: Required[Usage]
    invalid_calls: dict[str, str]
    left_out: list[str]


_Intent = TypedDict(
    "_Intent",
    {
        "call": Required[str],
        "tool": Required[str],
        "class": Required[str],
        "mark": str | None,
        "key": str | None,
    },
    total=False,
)


class _Outcome(TypedDict, total=False):
    call: Required[str]
    status: Required[str]
    content: Required[Content]
    data: dict[str, Any] | None
    ms: int | None
    blob: str | None


class _Injected(TypedDict, total=False):
    content: Required[Content]
    source: Required[str]
    ids: list[str]


class _Request(TypedDict, total=False):
    id: Required[str]
    kind: Required[str]
    calls: Required[list[str]]
    tools: list[dict[str, Any]]
    text: str
    expires_at: str | None


class _Answer(TypedDict, total=False):
    id: Required[str]
    decision: Required[str]
    by: str | None
    feedback: str | None
    calls: dict[str, dict[str, Any]]


class _Compaction(TypedDict, total=False):
    from_seq: Required[int]
    to_seq: Required[int]
    summary: Required[str]
    reason: Required[str]
    focus: str | None
    transcript: str | None


class _ModelSwitch(TypedDict):
    tier: str
    by: str


class _Settings(TypedDict, total=False):
    by: str


class _TurnEnded(TypedDict, total=False):
    state: Required[str]
    stop_reason: str | None
    usage: Usage | None
    snapshot: str | None
    error: RunError | None


_FORMS: Mapping[str, Any] = {
    "turn_started": _TurnStarted,
    "user": _User,
    "assistant": _Assistant,
    "tool_intent": _Intent,
    "tool_outcome": _Outcome,
    "injected": _Injected,
    "request": _Request,
    "answer": _Answer,
    "compaction": _Compaction,
    "model_switch": _ModelSwitch,
    "settings": _Settings,
    "turn_ended": _TurnEnded,
}


def problem_of(kind: str, body: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the body of a record of this type, None when it can be read.

    Example:
        >>> problem_of("answer", {"id": "r", "decision": 3})
        'Expected `str`, got `int` - at `$.decision`'
    """
    form = _FORMS.get(kind)
    if form is None:
        return None
    try:
        convert(body, form)
    except msgspec.ValidationError as error:
        return str(error)
    return None
