"""Frames of an answer: its text and thoughts, the calls of tools and what came of them, traced model calls.

Not here: questions to people, turns, what happens beside the dialogue.
"""

from typing import Any, ClassVar

import msgspec
from msgspec import UNSET, UnsetType

from bowerbird.core.wire.base import ServerFrame
from bowerbird.core.wire.rows import CallUsage, ToolDiff, ToolUse


class TextDelta(ServerFrame, frozen=True, tag="text_delta", gc=False):
    """A piece of the answer. With `replay` it is all there is of its message so far: put it in its place.

    Attributes:
        content: the piece. message_id: the message that it belongs to.
        offset: where it begins: so many characters (Unicode code points) of the message's text come before it.
    Example:
        {"type": "text_delta", "content": "lo", "message_id": "msg_3", "offset": 3, "cursor": 2, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    content: str
    message_id: str
    offset: int


class ThinkingDelta(ServerFrame, frozen=True, tag="thinking_delta", gc=False):
    """A piece of the model's reasoning; with `replay` all there is of it so far.

    Attributes:
        content: the piece. effort: how hard the model was asked to think.
        message_id: the message that it belongs to. offset: characters of its reasoning before this piece.
    Example:
        {"type": "thinking_delta", "content": "Hm", "effort": "high", "message_id": "msg_3", "offset": 0, "cursor": 2, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    content: str
    effort: str | None
    message_id: str
    offset: int


class Thinking(ServerFrame, frozen=True, tag="thinking"):
    """The whole thought of a message; only when none of it was streamed.

    Attributes:
        content: the thought. effort: how hard the model was asked to think.
    Example:
        {"type": "thinking", "content": "Hm.", "effort": "high", "cursor": 2, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    content: str
    effort: str | None


class MessageRestart(ServerFrame, frozen=True, tag="message_restart"):
    """The stream of this message broke off and the model is asked again: forget its text so far.

    Attributes:
        message_id: the message. reason: why it broke off.
    Example:
        {"type": "message_restart", "message_id": "msg_3", "reason": "the connection was closed", "cursor": 2, "turn_id": "t_01J"}
    """

    message_id: str
    reason: str


class MessageEnd(ServerFrame, frozen=True, tag="message_end"):
    """A message is complete and recorded.

    Attributes:
        message_id: the message. stop_reason: why the model stopped: `end_turn`, `tool_use`, `max_tokens` …
    Example:
        {"type": "message_end", "message_id": "msg_3", "stop_reason": "end_turn", "cursor": 3, "turn_id": "t_01J"}
    """

    message_id: str
    stop_reason: str


class ToolCall(ServerFrame, frozen=True, tag="tool_call"):
    """The answer calls a tool.

    Attributes:
        tool: its name. input: its arguments. id: of the call; its result has the same.
    Example:
        {"type": "tool_call", "tool": "bash", "input": {"command": "ls"}, "id": "call_1", "cursor": 3, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    tool: str
    input: dict[str, Any]
    id: str


class ToolProgress(ServerFrame, frozen=True, tag="tool_progress"):
    """A running tool says how far it is.

    Attributes:
        id: of the call. text: what it says.
    Example:
        {"type": "tool_progress", "id": "call_1", "text": "half", "cursor": 3, "turn_id": "t_01J"}
    """

    id: str
    text: str


class ToolResult(ServerFrame, frozen=True, tag="tool_result"):
    """A call of a tool ended, or was not made.

    Attributes:
        tool: its name. result: 2,000 characters of what the model is told, then `...`.
        id: of the call. status: `ok`, `error`, `denied`, `interrupted` or `abandoned`; a command that
            exited with another code than 0 is an `error`.
        truncated: there is more than `result` shows. tainted: it holds text of strangers.
        diff: what the call changed in text files, where it did.
    Example:
        {"type": "tool_result", "tool": "bash", "result": "a.txt", "id": "call_1", "status": "ok", "truncated": false, "tainted": false, "cursor": 4, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    tool: str
    result: str
    id: str
    status: str
    truncated: bool = False
    tainted: bool = False
    diff: ToolDiff | UnsetType = UNSET


class LlmRequest(ServerFrame, frozen=True, tag="llm_request"):
    """While tracing is on: what is sent to a model; secrets are masked.

    Attributes:
        seq: number of the call; its response has the same. model: `provider:model`.
        messages: the conversation as sent. tools: as offered. max_tokens: the longest answer asked for.
        system: the parts of the system prompt. temperature: null = the provider's own.
        thinking_enabled: whether reasoning was asked for. thinking_effort: how hard, null = not.
        message_count: number of messages. tool_count: number of tools.
        agent: who asks: `main`, or a subagent's or teammate's name.
    Example:
        {"type": "llm_request", "seq": 1, "model": "anthropic:m", "messages": [], "tools": [], "max_tokens": 4096, "system": [], "temperature": null, "thinking_enabled": false, "thinking_effort": null, "message_count": 0, "tool_count": 0, "agent": "main", "cursor": 1, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    seq: int
    model: str
    messages: list[Any]
    tools: list[Any]
    max_tokens: int
    system: list[str] = msgspec.field(default_factory=list[str])
    temperature: float | None = None
    thinking_enabled: bool = False
    thinking_effort: str | None = None
    message_count: int = 0
    tool_count: int = 0
    agent: str = "main"


class LlmResponse(ServerFrame, frozen=True, tag="llm_response"):
    """While tracing is on: what a model answered, or why it did not.

    Attributes:
        seq: number of the call. content: the text. tool_calls: the calls of tools.
        done: whether the answer is complete. usage: tokens and cost of this call, null = not known.
        error: why it failed, null = it did not. stop_reason: why the model stopped.
        ms: how long it took. first_token_ms: until the first piece came, null = none did.
        repairs: what was corrected in the arguments of calls.
    Example:
        {"type": "llm_response", "seq": 1, "content": "Hello", "tool_calls": [], "done": true, "usage": {"input_tokens": 9, "output_tokens": 1}, "error": null, "stop_reason": "end_turn", "ms": 900, "first_token_ms": 300, "cursor": 2, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    seq: int
    content: str
    tool_calls: list[ToolUse]
    done: bool
    usage: CallUsage | None
    error: str | None = None
    stop_reason: str | None = None
    ms: int | None = None
    first_token_ms: int | None = None
    repairs: list[str] | UnsetType = UNSET
