"""A server's socket as the events that this machine's own turns have (UI-41, UI-46).

Here: following a conversation over reconnects; frames of the wire (`v=2`) as events for the painter. Not
here: what is done with them (`remote_run.py`), the wire's own side (`server/socket/translate.py`).
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from bowerbird.cli.exits import FAILED, USAGE, CliExit
from bowerbird.cli.remote import Server
from bowerbird.core.events import (
    ApprovalRequest,
    AssistantStep,
    MessageRestart,
    Notice,
    SubagentEnd,
    SubagentStart,
    TextLive,
    ThinkingLive,
    ToolOutcome,
    ToolProgress,
)
from bowerbird.core.messages import Message, TextBlock, ToolUseBlock
from bowerbird.core.requests import Retrying
from bowerbird.core.usage import Usage
from bowerbird.sessions.live.hub import SessionEvent, TurnMark

Frame = dict[str, Any]
UNKNOWN = 4004
LONGEST_PAUSE_S = 5.0
PING_S = 20.0
LOOK_UP_S = 0.5
"""How long to wait at once: a Ctrl+C that comes just before a wait, or to another thread, does not end it."""


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
) -> Iterator[Frame]:
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
                    frame: Frame = json.loads(_next_text(socket, ends_at))
                    cursor = max(cursor, int(frame.get("cursor") or 0))
                    yield frame
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

    def event(self, frame: Frame) -> SessionEvent | None:
        """Return what a frame says, None for one that a terminal does not show."""
        make = _MAKERS.get(str(frame.get("type")))
        return make(self, frame) if make is not None else None

    def text(self, frame: Frame) -> TextLive:
        """A piece of the answer; pieces that are repeated after a reconnect are whole."""
        message_id, content = str(frame["message_id"]), str(frame["content"])
        held = self._texts.setdefault(message_id, [])
        if frame.get("replay") and held:
            content = content.removeprefix("".join(held))
        held.append(content)
        return TextLive(content, message_id)

    def restart(self, frame: Frame) -> MessageRestart:
        """A message begins again: what came of it is void."""
        message_id = str(frame["message_id"])
        self._texts.pop(message_id, None)
        return MessageRestart(message_id, str(frame["reason"]))

    def call(self, frame: Frame) -> None:
        """Remember a call until its message ends."""
        self._calls.append(ToolUseBlock(str(frame["id"]), str(frame["tool"]), frame["input"]))

    def message(self, frame: Frame) -> AssistantStep:
        """A message is complete."""
        message_id = str(frame["message_id"])
        text = "".join(self._texts.pop(message_id, []))
        calls, self._calls = self._calls, []
        blocks = ([TextBlock(text)] if text else []) + calls
        return AssistantStep(
            Message("assistant", tuple(blocks), id=message_id), str(frame.get("stop_reason")), "", Usage()
        )

    def stopped(self, frame: Frame) -> TurnMark:
        """A turn has ended, or waits."""
        self.usage = frame.get("usage") or {}
        names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost")
        usage = Usage(**{name: self.usage[name] for name in names if self.usage.get(name) is not None})
        if frame["type"] == "interrupted":
            return TurnMark("interrupted", stop_reason="interrupted", usage=usage)
        return TurnMark("done", stop_reason=str(frame.get("stop_reason")), usage=usage)


def _asked(_: Frames, frame: Frame) -> ApprovalRequest:
    kinds = {"plan_ready": "plan", "budget_exceeded": "budget"}
    kind: Any = kinds.get(str(frame["type"])) or frame.get("kind", "approval")
    text = str(frame.get("plan") or frame.get("message") or frame.get("text") or "")
    return ApprovalRequest(str(frame["request_id"]), kind, tools=tuple(frame.get("tools", ())), text=text)


def _outcome(_: Frames, frame: Frame) -> ToolOutcome:
    return ToolOutcome(str(frame["id"]), str(frame["tool"]), frame.get("status", "ok"), str(frame["result"]))


def _begins(_: Frames, frame: Frame) -> SubagentStart:
    names = ("subagent_id", "task", "agent_type", "handle", "parent_id")
    return SubagentStart(*(str(frame.get(name) or "") for name in names))


def _ends(_: Frames, frame: Frame) -> SubagentEnd:
    return SubagentEnd(
        subagent_id=str(frame.get("subagent_id") or ""),
        summary=str(frame.get("summary") or ""),
        agent_type=str(frame.get("agent_type") or ""),
        usage=Usage(),
        handle=str(frame.get("handle") or ""),
        parent_id=str(frame.get("parent_id") or ""),
        status=str(frame.get("status") or ""),
        tool_count=int(frame.get("tool_count") or 0),
        elapsed=float(frame.get("elapsed") or 0),
    )


_MAKERS: dict[str, Callable[[Frames, Frame], SessionEvent | None]] = {
    "text_delta": Frames.text,
    "thinking_delta": lambda _, f: ThinkingLive(str(f["content"]), str(f["message_id"])),
    "tool_call": Frames.call,
    "message_end": Frames.message,
    "tool_result": _outcome,
    "tool_progress": lambda _, f: ToolProgress(str(f["id"]), str(f["text"])),
    "turn_started": lambda _, __: TurnMark("running"),
    "done": Frames.stopped,
    "interrupted": Frames.stopped,
    "error": lambda _, f: Notice("error", f"error: {f['message']}"),
    "notice": lambda _, f: Notice(str(f.get("kind")), str(f["message"])),
    "landing": lambda _, f: Notice("landing", str(f["message"])),
    "message_restart": Frames.restart,
    "retrying": lambda _, f: Retrying(int(f["attempt"]), float(f["delay_s"]), f["reason"]),
    "tool_approval_request": _asked,
    "plan_ready": _asked,
    "budget_exceeded": _asked,
    "subagent_start": _begins,
    "subagent_end": _ends,
}
