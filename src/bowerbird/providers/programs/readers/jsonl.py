"""Readers of programs that print one JSON object per line: Codex, OpenCode, Vibe, Copilot, Cline.

Here: those. Not here: output that is one JSON value (`values`), Claude's lines (`claude`).
"""

from collections.abc import Sequence

from bowerbird.providers.contract.types import AgentEvent
from bowerbird.providers.programs.outcome import Outcome, joined
from bowerbird.providers.programs.readers.lines import (
    Object,
    cost_of,
    int_of,
    items,
    object_of,
    said,
    sub,
    text_of,
    total,
)

_TOOL_ITEMS = ("command_execution", "file_change", "mcp_tool_call", "web_search")


class CodexLines:
    """`codex exec --json`: items of a thread; an item `error` is a warning, `turn.failed` is not."""

    def __init__(self) -> None:
        self._session: str | None = None
        self._texts: list[str] = []
        self._notes: list[str] = []
        self._error: str | None = None
        self._usage: Object | None = None

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        record = object_of(line)
        kind = record.get("type")
        if kind == "thread.started":
            self._session = text_of(record.get("thread_id")) or None
        elif kind == "turn.completed":
            self._usage, self._error = sub(record, "usage"), None
        elif kind == "turn.failed":
            self._error = said(record.get("error")) or "the turn failed"
        elif kind == "item.completed":
            return self._item(sub(record, "item"))
        return ()

    def _item(self, item: Object) -> Sequence[AgentEvent]:
        kind, text = text_of(item.get("type")), text_of(item.get("text"))
        if kind == "agent_message":
            self._texts.append(text)
            return (AgentEvent("text", text),)
        if kind == "reasoning":
            return (AgentEvent("thinking", text),)
        if kind == "error":
            self._notes.append(said(item.get("message")))
        if kind in _TOOL_ITEMS:
            return (AgentEvent("tool", text_of(item.get("command")) or kind, {"status": item.get("status")}),)
        return ()

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        usage = self._usage or {}
        return Outcome(
            text=self._texts[-1] if self._texts else "",
            ended=self._usage is not None and self._error is None,
            error=self._error,
            session=self._session,
            input_tokens=int_of(usage.get("input_tokens")),
            output_tokens=int_of(usage.get("output_tokens")),
            notes=tuple(note for note in self._notes if note),
        )


class OpencodeLines:
    """`opencode run --format json`: parts of messages; a step that finishes with `stop` is the end."""

    def __init__(self) -> None:
        self._session: str | None = None
        self._texts: list[str] = []
        self._error: str | None = None
        self._ended = False
        self._input: int | None = None
        self._output: int | None = None
        self._cost: float | None = None

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        record = object_of(line)
        self._session = text_of(record.get("sessionID")) or self._session
        kind, part = record.get("type"), sub(record, "part")
        if kind == "text" and (text := text_of(part.get("text"))):
            self._texts.append(text)
            return (AgentEvent("text", text),)
        if kind == "reasoning" and (text := text_of(part.get("text"))):
            return (AgentEvent("thinking", text),)
        if kind == "tool_use":
            return (AgentEvent("tool", text_of(part.get("tool")), {"input": sub(part, "state", "input")}),)
        if kind == "error":
            self._error = said(record.get("error")) or "it says no more"
        elif kind == "step_finish":
            self._finished(part)
        return ()

    def _finished(self, part: Object) -> None:
        tokens = sub(part, "tokens")
        cache = sub(tokens, "cache")
        read = (tokens.get("input"), cache.get("read"), cache.get("write"))
        self._input = total(self._input, *(int_of(each) for each in read))
        self._output = total(self._output, int_of(tokens.get("output")), int_of(tokens.get("reasoning")))
        cost = cost_of(part.get("cost"))
        self._cost = cost if self._cost is None else self._cost + (cost or 0.0)
        self._ended = part.get("reason") not in ("tool-calls", "length", "error")

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        return Outcome(
            text=joined(self._texts),
            ended=self._ended and self._error is None,
            error=self._error,
            session=self._session,
            input_tokens=self._input,
            output_tokens=self._output,
            cost=self._cost,
        )


class VibeLines:
    """`vibe -p --output streaming`: messages and effects; the last message of the assistant is the answer."""

    def __init__(self) -> None:
        self._session: str | None = None
        self._text = ""
        self._ended = False
        self._denied: list[str] = []

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        record = object_of(line)
        self._session = text_of(record.get("sessionId")) or self._session
        if record.get("type") == "effect":
            return self._effect(text_of(record.get("title")), sub(record, "detail"), sub(record, "state"))
        if record.get("role") != "assistant":
            return ()
        text = _content(record.get("content"))
        self._ended = bool(text.strip())
        if not self._ended:
            return ()
        self._text = text
        return (AgentEvent("text", text),)

    def _effect(self, name: str, detail: Object, state: Object) -> Sequence[AgentEvent]:
        self._ended = False  # it has yet to say what came of this
        if state.get("decision") == "skip":
            self._denied.append(name)
        return (AgentEvent("tool", name, {"input": detail.get("input")}),)

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        return Outcome(self._text, self._ended, session=self._session, denied=tuple(self._denied))


class CopilotLines:
    """`copilot --output-format json`: `assistant.message` and one `result` with the exit code."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._error: str | None = None
        self._result: Object | None = None

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        record = object_of(line)
        kind, data = record.get("type"), sub(record, "data")
        if kind == "assistant.message":
            if text := text_of(data.get("content")):
                self._texts.append(text)
                return (AgentEvent("text", text),)
        elif kind == "tool.execution_start":
            return (AgentEvent("tool", text_of(data.get("toolName")), {"input": data.get("arguments")}),)
        elif kind == "session.error":
            self._error = said(data) or "it says no more"
        elif kind == "result":
            self._result = record
        return ()

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        result = self._result or {}
        fine = self._result is not None and result.get("exitCode") == 0 and self._error is None
        return Outcome(
            text=self._texts[-1] if self._texts else "",
            ended=fine,
            error=self._error,
            session=text_of(result.get("sessionId")) or None,
        )


class ClineLines:
    """`cline --json`: the last `run_result` decides."""

    def __init__(self) -> None:
        self._session: str | None = None
        self._error: str | None = None
        self._result: Object | None = None

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        record = object_of(line)
        self._session = text_of(record.get("sessionId")) or self._session
        kind = record.get("type")
        if kind == "run_result":
            self._result = record
        elif kind == "error":
            self._error = said(record) or "it says no more"
        elif kind == "agent_event":
            return self._event(sub(record, "event"))
        return ()

    def _event(self, event: Object) -> Sequence[AgentEvent]:
        if event.get("type") == "content_start" and event.get("contentType") == "text":
            return (AgentEvent("text", text_of(event.get("text"))),)
        if event.get("type") == "content_start" and event.get("contentType") == "tool":
            return (AgentEvent("tool", text_of(event.get("toolName")), {"input": event.get("input")}),)
        return ()

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        result = self._result or {}
        reason, usage = text_of(result.get("finishReason")), sub(result, "usage")
        fine = reason in ("completed", "stop", "end_turn")
        error = None if fine else (self._error or (f"it stopped: {reason}" if reason else None))
        return Outcome(
            text=text_of(result.get("text")),
            ended=fine,
            error=error,
            session=self._session,
            input_tokens=int_of(usage.get("inputTokens")),
            output_tokens=int_of(usage.get("outputTokens")),
            cost=cost_of(usage.get("totalCost")),
        )


def _content(value: object) -> str:
    if isinstance(value, list):
        return "".join(text_of(each.get("text")) for each in items(value))
    return text_of(value)
