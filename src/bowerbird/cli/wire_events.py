"""Events of a session in the socket's shapes, `v=2`, for `--output stream-json` (UI-59, SV-41). Pure.

Here: one published event to the JSON objects it becomes. Not here: reading or printing them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bowerbird.core.events import (
    ApprovalAnswer,
    ApprovalRequest,
    AssistantStep,
    BackgroundResult,
    Compaction,
    Egress,
    Injected,
    ModeChange,
    ModelSwitch,
    Notice,
    SandboxTier,
    SubagentEnd,
    SubagentStart,
    TextLive,
    ThinkingLive,
    ToolOutcome,
    ToolProgress,
    UserStep,
)
from bowerbird.core.messages import Block, TextBlock, ThinkingBlock
from bowerbird.core.requests import ModelFallback, Retrying
from bowerbird.core.usage import Usage
from bowerbird.sessions.live import Lagged, Published, TurnMark

RESULT_CHARS = 2000

_DECISIONS = {"approve": "approved", "deny": "denied", "auto_approve": "auto_approved"}
_SWITCHES = {
    "enable_plan_mode": "plan_mode_changed",
    "enable_teams": "teams_changed",
    "enable_approval": "approval_changed",
}


class WireEvents:
    """Translates one session's events in order; knows the cursor and what was streamed.

    Example:
        >>> event = Published("t", "t_1", None, TextLive("hi", "msg_1"))
        >>> WireEvents().of(event)
        [{'type': 'text_delta', 'content': 'hi', 'message_id': 'msg_1', 'cursor': 0, 'turn_id': 't_1'}]
    """

    def __init__(self) -> None:
        self._cursor = 0
        self._streamed: set[str] = set()
        self._thought: set[str] = set()
        self._last_input = 0
        self._plan_mode = False

    def of(
        self, published: Published, *, files: Sequence[Mapping[str, Any]] = (), changed: int = 0
    ) -> list[dict[str, Any]]:
        """Return the wire events of `published`.

        Args:
            files, changed: the branch's files and number of changes, used when a turn ends.
        """
        self._cursor = max(self._cursor, published.seq or 0)
        made = self._made(published.event, files, changed)
        return [{**event, "cursor": self._cursor, "turn_id": published.turn_id} for event in made]

    def _made(
        self, event: Any, files: Sequence[Mapping[str, Any]], changed: int
    ) -> list[dict[str, Any]]:  # fmt: skip
        match event:
            case TextLive():
                self._streamed.add(event.message_id)
                return [{"type": "text_delta", "content": event.content, "message_id": event.message_id}]
            case ThinkingLive():
                self._thought.add(event.message_id)
                return [{"type": "thinking_delta", "content": event.content, "message_id": event.message_id}]
            case AssistantStep():
                return self._assistant(event)
            case ToolOutcome():
                return [_tool_result(event)]
            case ApprovalRequest():
                return [_request(event)]
            case ApprovalAnswer():
                return [_answer(event)]
            case TurnMark():
                return self._turn(event, files, changed)
            case ModeChange():
                self._plan_mode = bool(event.changes.get("enable_plan_mode", self._plan_mode))
                return _mode(event)
            case _:
                return _small(event)

    def _assistant(self, event: AssistantStep) -> list[dict[str, Any]]:
        message = event.message
        self._last_input = event.usage.context_tokens
        made: list[dict[str, Any]] = []
        thinking = "".join(b.thinking for b in message.content if isinstance(b, ThinkingBlock))
        if thinking and message.id not in self._thought:
            made.append({"type": "thinking", "content": thinking})
        if message.text and message.id not in self._streamed:
            made.append({"type": "text_delta", "content": message.text, "message_id": message.id})
        made += [
            {"type": "tool_call", "tool": use.name, "input": use.input, "id": use.id}
            for use in message.tool_uses
        ]
        made.append({"type": "message_end", "message_id": message.id, "stop_reason": event.stop_reason})
        return made

    def _turn(
        self, mark: TurnMark, files: Sequence[Mapping[str, Any]], changed: int
    ) -> list[dict[str, Any]]:  # fmt: skip
        if mark.state == "running":
            return [{"type": "turn_started"}]
        if mark.state == "queued":
            return [{"type": "turn_queued"}]
        if mark.state == "waiting" and mark.stop_reason is None:
            return []  # a question is on its way; the turn has not stopped
        usage = usage_data(mark.usage or Usage(), self._last_input, plan_mode=self._plan_mode)
        if mark.state == "interrupted":
            return [{"type": "interrupted", "usage": usage, "files": list(files)}]
        made: list[dict[str, Any]] = []
        if mark.error is not None:
            made.append(
                {
                    "type": "error",
                    "message": mark.error.message,
                    "code": mark.error.type,
                    "retryable": mark.error.retryable,
                }
            )
        made.append(
            {
                "type": "done",
                "usage": usage,
                "files": list(files),
                "stop_reason": mark.stop_reason,
                "snapshot_id": mark.snapshot,
                "changed": changed,
            }
        )
        return made


def usage_data(usage: Usage, last_input: int, *, plan_mode: bool) -> dict[str, Any]:
    """Return usage in the form of the wire (SV-42)."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "last_input_tokens": last_input,
        "plan_mode": plan_mode,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": usage.cost,
        "subagents": msgspec.to_builtins(usage.subagents) if usage.subagents else {},
    }


