"""Events whose frame needs no memory: notices, retries, the sandbox, inputs (SV-41). Pure.

Here: those whose frame says something else than the event. All others of `core/events.py` that have a frame
of the same name are sent as they are. Not here: messages, questions and turns (`translate.py`).
"""

from collections.abc import Callable
from typing import Any, cast

from bowerbird.core import wire
from bowerbird.core.events import (
    BackgroundResult,
    Compaction,
    Injected,
    ModelSwitch,
    Notice,
    ToolIntent,
    ToolProgress,
    Trace,
    UsageStep,
    UserStep,
)
from bowerbird.core.forms import convert
from bowerbird.core.requests import ModelFallback, Retrying
from bowerbird.core.tagged import Tagged
from bowerbird.core.wire.rows import Notification
from bowerbird.server.common.safe_text import said
from bowerbird.sessions.live.hub import InputMark

COMMAND_CHARS = 80
OUTCOME_CHARS = 500


def small_frame(event: object) -> wire.ServerFrame | None:
    """Return what is sent for `event`, None for what viewers are not told.

    Example:
        >>> small_frame(ToolProgress("call_1", "half")).text
        'half'
    """
    make = MAKERS.get(type(event))
    if make is not None:
        return make(event)
    return wire.frame_of_event(event) if isinstance(event, Tagged) else None


def _notice(event: Notice) -> wire.ServerFrame | None:
    if event.kind == "compact":
        return None  # its `Compaction` is shown
    if event.kind == "landing":
        return wire.Landing(said(event.text))
    return wire.Notice(event.kind, said(event.text))


def _input(event: InputMark) -> wire.ServerFrame:
    sender = event.sender
    return wire.TurnQueued(
        inbox_id=event.inbox_id or None,
        position=event.position,
        kind=event.kind,
        state=event.state,
        content=event.text,
        sender={"id": sender.get("id"), "name": sender.get("name"), "door": sender.get("door")},
    )


def _background(event: BackgroundResult) -> wire.ServerFrame:
    cut = {"command": COMMAND_CHARS, "result": OUTCOME_CHARS}
    rows = [
        {key: value[: cut[key]] if key in cut else value for key, value in row.items()}
        for row in event.notifications
    ]
    return wire.BackgroundResult(cast("list[Notification]", rows))


def _trace(event: Trace) -> wire.ServerFrame:
    # Members of the stored record that the frame does not name, `purpose`, are for the record only.
    return convert(event.record, wire.LlmRequest | wire.LlmResponse)


MAKERS: dict[type, Callable[[Any], wire.ServerFrame | None]] = {
    InputMark: _input,
    Compaction: lambda e: wire.Compact(f"The history was summarised ({e.reason})."),
    ModelSwitch: lambda e: wire.Settings({"tier": e.tier}),
    Retrying: lambda e: wire.Retrying(e.attempt, e.delay_s, said(e.reason)),
    ModelFallback: lambda e: wire.ModelFallback(e.from_model, e.to_model, said(e.reason)),
    ToolProgress: lambda e: wire.ToolProgress(e.call, e.text),
    Notice: _notice,
    BackgroundResult: _background,
    Trace: _trace,
}
"""Events that are not sent as they are, with what is."""

NOT_SENT: dict[type, str] = {
    UserStep: "shown when it is accepted (`turn_queued`); `inputs.py` where nobody was told then",
    ToolIntent: "its call was shown with the answer it stands in",
    Injected: "words of the runtime to the model: viewers see what comes of them",
    UsageStep: "totals come with `done`",
}
"""Events of the journal that viewers are not told, and why."""
