"""Answers of the Anthropic Messages wire, without I/O: event payloads in, our events out.

Here: `AnthropicFold`. Not here: requests (`anthropic_model`), HTTP (`transport`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bowerbird.core.errors import ModelError
from bowerbird.core.forms import decoder
from bowerbird.core.requests import (
    End,
    ModelEvent,
    Start,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
)
from bowerbird.core.usage import Usage
from bowerbird.models.answers.answer import Answer, Call

_STOPS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_overflow",
    "pause_turn": "paused",  # it is not done: what it said is sent back, and it goes on
}


class _OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _OutputDetails | None = None


class _Part(msgspec.Struct):
    """A block or a delta: both have few fields, and one type decodes faster than a union."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    partial_json: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"")
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    model: str | None = None
    id: str | None = None
    content: list[_Part] = []
    stop_reason: str | None = None
    usage: _Usage | None = None
    error: dict[str, Any] | None = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    delta: _Part | None = None
    content_block: _Part | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: dict[str, Any] | None = None


_decode_event: Callable[[bytes], _Event] = decoder(_Event)
_decode_message: Callable[[bytes], _Message] = decoder(_Message)


class AnthropicFold:
    """Folds event payloads into our events.

    Args:
        answer: collects the pieces.
        model: name shown when the server tells none.
        failed: makes the error of an `error` event.
        request_id: the provider's id of the request.
    """

    def __init__(
        self,
        answer: Answer,
        model: str,
        failed: Callable[[Mapping[str, Any]], ModelError],
        request_id: str | None = None,
    ) -> None:
        self._answer = answer
        self._model = model
        self._failed = failed
        self._request_id = request_id
        self._calls: dict[int, Call] = {}
        self._inputs: dict[int, bytes] = {}
        self._stop: StopReason | None = None
        self._reported: _Usage | None = None
        self.complete = False

    def feed(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of one payload; raises msgspec.DecodeError for unreadable ones."""
        event = _decode_event(payload)
        if event.type == "content_block_delta":
            return self._delta(event.index, event.delta) if event.delta else ()
        match event.type:
            case "message_start" if event.message:
                self._report(event.message.usage)
                return (Start(event.message.model or self._model, self._request_id),)
            case "content_block_start" if event.content_block:
                return self._begin(event.index, event.content_block)
            case "content_block_stop":
                return self._finish(event.index)
            case "message_delta":
                self._report(event.usage)
                if event.delta and event.delta.stop_reason:
                    self._stop = _STOPS.get(event.delta.stop_reason, "other")
            case "message_stop":
                self.complete = True
            case "error":
                raise self._failed(event.error or {})
            case _:
                pass
        return ()

    def whole(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of an answer that was not streamed."""
        message = _decode_message(payload)
        if message.error is not None or not (message.content or message.stop_reason):
            raise self._failed(message.error or {"message": payload.decode("utf-8", "replace")})
        self._report(message.usage)
        events: list[ModelEvent] = [Start(message.model or self._model, self._request_id)]
        for index, part in enumerate(message.content):
            events += self._begin(index, part)
            if part.type == "tool_use" and bytes(part.input):
                events += self._delta(
                    index, _Part("input_json_delta", partial_json=bytes(part.input).decode())
                )
        self._stop = _STOPS.get(message.stop_reason or "", "other")
        self.complete = True
        return events

    def finish(self) -> Sequence[ModelEvent]:
        """Return what was held back: nothing on this wire."""
        return ()

    def end(self) -> End:
        """Return the final event of a complete answer."""
        return self._answer.end(self._stop or "other", self.usage)

    @property
    def usage(self) -> Usage | None:
        """What the provider reported so far."""
        reported = self._reported
        if reported is None or reported.input_tokens is None:
            return None
        details = reported.output_tokens_details
        return Usage(
            input_tokens=reported.input_tokens,
            output_tokens=reported.output_tokens or 0,
            cache_read_tokens=reported.cache_read_input_tokens or 0,
            cache_write_tokens=reported.cache_creation_input_tokens or 0,
            reasoning_tokens=(details.thinking_tokens or 0) if details else 0,
        )

    def _report(self, usage: _Usage | None) -> None:
        """Keep the newest figure of each kind: later events repeat some and omit others."""
        if usage is None:
            return
        if self._reported is None:
            self._reported = usage
            return
        for name in usage.__struct_fields__:
            value = getattr(usage, name)
            if value is not None:
                setattr(self._reported, name, value)

    def _delta(self, index: int, delta: _Part) -> Sequence[ModelEvent]:
        if delta.text:
            self._answer.add_text(delta.text)
            return (TextDelta(delta.text),)
        if delta.partial_json:
            call = self._calls.get(index)
            if call is None:
                return ()
            call.pieces.append(delta.partial_json)
            return (ToolCallDelta(call.id, delta.partial_json),)
        if delta.thinking:
            self._answer.add_thinking(delta.thinking)
            return (ThinkingDelta(delta.thinking),)
        if delta.signature:
            self._answer.add_signature(delta.signature)
        return ()

    def _begin(self, index: int, part: _Part) -> Sequence[ModelEvent]:
        match part.type:
            case "text":
                self._answer.begin_text()
                return self._delta(index, part)
            case "thinking":
                self._answer.add_thinking("", begin=True)
                events = self._delta(index, _Part(thinking=part.thinking)) if part.thinking else ()
                if part.signature:
                    self._answer.add_signature(part.signature)
                return events
            case "redacted_thinking":
                self._answer.add_redacted(part.data or "")
            case "tool_use":
                call = self._answer.begin_call(part.id, part.name or "")
                self._calls[index] = call
                self._inputs[index] = bytes(part.input)
                return (ToolCallStart(call.id, call.name),)
            case _:
                pass  # blocks of tools that run at the provider; we offer none
        return ()

    def _finish(self, index: int) -> Sequence[ModelEvent]:
        """A call whose arguments came whole with its start, as from servers that do not stream them."""
        call, whole = self._calls.get(index), self._inputs.get(index, b"")
        if call is None or call.pieces or whole in (b"", b"{}"):
            return ()
        return self._delta(index, _Part(partial_json=whole.decode()))
