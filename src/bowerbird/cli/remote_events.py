"""A server's socket as the events that this machine's own turns have (UI-41, UI-46).

Here: following a conversation over reconnects; frames of the wire (`v=2`) as events for the painter. Not
here: what is done with them (`remote_run.py`), the wire's own side (`server/socket/translate.py`).
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from bowerbird.cli.exits import FAILED, USAGE, CliExit
from bowerbird.cli.painter import SUMMARISED
from bowerbird.cli.remote import Server
from bowerbird.core import wire
from bowerbird.core.events import (
    ApprovalRequest,
    AssistantStep,
    MessageRestart,
    ModelSwitch,
    Notice,
    TextLive,
    ThinkingLive,
    ToolOutcome,
    ToolProgress,
    UserStep,
)
from bowerbird.core.messages import Message, TextBlock, ToolUseBlock, user_text
from bowerbird.core.usage import Usage
from bowerbird.sessions.live.hub import SessionEvent, TurnMark

UNKNOWN = 4004
LONGEST_PAUSE_S = 5.0
PING_S = 20.0
LOOK_UP_S = 0.5
"""How long to wait at once: a Ctrl+C that comes just before a wait, or to another thread, does not end it."""


class Received(NamedTuple):
    """A frame, and the text it came as."""

    text: str
    frame: wire.ServerFrame


class Late(Exception):
    """The time to follow is over."""


def follow(
    server: Server,
    thread_id: str,
    after: int,
    say: Callable[[str], None],
    *,
    first: str = "",
    ends_at: float | None = None,
) -> Iterator[Received]:
    """Yield a conversation's frames after a cursor; a server that restarts is waited for.

    Args:
        say: told `first` at the first connection, then when it is lost and when it is back.
        ends_at: monotonic time at which to stop; None = never.

    Raises:
        CliExit: the first connection fails, or the server refuses. Late: `ends_at` has come.
    """
    cursor, pause, was_there = after, 0.5, False
    while True:
        try:
            with _socket(server, thread_id, cursor) as socket:
                if said := "connected again" if was_there else first:
                    say(said)
                was_there, pause = True, 0.5
                while True:
                    text = _next_text(socket, ends_at)
                    frame = wire.read_frame(text)
                    cursor = max(cursor, frame.cursor)
                    yield Received(text, frame)
        except ConnectionClosed as error:
            if error.rcvd is not None and 4000 <= error.rcvd.code < 4100 and error.rcvd.code != 4008:
                code = USAGE if error.rcvd.code == UNKNOWN else FAILED
                raise CliExit(code, f"the server ends this: {error.rcvd.reason}") from None
            say("the connection is lost; waiting for the server")
        except (OSError, InvalidHandshake) as error:
            if not was_there:
                raise server.gone(error) from None
        if ends_at is not None and time.monotonic() + pause > ends_at:
            raise Late
        time.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_S)


def _next_text(socket: ClientConnection, ends_at: float | None) -> str:
    while True:
        left = LOOK_UP_S if ends_at is None else min(LOOK_UP_S, ends_at - time.monotonic())
        try:
            return str(socket.recv(timeout=max(0.0, left), decode=True))
        except TimeoutError:
            if ends_at is not None and time.monotonic() >= ends_at:
                raise Late from None


def _socket(server: Server, thread_id: str, after: int) -> ClientConnection:
    url = server.url.replace("http", "ws", 1) + f"/api/chat/{thread_id}/ws?v=2&after={after}"
    return connect(
        url, additional_headers=server.headers, max_size=None, compression=None, proxy=None,
        ping_interval=PING_S,
    )  # fmt: skip


class Frames:
    """Turns frames back into events, in order; remembers the message under way.

    Attributes:
        usage: of the turn that ended last.
    """

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._calls: list[ToolUseBlock] = []
        self.usage: dict[str, Any] = {}

    def event(self, frame: wire.ServerFrame) -> SessionEvent | None:
        """Return what a frame says as an event, None for one that is none (`NOT_SHOWN`, lists of tasks)."""
        make = MAKERS.get(type(frame))
        if make is not None:
            return make(self, frame)
        event = wire.event_of_frame(frame)
        if event is None and frame.line:
            return Notice(wire.frame_type(type(frame)), wire.said_in_a_line(frame))
        return event

    def text(self, frame: wire.TextDelta) -> TextLive:
        """A piece of the answer; pieces that are repeated after a reconnect are whole."""
        content = frame.content
        held = self._texts.setdefault(frame.message_id, [])
        if frame.replay is True and held:
            content = content.removeprefix("".join(held))
        held.append(content)
        return TextLive(content, frame.message_id)

    def restart(self, frame: wire.MessageRestart) -> MessageRestart:
        """A message begins again: what came of it is void."""
        self._texts.pop(frame.message_id, None)
        return MessageRestart(frame.message_id, frame.reason)

    def call(self, frame: wire.ToolCall) -> None:
        """Remember a call until its message ends."""
        self._calls.append(ToolUseBlock(frame.id, frame.tool, frame.input))

    def message(self, frame: wire.MessageEnd) -> AssistantStep:
        """A message is complete."""
        text = "".join(self._texts.pop(frame.message_id, []))
        calls, self._calls = self._calls, []
        blocks = ([TextBlock(text)] if text else []) + calls
        message = Message("assistant", tuple(blocks), id=frame.message_id)
        return AssistantStep(message, frame.stop_reason, "", Usage())

    def stopped(self, frame: wire.Done | wire.Interrupted) -> TurnMark:
        """A turn has ended, or waits."""
        self.usage = msgspec.to_builtins(frame.usage)
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost")
        usage = Usage(**{name: self.usage[name] for name in names})
        if isinstance(frame, wire.Interrupted):
            return TurnMark("interrupted", stop_reason="interrupted", usage=usage)
        return TurnMark("done", stop_reason=str(frame.stop_reason), usage=usage)


def _approval(_: Frames, frame: wire.ToolApprovalRequest) -> ApprovalRequest:
    kind: Any = frame.kind or "approval"
    tools: Any = tuple(frame.tools)
    return ApprovalRequest(frame.request_id, kind, tools=tools, text=frame.text or "")


def _joined(_: Frames, frame: wire.TurnQueued) -> UserStep | None:
    """What joins the turn is shown as a local turn shows it; other inputs begin turns of their own."""
    if frame.kind != "steer" or frame.state != "queued" or not frame.content:
        return None
    return UserStep(user_text(frame.content), steer=True)


def _settings(_: Frames, frame: wire.Settings) -> SessionEvent:
    tier = frame.changes.get("tier")
    if isinstance(tier, str):
        return ModelSwitch(tier, "user")
    return Notice("settings", "; ".join(f"{name} is now {value}" for name, value in frame.changes.items()))


def _switched(what: str) -> "Callable[[Frames, Any], SessionEvent]":
    return lambda _, frame: Notice("settings", f"{what} is {'on' if frame.enabled else 'off'}")


MAKERS: dict[type[wire.ServerFrame], Callable[[Frames, Any], SessionEvent | None]] = {
    wire.TextDelta: Frames.text,
    wire.ThinkingDelta: lambda _, f: ThinkingLive(f.content, f.message_id),
    wire.ToolCall: Frames.call,
    wire.MessageEnd: Frames.message,
    wire.ToolResult: lambda _, f: ToolOutcome(f.id, f.tool, f.status, f.result),
    wire.ToolProgress: lambda _, f: ToolProgress(f.id, f.text),
    wire.TurnQueued: _joined,
    wire.TurnStarted: lambda _, __: TurnMark("running"),
    wire.Done: Frames.stopped,
    wire.Interrupted: Frames.stopped,
    wire.Error: lambda _, f: Notice("error", f"error: {f.message}"),
    wire.MessageRestart: Frames.restart,
    wire.ToolApprovalRequest: _approval,
    wire.PlanReady: lambda _, f: ApprovalRequest(f.request_id, "plan", text=f.plan),
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
    wire.ToolApprovalResult: "what it leads to is shown: the call's result, or that it was denied",
    wire.PlanApproved: "the turn that carries the plan out is shown",
    wire.PlanRejected: "the turn that revises the plan is shown",
    wire.TaskUpdate: "the calls that change the board are shown",
    wire.BranchUpdate: "the files are counted when the turn ends",
    wire.BackgroundRuns: "answers `background`, which this client does not send",
    wire.LlmRequest: "traces are read with the API or in the browser",
    wire.LlmResponse: "traces are read with the API or in the browser",
}
"""Frames that a terminal does not draw, and why."""
