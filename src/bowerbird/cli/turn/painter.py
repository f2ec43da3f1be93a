"""Draws a turn as it happens: text block by block, one line per tool, notices (UI-53).

Here: which event becomes which lines. Not here: the streams they go to (a `Sink`), what is
remembered (`story.py`), questions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from bowerbird.cli.terminal.blocks import Blocks
from bowerbird.cli.terminal.drawing import (
    MarkdownPainter,
    diff_lines,
    key_parameter,
    result_lines,
    result_note,
    todo_lines,
    tool_line,
)
from bowerbird.cli.terminal.text import cut, duration, harmless, how_far, one_line, plural
from bowerbird.cli.turn.retrying import restart_line, retry_line
from bowerbird.cli.turn.story import Story
from bowerbird.core.events import (
    ApprovalAnswer,
    AssistantStep,
    BackgroundResult,
    Compaction,
    LandingProgress,
    MessageRestart,
    ModelSwitch,
    Notice,
    SubagentEnd,
    SubagentStart,
    TextLive,
    ThinkingLive,
    ToolOutcome,
    ToolProgress,
    UserStep,
)
from bowerbird.core.messages import text_of
from bowerbird.core.pieces import Pieces
from bowerbird.core.requests import Retrying
from bowerbird.core.tagged import Tagged
from bowerbird.core.wire import frame_of_event, said_in_a_line
from bowerbird.sessions.live.hub import Lagged, Published, TurnMark

SUMMARISED = "the history was summarised; nothing is lost"
_PLAN = "exit_plan_mode"
_COMMANDS = frozenset({"bash", "run_python", "check_background"})
"""Tools whose result is shown, in short: it is what a person would have seen at their own terminal."""


class Sink(Protocol):
    """Where drawing goes."""

    @property
    def width(self) -> int:
        """Columns now."""
        ...

    def answer(self, text: str) -> None:
        """Show drawn text of the model, lines ended."""
        ...

    def line(self, text: str, style: str = "") -> None:
        """Show one line of ours."""
        ...

    def warn(self, text: str) -> None:
        """Show one line about what went wrong, also where only answers are asked for."""
        ...

    def doing(self, action: str) -> None:
        """Say what is being done now; "" for nothing."""
        ...

    def pending(self, text: str) -> None:
        """Show the beginning of a block that is not complete."""
        ...

    def running(self, call: str, what: str, last: str = "") -> None:
        """Show a call that runs, from its start, with the last line of its output; "" when it has ended."""
        ...

    def worker(self, handle: str, doing: str) -> None:
        """Say what a subagent does, on a line of its own; "" when it has ended."""
        ...


class TurnPainter:
    """Draws the events of one session's turns.

    Args:
        sink: where to. story: remembers; updated here first. markdown: draws blocks, None to
            leave answers out (they are printed at the end, whole).
        quiet: only answers. has_show: `/show N` is there for what is left out.
    """

    def __init__(
        self,
        sink: Sink,
        story: Story,
        markdown: MarkdownPainter | None,
        *,
        quiet: bool = False,
        has_show: bool = True,
    ) -> None:
        self._sink = sink
        self._story = story
        self._markdown = markdown
        self._quiet = quiet
        self._has_show = has_show
        self._calls: dict[str, ToolOutcome | None] = {}  # of this answer, in its order; those not drawn yet
        self._blocks = Blocks()
        self._texts: dict[str, Pieces] = {}
        self._broke_off: str | None = None
        self._last: Literal["", "text", "line"] = ""

    def begin(self) -> None:
        """Begin a turn under a line that is there already, say what was typed."""
        self._last = "line"

    def news(self, published: Published | None, todos: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Draw what a client told; a server says a list of tasks by a frame of its own."""
        if todos is not None:
            self.todos(todos)
        if published is not None:
            self.show(published)

    def show(self, published: Published) -> None:
        """Draw one event."""
        self._story.add(published)
        event = published.event
        match event:
            case TextLive():
                if self._broke_off is not None:
                    self._say_begun_again()
                self._sink.doing("writing")
                text = self._texts.setdefault(event.message_id, Pieces())
                self._draw(self._blocks.feed(text.take(event.content, event.offset)))
                self._sink.pending(self._blocks.pending)
            case ThinkingLive():
                self._sink.doing("thinking")
            case MessageRestart():
                self._texts.pop(event.message_id, None)
                self._draw(self._blocks.finish())
                self._sink.pending("")
                self._broke_off = event.reason
            case AssistantStep():
                self._assistant(event)
            case ToolOutcome():
                self._ended(event, published.thread_id)
            case ApprovalAnswer():
                self._run_again()
            case LandingProgress():
                after = "thinking" if published.turn_id is not None else ""
                self._sink.doing(after if event.phase == "over" else how_far(event))
            case ToolProgress():
                if event.call in self._calls:
                    self._run(event.call, one_line(event.text, 200))
                else:
                    self._sink.doing(one_line(event.text, 60))
            case TurnMark():
                self._mark(event, published.thread_id)
            case _:
                self._note(event)

    def _assistant(self, event: AssistantStep) -> None:
        drawn, text = str(self._texts.pop(event.message.id, "")), event.message.text
        if text.startswith(drawn):  # what is missing never came as a piece
            self._draw(self._blocks.feed(text[len(drawn) :]))
        self._draw(self._blocks.finish())
        self._sink.pending("")
        if event.stop_reason == "partial" and event.message.text:
            self._line("(stopped here)", "dim")
        for use in event.message.tool_uses:
            self._calls[use.id] = None
            self._run(use.id)

    def _say_begun_again(self) -> None:
        """Say that what is drawn above is void, where no line about another try has said so."""
        why, self._broke_off = restart_line(self._broke_off or ""), None
        self._note(Notice("restart", why))

    def _run(self, call_id: str, last: str = "") -> None:
        call = self._story.calls.get(call_id)
        if call is not None and call_id in self._calls and call.tool != _PLAN:
            what = f"{harmless(call.tool)} {key_parameter(call.arguments)}".rstrip()
            self._sink.running(call_id, what, last)

    def _run_again(self) -> None:
        """Count from now: what was asked about begins now."""
        for call_id, outcome in self._calls.items():
            if outcome is None:
                self._sink.running(call_id, "")
                self._run(call_id)

    def _ended(self, outcome: ToolOutcome, thread_id: str) -> None:
        """Draw what ended once all before it in the answer have ended: the calls keep their order."""
        self._sink.running(outcome.call, "")
        self._sink.doing("thinking")
        if outcome.call not in self._calls:
            self._outcome(outcome, thread_id)
            return
        self._calls[outcome.call] = outcome
        while self._calls and (first := next(iter(self._calls.values()))) is not None:
            del self._calls[first.call]
            self._outcome(first, thread_id)

    def _let_go(self, thread_id: str) -> None:
        """Draw what still waits for a call that has no end."""
        calls, self._calls = self._calls, {}
        for call_id, outcome in calls.items():
            self._sink.running(call_id, "")
            if outcome is not None:
                self._outcome(outcome, thread_id)

    def _draw(self, blocks: list[str]) -> None:
        if self._markdown is None:
            return
        for block in blocks:
            if block.strip():
                gap = "\n" if self._last else ""
                self._sink.answer(gap + self._markdown.paint(block, self._sink.width))
                self._last = "text"

    def _outcome(self, event: ToolOutcome, thread_id: str) -> None:
        call = self._story.calls[event.call]
        width, status = self._sink.width, event.shown_status
        if call.tool == _PLAN and status == "ok":
            return  # the plan itself is shown, with its question
        style = {"ok": "dim", "error": "red", "denied": "yellow"}.get(status, "yellow")
        took = f" ({duration(event.ms / 1000)})" if event.ms >= 1000 else ""
        content, diff = text_of(event.content), event.diff
        is_output = status != "ok" or call.tool in _COMMANDS
        note = "" if is_output or style != "dim" else result_note(call.tool, call.arguments, content, diff)
        end = took + (f"  {note}" if note else "")
        line = tool_line(call.number, call.tool, call.arguments, status, width=width - len(end))
        self._line(line + end, style)
        show = f"/show {call.number}" if self._has_show else ""
        todos = (event.data or {}).get("todos")
        if isinstance(todos, list):
            self.todos(todos)  # pyright: ignore[reportUnknownArgumentType] - the list's own rows
        elif diff is not None and status == "ok":
            for text, shade in diff_lines(diff, width=width, rest=show or f"bowerbird diff {thread_id}"):
                self._line(text, shade)
        elif is_output:
            for text in result_lines(content, show, width=width):
                self._line(text, "dim")

    def todos(self, todos: "Sequence[Mapping[str, Any]]") -> None:
        """Draw the conversation's list of tasks."""
        for text in todo_lines(todos, width=self._sink.width):
            self._line(text)

    def _mark(self, mark: TurnMark, thread_id: str) -> None:
        if mark.state == "running":
            self._sink.doing("thinking")
        elif mark.has_stopped and mark.stop_reason is not None:
            self._let_go(thread_id)
            self._draw(self._blocks.finish())
            self._sink.pending("")
            self._sink.doing("")

    def _note(self, event: object) -> None:
        match event:
            case Retrying():
                self._broke_off = None  # this line says it, too
                text = retry_line(event.reason, event.delay_s)
            case Compaction():
                text = SUMMARISED
            case ModelSwitch():
                text = f"model tier is now {event.tier}"
            case Notice():
                text = event.text
                if event.kind == "tools" and self._quiet:
                    self._sink.warn(harmless(text))  # the answer may lack what these tools would have told
            case BackgroundResult():
                text = "; ".join(f"{n['task_id']} {n['status']}: {n['command']}" for n in event.notifications)
            case SubagentStart():
                self._sink.worker(event.handle, f"{event.handle} {event.agent_type}: {one_line(event.task)}")
                return
            case SubagentEnd():
                self._subagent_ended(event)
                return
            case UserStep() if event.steer:
                text = f"joined the turn: {one_line(event.message.text, 120)}"
            case Lagged():
                text = "some progress was not shown; the record is complete"
            case _:
                text = line_of(event)
                if not text:
                    return
        self._line(cut(f"    {harmless(text)}", self._sink.width), "dim")

    def _subagent_ended(self, event: SubagentEnd) -> None:
        self._sink.worker(event.handle, "")
        is_good = event.status in ("completed", "finished")
        figures = f"{plural(event.tool_count, 'tool call')}, {duration(event.elapsed)}"
        text = f"    {'✓' if is_good else '✗'} {event.handle} {event.status} ({figures})"
        summary = one_line(event.summary)
        self._line(cut(f"{text}: {summary}" if summary else text, self._sink.width), "" if is_good else "red")

    def _line(self, text: str, style: str = "") -> None:
        if self._quiet:
            return
        if self._last == "text":
            self._sink.line("")
        self._last = "line"
        self._sink.line(text, style)


def line_of(event: object) -> str:
    """Return the one line that says an event, "" for one that is not said in a line."""
    frame = frame_of_event(event) if isinstance(event, Tagged) else None
    return "" if frame is None else said_in_a_line(frame)
