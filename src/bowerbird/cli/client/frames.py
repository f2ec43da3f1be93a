"""A server's frames as the events that this machine's own turns have (UI-41, UI-46).

Here: frames of the wire (`v=2`) as events for the painter. Not here: the connection (`socket.py`), the wire's
own side (`server/socket/translate.py`).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from bowerbird.cli.turn.painter import SUMMARISED
from bowerbird.core import wire
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    MessageRestart,
    ModelSwitch,
    Notice,
    RunError,
    TextLive,
    ThinkingLive,
    ToolOutcome,
    ToolProgress,
    UserStep,
)
from bowerbird.core.messages import Message, TextBlock, ToolUseBlock, user_text
from bowerbird.core.pieces import Pieces
from bowerbird.core.usage import Usage
from bowerbird.sessions.live.hub import Published, SessionEvent, TurnMark


class Frames:
    """Turns frames back into events, in order; remembers the message under way.

    Attributes:
        usage: of the turn that ended last.
    """

    def __init__(self) -> None:
        self._texts: dict[str, Pieces] = {}
        self._calls: list[ToolUseBlock] = []
        self._error: RunError | None = None
        self._turn_id = ""
        self.usage: dict[str, Any] = {}

    def event(self, frame: wire.ServerFrame) -> SessionEvent | None:
        """Return what a frame says as an event, None for one that is none (`NOT_SHOWN`, lists of tasks)."""
        self._turn_id = frame.turn_id or self._turn_id
        make = MAKERS.get(type(frame))
        if make is not None:
            return make(self, frame)
        event = wire.event_of_frame(frame)
        if event is None and frame.line:
            return Notice(wire.frame_type(type(frame)), wire.said_in_a_line(frame))
        return event

    def text(self, frame: wire.TextDelta) -> TextLive | MessageRestart:
        """A piece of the answer; what comes after a reconnect is all there is so far.

        Where that does not begin with what we have, the message was restarted meanwhile.
        """
        held = self._texts.get(frame.message_id)
        is_other = frame.replay is True and held is not None and not frame.content.startswith(str(held))
        if held is None or is_other:
            held = self._texts[frame.message_id] = Pieces()
        held.take(frame.content, frame.offset)
        if is_other:
            return MessageRestart(frame.message_id, "while nobody was connected")
        return TextLive(frame.content, frame.message_id, frame.offset)

    def begun_anew(self, thread_id: str) -> list[Published]:
        """A connection is lost: what was begun is sent whole again, or by a server that begins it anew."""
        begun = list(self._texts)
        self._texts.clear()
        why = "the connection was lost"
        return [Published(thread_id, self._turn_id, None, MessageRestart(each, why)) for each in begun]

    def restart(self, frame: wire.MessageRestart) -> MessageRestart:
        """A message begins again: what came of it is void."""
        self._texts.pop(frame.message_id, None)
        return MessageRestart(frame.message_id, frame.reason)

    def call(self, frame: wire.ToolCall) -> None:
        """Remember a call until its message ends."""
        self._calls.append(ToolUseBlock(frame.id, frame.tool, frame.input))

    def message(self, frame: wire.MessageEnd) -> AssistantStep:
        """A message is complete."""
        text = str(self._texts.pop(frame.message_id, ""))
        calls, self._calls = self._calls, []
        blocks = ([TextBlock(text)] if text else []) + calls
        message = Message("assistant", tuple(blocks), id=frame.message_id)
        return AssistantStep(message, frame.stop_reason, "", Usage())

    def error(self, frame: wire.Error) -> Notice | None:
        """Why a turn fails: its end comes next. Others are said at once, the connection's not."""
        if frame.code in ("shutting_down", "too_slow"):
            return None
        if frame.turn_id is None or isinstance(frame.subagent_id, str):
            return Notice("error", frame.message)
        self._error = RunError(frame.code, frame.message, retryable=frame.retryable)
        return None

    def stopped(self, frame: wire.Done | wire.Interrupted) -> TurnMark:
        """A turn has ended, or waits."""
        self.usage = msgspec.to_builtins(frame.usage)
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost")
        usage = Usage(**{name: self.usage[name] for name in names})
        if isinstance(frame, wire.Interrupted):
            return TurnMark("interrupted", stop_reason="interrupted", usage=usage)
        error, self._error = self._error, None
        if frame.stop_reason != "error":
            error = None
        state = "done" if error is None else "failed"
        return TurnMark(state, stop_reason=str(frame.stop_reason), usage=usage, error=error)


