"""Over `--server` the terminal shows what it shows of a turn of its own (house F2; law 6)."""

import json
from typing import Any

import pytest

from bowerbird.cli.client.frames import MAKERS, NOT_SHOWN, Frames
from bowerbird.cli.terminal.drawing import MarkdownPainter
from bowerbird.cli.turn.painter import TurnPainter
from bowerbird.cli.turn.story import Story
from bowerbird.core import wire
from bowerbird.core.events import (
    ApprovalAnswer,
    AssistantStep,
    BackgroundResult,
    Compaction,
    Egress,
    LiveEvent,
    MessageRestart,
    ModelSwitch,
    Notice,
    SandboxTier,
    SubagentEnd,
    SubagentStart,
    TeammateStatus,
    TextLive,
    ToolOutcome,
    UserStep,
)
from bowerbird.core.messages import user_text
from bowerbird.core.requests import ModelFallback, Retrying
from bowerbird.core.usage import Usage
from bowerbird.core.wire.described import describe
from bowerbird.server.socket.translate import Translator
from bowerbird.sessions.live.hub import InputMark, Published

TODOS = [{"content": "look", "status": "completed", "activeForm": "looking"}]


class Sheet:
    """A sink that keeps what was drawn."""

    width = 100

    def __init__(self) -> None:
        self.drawn: list[str] = []

    def answer(self, text: str) -> None:
        self.drawn.append(text)

    def line(self, text: str, style: str = "") -> None:
        self.drawn.append(text)

    def warn(self, text: str) -> None:
        self.drawn.append(text)

    def doing(self, action: str) -> None:
        self.drawn.append(f"doing {action}" if action else "")

    def pending(self, text: str) -> None:
        pass

    def running(self, call: str, what: str, last: str = "") -> None:
        self.drawn.append(f"{call}: {what} {last}")

    def worker(self, handle: str, doing: str) -> None:
        self.drawn.append(f"{handle}: {doing}")


def drawn(*events: Any) -> list[str]:
    sheet = Sheet()
    painter = TurnPainter(sheet, Story(), None)
    for event in events:
        if isinstance(event, wire.TodoUpdate):
            painter.todos(event.todos)
        elif event is not None:
            painter.show(Published("t", "t_1", None, event))
    return [text for text in sheet.drawn if text]


def over_a_server(*events: Any) -> list[Any]:
    """The events as the terminal has them after they went over the wire."""
    translator, frames, found = Translator(thread_id="t"), Frames(), []
    for seq, event in enumerate(events, 1):
        for sent in translator.frames(Published("t", "t_1", seq, event)):
            frame = wire.read_frame(sent.text)
            found.append(frame if isinstance(frame, wire.TodoUpdate) else frames.event(frame))
    return found


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(SandboxTier("copy", "none", {"overlay": "no user namespaces"}), id="sandbox_tier"),
        pytest.param(Egress("evil.example", 443, "refused: not allowed"), id="egress"),
        pytest.param(ModelFallback("a:1", "b:2", "overloaded"), id="model_fallback"),
        pytest.param(Compaction("msg_1", "msg_2", "short", "auto"), id="compact"),
        pytest.param(
            BackgroundResult(
                ({"task_id": "bg_1", "status": "completed", "command": "make", "result": "ok"},)
            ),
            id="background_result",
        ),
        pytest.param(TeammateStatus("ann", "tester", "working"), id="teammate_status"),
        pytest.param(ModelSwitch("small", "tool"), id="settings"),
        pytest.param(Retrying(1, 2.0, "overloaded"), id="retrying"),
        pytest.param(Notice("budget", "half of it is spent"), id="notice"),
        pytest.param(Notice("landing", "2 paths landed"), id="landing"),
        pytest.param(SubagentStart("t.sub0", "look", "explore", "sub0", "t"), id="subagent_start"),
        pytest.param(
            SubagentEnd("t.sub0", "found", "explore", Usage(), "sub0", "t", "completed", 2, 1.5),
            id="subagent_end",
        ),
    ],
)
def test_what_a_local_terminal_says_of_an_event_is_said_over_a_server(event: Any) -> None:
    """F2: the first seven were swallowed."""
    here = drawn(event)
    assert here and drawn(*over_a_server(event)) == here