def result_text(content: str | Sequence[Block]) -> str:
    """Return a tool result's text, images left out."""
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


def _tool_result(event: ToolOutcome) -> dict[str, Any]:
    text = result_text(event.content)
    shown = text if len(text) <= RESULT_CHARS else text[:RESULT_CHARS] + "..."
    return {
        "type": "tool_result",
        "tool": event.tool,
        "result": shown,
        "id": event.call,
        "status": event.status,
        "truncated": event.truncated or shown != text,
        "tainted": event.tainted,
    }


def _request(event: ApprovalRequest) -> dict[str, Any]:
    if event.kind == "plan":
        return {"type": "plan_ready", "plan": event.text, "request_id": event.id}
    return {
        "type": "tool_approval_request",
        "tools": list(event.tools),
        "request_id": event.id,
        "kind": event.kind,
        "text": event.text,
    }


def _answer(event: ApprovalAnswer) -> dict[str, Any]:
    if event.decision == "reject":
        return {"type": "plan_rejected", "feedback": event.feedback}
    decision = _DECISIONS.get(event.decision, event.decision)
    return {"type": "tool_approval_result", "decision": decision, "request_id": event.id}


def _mode(event: ModeChange) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {"type": _SWITCHES[name], "enabled": bool(value)}
        for name, value in event.changes.items()
        if name in _SWITCHES
    ]
    others = {name: value for name, value in event.changes.items() if name not in _SWITCHES}
    return [*made, {"type": "settings", "changes": others}] if others else made


def _small(event: Any) -> list[dict[str, Any]]:
    match event:
        case Compaction():
            return [{"type": "compact", "message": f"The history was summarised ({event.reason})."}]
        case ModelSwitch():
            return [{"type": "settings", "changes": {"tier": event.tier}}]
        case Retrying():
            return [
                {
                    "type": "retrying",
                    "attempt": event.attempt,
                    "delay_s": event.delay_s,
                    "reason": event.reason,
                }
            ]
        case ModelFallback():
            return [
                {
                    "type": "model_fallback",
                    "from": event.from_model,
                    "to": event.to_model,
                    "reason": event.reason,
                }
            ]
        case ToolProgress():
            return [{"type": "tool_progress", "id": event.call, "text": event.text}]
        case Notice():
            return [{"type": "notice", "kind": event.kind, "message": event.text}]
        case Egress() | BackgroundResult() | SandboxTier() | SubagentStart() | SubagentEnd():
            return [msgspec.to_builtins(event)]
        case Lagged():
            return [{"type": "error", "message": "events were missed", "code": "lagged", "retryable": True}]
        case UserStep() | Injected():
            return []
        case _:
            return []