def _data(frame: wire.ToolResult) -> dict[str, Any] | None:
    return {"diff": frame.diff} if isinstance(frame.diff, dict) else None


def _approval(_: Frames, frame: wire.ToolApprovalRequest) -> ApprovalRequest:
    kind: Any = frame.kind or "approval"
    tools: Any = tuple(frame.tools)
    return ApprovalRequest(frame.request_id, kind, tools=tools, text=frame.text or "")


def _joined(_: Frames, frame: wire.TurnQueued) -> UserStep | None:
    """What joins the turn is shown as a local turn shows it; what begins a turn is said by who shows that."""
    if frame.state != "queued" or not frame.content:
        return None
    return UserStep(user_text(frame.content), steer=frame.kind == "steer")


def _settings(_: Frames, frame: wire.Settings) -> SessionEvent | None:
    tier = frame.changes.get("tier")
    if isinstance(tier, str):
        return ModelSwitch(tier, "user")
    shown = {name: value for name, value in frame.changes.items() if name != "compact"}  # what it leads to is
    if not shown:
        return None
    return Notice("settings", "; ".join(f"{name} is now {value}" for name, value in shown.items()))


def _switched(what: str) -> "Callable[[Frames, Any], SessionEvent]":
    return lambda _, frame: Notice("settings", f"{what} is {'on' if frame.enabled else 'off'}")


MAKERS: dict[type[wire.ServerFrame], Callable[[Frames, Any], SessionEvent | None]] = {
    wire.TextDelta: Frames.text,
    wire.ThinkingDelta: lambda _, f: ThinkingLive(f.content, f.message_id, f.offset),
    wire.ToolCall: Frames.call,
    wire.MessageEnd: Frames.message,
    wire.ToolResult: lambda _, f: ToolOutcome(f.id, f.tool, f.status, f.result, _data(f)),
    wire.ToolProgress: lambda _, f: ToolProgress(f.id, f.text),
    wire.TurnQueued: _joined,
    wire.TurnStarted: lambda _, __: TurnMark("running"),
    wire.Done: Frames.stopped,
    wire.Interrupted: Frames.stopped,
    wire.Error: lambda _, f: Notice("error", f"error: {f.message}"),
    wire.MessageRestart: Frames.restart,
    wire.Error: Frames.error,
    wire.ToolApprovalRequest: _approval,
    wire.PlanReady: lambda _, f: ApprovalRequest(f.request_id, "plan", text=f.plan),
    wire.ToolApprovalResult: lambda _, f: ApprovalAnswer(f.request_id, f.decision, calls=f.calls or {}),
    wire.PlanApproved: lambda _, f: ApprovalAnswer(f.request_id, "approve"),
    wire.PlanRejected: lambda _, f: ApprovalAnswer(f.request_id, "reject", feedback=f.feedback),
    wire.BudgetExceeded: lambda _, f: ApprovalRequest(f.request_id, "budget", text=f.message),
    wire.Compact: lambda _, __: Notice("compact", SUMMARISED),
    wire.Settings: _settings,
    wire.PlanModeChanged: _switched("plan mode"),
    wire.TeamsChanged: _switched("teams"),
    wire.ApprovalChanged: _switched("approval of tools"),
}
"""How a frame becomes an event where it says something else than the event of its name."""

NOT_SHOWN: dict[type[wire.ServerFrame], str] = {
    wire.Hello: "nobody waits for it: the head of the conversation was read before",
    wire.Accepted: "answers frames with an id, which this client does not send",
    wire.Pong: "answers `ping`, which this client does not send",
    wire.Thinking: "reasoning is not shown in the terminal, only that the model thinks",
    wire.TaskUpdate: "the calls that change the board are shown",
    wire.BranchUpdate: "the files are counted when the turn ends",
    wire.BackgroundRuns: "answers `background`, which this client does not send",
    wire.LlmRequest: "traces are read with the API or in the browser",
    wire.LlmResponse: "traces are read with the API or in the browser",
}
"""Frames that a terminal does not draw, and why."""