def test_a_list_of_tasks_is_drawn_over_a_server() -> None:
    """F2: `todo_update`."""
    outcome = ToolOutcome("call_1", "todo_write", "ok", "1 of 1 done", {"todos": TODOS})
    here, there = drawn(outcome), drawn(*over_a_server(outcome))
    assert any("look" in line for line in here)
    assert [line for line in there if "look" in line] == [line for line in here if "look" in line]


def test_what_joins_a_turn_is_said_over_a_server() -> None:
    mark = InputMark("i_1", "t_1", kind="steer", text="mind Windows")
    assert drawn(*over_a_server(mark)) == drawn(UserStep(user_text("mind Windows"), steer=True))


@pytest.mark.parametrize("kind", wire.SERVER_FRAMES.values(), ids=wire.SERVER_FRAMES.keys())
def test_every_frame_is_drawn_in_the_terminal_or_there_is_a_reason(kind: type[wire.ServerFrame]) -> None:
    """House R3: a frame that nobody draws is found."""
    if kind in NOT_SHOWN:
        assert NOT_SHOWN[kind] and kind not in MAKERS
        return
    if kind in (wire.TodoUpdate, wire.ToolCall, wire.Error):  # drawn apart; with their results, their turns
        return
    frame = wire.read_frame(json.dumps(describe(kind).example))
    frames = Frames()
    event = frames.event(frame)
    if isinstance(frame, wire.TurnQueued):
        event = _joined(frames)
    assert event is not None, f"cli/client/frames.py has no drawer for {kind.__name__} and no reason"
    if isinstance(event, ApprovalAnswer):  # ends the question that stands here; what it leads to is drawn
        return
    if isinstance(event, LiveEvent):
        # That an answer begins again is said when it does: a line about another try may say it first.
        again = (TextLive("Again.", "msg_9", 0),) if isinstance(event, MessageRestart) else ()
        assert drawn(event, *again) != drawn(*again), f"nothing is drawn of {event}"


def _joined(frames: Frames) -> Any:
    return frames.event(wire.TurnQueued(inbox_id="i", kind="steer", state="queued", content="mind Windows"))


def said(sheet: Sheet) -> list[str]:
    """The words on the sheet, but for what is being done."""
    return " ".join(text for text in sheet.drawn if not text.startswith("doing ")).split()


def test_an_answer_is_drawn_once_however_its_pieces_come() -> None:
    """D-28, UI-86: cut and repeated pieces, a reconnect, a piece that was lost between two servers."""

    def delta(content: str, offset: int, **more: Any) -> wire.TextDelta:
        return wire.TextDelta(content, "msg_1", offset, **more)

    end = wire.MessageEnd("msg_1", "end_turn")
    for pieces in (
        (delta("one\n\n", 0), delta("two\n\n", 5), delta("two\n\nthree", 5)),
        (delta("one\n\n", 0), delta("one\n\ntwo\n\n", 0, replay=True), delta("three", 10)),
        (delta("two\n\n", 5), delta("one\n\n", 0), delta("three", 10)),
        (delta("one\n\n", 0), delta("one\n\ntwo\n\nthree", 0, replay=True)),
    ):
        frames, sheet = Frames(), Sheet()
        painter = TurnPainter(sheet, Story(), MarkdownPainter(colour=False))
        events = [frames.event(frame) for frame in (*pieces, end)]
        for event in events:
            assert event is not None
            painter.show(Published("t", "t_1", None, event))
        assert said(sheet) == ["one", "two", "three"]
        assert isinstance(events[-1], AssistantStep) and events[-1].message.text == "one\n\ntwo\n\nthree"


def test_an_answer_that_began_again_while_nobody_was_connected_is_drawn_from_its_beginning() -> None:
    """D-28, D-13: what was drawn is void, and the new text is whole."""
    frames, sheet = Frames(), Sheet()
    painter = TurnPainter(sheet, Story(), MarkdownPainter(colour=False))
    for frame in (
        wire.TextDelta("broken\n\n", "msg_1", 0), wire.TextDelta("whole", "msg_1", 0, replay=True),
        wire.TextDelta(" again", "msg_1", 5), wire.MessageEnd("msg_1", "end_turn"),
    ):  # fmt: skip
        event = frames.event(frame)
        assert event is not None
        painter.show(Published("t", "t_1", None, event))
    words = said(sheet)
    assert words[0] == "broken" and words[-2:] == ["whole", "again"] and "begins" in words
