"""Events of a session to the wire's types (SV-41 … SV-44). Pure: a fold over the events in order.

Here: which frames an event becomes, and what must be remembered for that (tools of open requests, the
message under way, the last input). Not here: encoding (`frames.py`), where events come from, the files of
a branch (given).

A message has one id on the wire, `msg_` and the number of its record, whether it is streamed or read back:
while it is under way, the number is the next one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from bowerbird.core import wire
from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    MessageRestart,
    ModeChange,
    SubagentEnd,
    TeammateStatus,
    TextLive,
    ThinkingLive,
    ToolOutcome,
    UserStep,
)
from bowerbird.core.messages import ThinkingBlock, text_of
from bowerbird.core.pieces import Pieces
from bowerbird.core.usage import Usage
from bowerbird.core.wire import ServerFrame
from bowerbird.core.wire.rows import ToolDiff
from bowerbird.core.wire.turns import TurnState
from bowerbird.server.socket.frames import Frame, placed, placed_at
from bowerbird.server.socket.inputs import Inputs
from bowerbird.server.socket.request_frames import DECISIONS, asked, decided, error, single
from bowerbird.server.socket.simple_frames import small_frame
from bowerbird.sessions.live.hub import InputMark, Published, TurnMark
from bowerbird.sessions.thread_ids import thread_of_teammate

RESULT_CHARS = 2000

_SWITCHES = {
    "enable_plan_mode": wire.PlanModeChanged,
    "enable_teams": wire.TeamsChanged,
    "enable_approval": wire.ApprovalChanged,
}
_CAMEL = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Closing:
    """What the end of a turn shows of the branch."""

    files: Sequence[wire.FileRow] = ()
    truncated: bool = False
    changed: int = 0


@dataclass(slots=True)
class UnderWay:
    """The message that is being streamed."""

    message_id: str
    live_id: str
    turn_id: str | None
    text: Pieces = field(default_factory=Pieces)
    thought: Pieces = field(default_factory=Pieces)


@dataclass(slots=True)
class Translator:
    """The fold. One per room for what is live, one per replay; `replay` marks what it makes.

    Attributes:
        effort: shown with thinking. plan_mode: of the session, as far as told.
        cursor: journal position of the newest committed event.
        last_input: input of the main loop's last call, with what a cache held.
        thread_id: the session shown; questions of other threads are those of its subagents.
        requests: open questions by id, oldest first. asked_by: whose they are, when they are a subagent's.
        aliases: message ids that were predicted wrong, by record. inputs: those that viewers were told of.
        state, paused: of the newest turn; `paused` while a turn that stopped waits for a person.
        told_plan: the turn whose `done` was said when its plan was put before a person.
    """

    effort: str = "high"
    plan_mode: bool = False
    cursor: int = 0
    replay: bool = False
    last_input: int = 0
    state: TurnState = "idle"
    running: str | None = None
    paused: TurnMark | None = None
    told_plan: str | None = None
    under_way: UnderWay | None = None
    thread_id: str = ""
    requests: dict[str, ApprovalRequest] = field(default_factory=dict[str, ApprovalRequest])
    asked_by: dict[str, str] = field(default_factory=dict[str, str])
    aliases: dict[int, str] = field(default_factory=dict[int, str])
    inputs: Inputs = field(default_factory=Inputs)

    def delta(self, published: Published) -> Frame | None:
        """Return the frame of a live delta, None for any other event."""
        event = published.event
        if not isinstance(event, TextLive | ThinkingLive):
            return None
        message = self.under_way
        if message is None or message.live_id != event.message_id:
            message = self._begin(event.message_id, published.turn_id)
        content, at, message_id = event.content, event.offset, message.message_id
        place: dict[str, Any] = {"cursor": self.cursor, "turn_id": published.turn_id}
        if isinstance(event, TextLive):
            message.text.take(content, at)
            piece = wire.TextDelta(content, message_id, at, **place)
        else:
            message.thought.take(content, at)
            piece = wire.ThinkingDelta(content, self.effort, message_id, at, **place)
        return Frame(piece, is_live=True)

    def frames(self, published: Published, closing: Closing | None = None) -> list[Frame]:
        """Return the frames of any event and remember what later ones need.

        Args:
            closing: the branch's files, when a turn stops.
        """
        live = self.delta(published)
        if live is not None:
            return [live]
        before, seq = self.cursor, published.seq
        self.cursor = max(before, seq or 0)
        frames = self._frames(published, closing or Closing())
        if self.replay:
            frames = [replace(frame, replay=True) for frame in frames]
        if seq is None:
            return [placed(frame, self.cursor, published.turn_id) for frame in frames]
        return placed_at(frames, before, max(seq, before), published.turn_id)

    def so_far(self) -> list[Frame]:
        """Return what there is of the message under way, for a viewer that comes now."""
        message = self.under_way
        if message is None:
            return []
        frames: list[ServerFrame] = []
        message_id = message.message_id
        if message.thought.length:
            frames.append(wire.ThinkingDelta(str(message.thought), self.effort, message_id, 0, replay=True))
        if message.text.length:
            frames.append(wire.TextDelta(str(message.text), message_id, 0, replay=True))
        return [placed(frame, self.cursor, message.turn_id) for frame in frames]

    def pending(self, *, below: bool = False) -> list[Frame]:
        """Return the open questions, for a viewer that comes now.

        Args:
            below: only those of subagents, which no record of this session has.
        """
        made: list[Frame] = []
        for request in self.requests.values():
            by = self.asked_by.get(request.id)
            if below and by is None:
                continue
            marks: dict[str, Any] = {"replay": True} if by is None else {"subagent_id": by, "replay": True}
            frames = [replace(frame, **marks) for frame in asked(request)]
            made += [placed(frame, self.cursor, self.running) for frame in frames]
        return made

    def waiting(self) -> list[Frame]:
        """Return the inputs whose turns have not begun, for a viewer that comes now."""
        return [placed(f, self.cursor, mark.turn_id) for mark in self.inputs.waiting for f in _one(mark)]

    def pause_again(self, closing: Closing) -> list[Frame]:
        """Return the `done` of a turn that waits, for a viewer that was not there when it stopped."""
        if self.paused is None:
            return []
        frames = [replace(frame, replay=True) for frame in self._stopped(self.paused, closing)]
        return [placed(frame, self.cursor, self.running) for frame in frames]

    def _begin(self, live_id: str, turn_id: str | None) -> UnderWay:
        self.under_way = UnderWay(f"msg_{self.cursor + 1}", live_id, turn_id)
        return self.under_way

    def _frames(self, published: Published, closing: Closing) -> list[ServerFrame]:
        event = published.event
        match event:
            case AssistantStep():
                return self._assistant(event, published)
            case MessageRestart():
                return self._restart(event)
            case ToolOutcome():
                return tool_result(event)
            case ApprovalRequest():
                return self._asked(event, published.thread_id)
            case ApprovalAnswer():
                return self._answer(event)
            case SubagentEnd():
                return [*self._unanswered(event.subagent_id), *_one(event)]
            case TeammateStatus():
                over = event.status not in ("working", "idle")
                gone = self._unanswered(thread_of_teammate(self.thread_id, event.name)) if over else []
                return [*gone, *_one(event)]
            case ModeChange():
                return self._mode(event)
            case InputMark():
                self.inputs.told(event, self.running)
            case UserStep():
                event = self.inputs.entered(published.turn_id, event)
            case TurnMark():
                return self._turn(published.turn_id, event, closing)
            case _:
                pass
        return _one(event)

    # ------------------------------------------------------------ messages

    def _assistant(self, event: AssistantStep, published: Published) -> list[ServerFrame]:
        message, live = event.message, self.under_way
        self.last_input = event.usage.context_tokens
        if live is not None and live.live_id != message.id and live.turn_id != published.turn_id:
            live = None  # of another turn: it was never completed
        self.under_way = None
        seq = published.seq or self.cursor
        message_id = live.message_id if live is not None else self.aliases.get(seq, f"msg_{seq}")
        if message_id != f"msg_{seq}":
            self.aliases[seq] = message_id
        thought = "".join(b.thinking for b in message.content if isinstance(b, ThinkingBlock))
        frames: list[ServerFrame] = []
        if thought and not (live is not None and live.thought.length):
            frames.append(wire.Thinking(thought, self.effort))
        frames += _rest_of_text(message.text, message.id, live, message_id)
        frames += [wire.ToolCall(use.name, use.input, use.id) for use in message.tool_uses]
        return [*frames, wire.MessageEnd(message_id, event.stop_reason)]

    def _restart(self, event: MessageRestart) -> list[ServerFrame]:
        message = self.under_way  # what came of it is void; what comes next has the same id on the wire
        if message is None or message.live_id != event.message_id:
            return []
        self.under_way = None
        return [wire.MessageRestart(message.message_id, event.reason)]

    # ------------------------------------------------------------ questions and settings

    def _asked(self, event: ApprovalRequest, thread_id: str) -> list[ServerFrame]:
        self.requests[event.id] = event
        if not self.thread_id or thread_id == self.thread_id:
            return asked(event)
        self.asked_by[event.id] = thread_id
        return [replace(frame, subagent_id=thread_id) for frame in asked(event)]

    def _unanswered(self, subagent_id: str) -> list[ServerFrame]:
        """Say that nobody answered a subagent in time: it has ended."""
        below = subagent_id + "."
        over = [i for i, by in self.asked_by.items() if by == subagent_id or by.startswith(below)]
        return [
            decided(
                self.requests.pop(request_id),
                request_id,
                "timeout",
                subagent_id=self.asked_by.pop(request_id),
            )
            for request_id in over
        ]

    def _answer(self, event: ApprovalAnswer) -> list[ServerFrame]:
        request, below = self.requests.pop(event.id, None), self.asked_by.pop(event.id, None)
        if below is not None:
            decision = DECISIONS.get(event.decision, event.decision)
            return [decided(request, event.id, decision, subagent_id=below, **single(event))]
        kind = request.kind if request is not None else "plan" if event.decision == "reject" else "approval"
        if kind == "plan":
            self.plan_mode = self.plan_mode and event.decision != "approve"
            if event.decision == "approve":
                return [wire.PlanApproved(event.id)]
            return [wire.PlanRejected(event.feedback, event.id)]
        decision = DECISIONS.get(event.decision, event.decision)
        return [decided(request, event.id, decision, **single(event))]

    def _mode(self, event: ModeChange) -> list[ServerFrame]:
        changes = event.changes
        if "enable_plan_mode" in changes:
            self.plan_mode = bool(changes["enable_plan_mode"])
        frames: list[ServerFrame] = [
            _SWITCHES[name](bool(value)) for name, value in changes.items() if name in _SWITCHES
        ]
        others = {name: value for name, value in changes.items() if name not in _SWITCHES}
        return [*frames, wire.Settings(others)] if others else frames

    # ------------------------------------------------------------ turns

    def _turn(self, turn_id: str | None, mark: TurnMark, closing: Closing) -> list[ServerFrame]:
        if mark.stop_reason == "deleted":
            self.state = "deleted"
            return [error("the conversation was deleted", "deleted")]
        if mark.state == "running":
            fresh = self.running != turn_id or self.paused is not None
            self.state, self.running, self.paused = "running", turn_id, None
            self.inputs.begun(turn_id)
            return [wire.TurnStarted()] if fresh else []
        if mark.state == "queued":
            self.state, self.under_way = "queued", None
            return [wire.TurnQueued(position=0)]
        if mark.state == "waiting" and mark.stop_reason is None:
            self.state = "waiting"
            return []  # a question was shown; the turn has not stopped
        self.under_way = None
        if mark.state == "waiting":
            self.state, self.paused = "waiting", mark
            self.told_plan = turn_id if mark.stop_reason == "plan" else None
        else:
            self.state, self.running, self.paused = "idle", None, None
        frames: list[ServerFrame] = []
        if mark.state != "waiting":
            for request in self._own_requests():
                del self.requests[request.id]
            if mark.state == "done" and mark.stop_reason == "plan" and self.told_plan == turn_id:
                return frames  # `done` was said with the plan; what the decision led to is another turn
        return frames + self._stopped(mark, closing)

    def _own_requests(self) -> list[ApprovalRequest]:
        return [request for request in self.requests.values() if request.id not in self.asked_by]

    def _stopped(self, mark: TurnMark, closing: Closing) -> list[ServerFrame]:
        usage = wire.TurnUsage.of(mark.usage or Usage(), self.last_input, plan_mode=self.plan_mode)
        files = list(closing.files)
        truncated = True if closing.truncated else UNSET
        if mark.state == "interrupted":
            return [wire.Interrupted(usage, files, truncated)]
        done = wire.Done(
            usage,
            files,
            truncated,
            stop_reason=mark.stop_reason,
            waiting_for=mark.waiting_for if mark.state == "waiting" else None,
            snapshot_id=mark.snapshot,
            changed=closing.changed,
        )
        if mark.error is not None:
            why = mark.error
            return [error(why.message, _snake(why.type), retryable=why.retryable), done]
        if mark.stop_reason == "token_budget":
            return [error("the turn's token budget is spent (MAX_TOKEN_BUDGET)", "token_budget"), done]
        return [done]


# ---------------------------------------------------------------- small forms


def tool_result(event: ToolOutcome) -> list[ServerFrame]:
    """Return a tool's result, then the list it changed, if it keeps one."""
    text = text_of(event.content)
    shown = text if len(text) <= RESULT_CHARS else text[:RESULT_CHARS] + "..."
    truncated = event.truncated or shown is not text
    result = wire.ToolResult(
        event.tool, shown, event.call, event.shown_status, truncated, event.tainted, _diff(event)
    )
    frames: list[ServerFrame] = [result]
    data = event.data or {}
    if event.tool.startswith("todo_") and isinstance(data.get("todos"), list):
        frames.append(wire.TodoUpdate(data["todos"]))
    if event.tool in ("task_create", "task_update") and isinstance(data.get("tasks"), list):
        frames.append(wire.TaskUpdate(data["tasks"]))
    return frames


def _diff(event: ToolOutcome) -> ToolDiff | UnsetType:
    diff = event.diff
    return (
        UNSET if diff is None else ToolDiff(text=diff["text"], added=diff["added"], removed=diff["removed"])
    )


def _one(event: object) -> list[ServerFrame]:
    frame = small_frame(event)
    return [] if frame is None else [frame]


def _rest_of_text(text: str, event_id: str, live: UnderWay | None, message_id: str) -> list[ServerFrame]:
    """What viewers do not have of a completed message: all, a remainder, or nothing."""
    if not text:
        return []
    streamed = str(live.text) if live is not None else ""
    if text.startswith(streamed):  # what is missing was lost between processes, or never streamed
        rest = text[len(streamed) :]
        return [wire.TextDelta(rest, message_id, len(streamed))] if rest else []
    if live is not None and live.live_id == event_id:
        return []
    return [wire.TextDelta(text, message_id, 0, replay=True)]


def _snake(name: str) -> str:
    return _CAMEL.sub("_", name).lower()
