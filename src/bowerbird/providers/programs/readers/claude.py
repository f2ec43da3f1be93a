"""What Claude Code prints with `--output-format stream-json`, and Qwen Code, which took the form over.

Here: lines of types `assistant` and `result`; Qwen's are items of one array. Not here: other vendors.
"""

from collections.abc import Sequence
from typing import Any

from bowerbird.providers.contract.types import AgentEvent
from bowerbird.providers.programs.outcome import Outcome, joined
from bowerbird.providers.programs.readers.lines import (
    Object,
    Whole,
    as_list,
    cost_of,
    int_of,
    items,
    object_of,
    said,
    sub,
    text_of,
    total,
)


class ClaudeLines:
    """JSON lines of Claude Code; `is_error` decides, not `subtype` (PR-27)."""

    def __init__(self) -> None:
        self._session: str | None = None
        self._texts: list[str] = []
        self._result: Object | None = None

    def feed(self, line: str) -> Sequence[AgentEvent]:
        """See `Reader.feed`."""
        return self.take(object_of(line))

    def take(self, record: Object) -> list[AgentEvent]:
        """Take one record."""
        self._session = text_of(record.get("session_id")) or self._session
        if record.get("type") == "result":
            self._result = record
        if record.get("type") != "assistant" or record.get("parent_tool_use_id"):
            return []
        events: list[AgentEvent] = []
        for block in items(sub(record, "message").get("content")):
            kind = block.get("type")
            if kind == "text" and (text := text_of(block.get("text"))):
                self._texts.append(text)
                events.append(AgentEvent("text", text))
            elif kind == "thinking" and (text := text_of(block.get("thinking"))):
                events.append(AgentEvent("thinking", text))
            elif kind == "tool_use":
                data = {"input": block.get("input"), "id": text_of(block.get("id"))}
                events.append(AgentEvent("tool", text_of(block.get("name")), data))
        return events

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        result = self._result
        if result is None:
            return Outcome(text=joined(self._texts), session=self._session)
        text = text_of(result.get("result"))
        failed = result.get("is_error") is not False
        usage = sub(result, "usage")
        return Outcome(
            text=joined(self._texts) if failed else text,
            ended=not failed,
            error=_error(result, text) if failed else None,
            session=self._session,
            input_tokens=_input(usage),
            output_tokens=int_of(usage.get("output_tokens")),
            cost=cost_of(result.get("total_cost_usd")),
            denied=tuple(_denied(result.get("permission_denials"))),
        )


class QwenArray(Whole):
    """One array of the same records, printed at the end."""

    def outcome(self) -> Outcome:
        """See `Reader.outcome`."""
        reader = ClaudeLines()
        found = self.value()
        for record in items(found) or items([found]):
            reader.take(record)
        return reader.outcome()


def _error(result: Object, text: str) -> str:
    parts = [said(each) for each in as_list(result.get("errors"))[:5]]
    return text.strip() or said(result.get("error")) or "; ".join(p for p in parts if p) or "it says no more"


def _input(usage: Object) -> int | None:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return total(*(int_of(usage.get(name)) for name in names))


def _denied(value: Any) -> list[str]:
    return [text_of(each.get("tool_name")) or "a tool" for each in items(value)]
