"""Answers of the OpenAI Chat Completions wire, without I/O: chunk payloads in, our events out.

Here: `OpenAIFold`. Not here: requests (`openai_model`), HTTP (`transport`).

Servers that call themselves compatible differ: reasoning as `reasoning_content`, `reasoning`, content
parts or `<think>` tags; calls with or without index; usage in the last or in every chunk. All of that
is met here, and nowhere else.
"""

import re
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
from bowerbird.models.providers.encoding import compact_json
from bowerbird.models.providers.think_tags import ThinkTags

_STOPS: dict[str, StopReason] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "sensitive": "refusal",  # GLM
    "model_context_window_exceeded": "context_overflow",  # GLM
    "model_length": "context_overflow",  # Mistral
    "end_turn": "end_turn",
    "eos": "end_turn",
}
# Ends that are failures: OpenRouter and vLLM, GLM, DeepSeek; Gemini of a call that it cannot read itself.
_FAILED = re.compile(
    r"error|network_error|abort|insufficient_system_resource|.*(malformed_function_call|unexpected_tool_call)"
)


class _PromptDetails(msgspec.Struct):
    cached_tokens: float | None = None
    cache_write_tokens: float | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: float | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    total_tokens: float | None = None
    prompt_cache_hit_tokens: float | None = None  # DeepSeek
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: dict[str, Any] | None = None  # Gemini's signature


class _Thought(msgspec.Struct):
    text: str | None = None


class _ContentPart(msgspec.Struct):
    text: str | None = None
    thinking: str | list[_Thought] | None = None


class _Delta(msgspec.Struct):
    content: str | list[_ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None  # OpenRouter
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    error: dict[str, Any] | str | None = None
    usage: _Usage | None = None  # Kimi


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: dict[str, Any] | str | None = None


_decode: Callable[[bytes], _Chunk] = decoder(_Chunk)
_decode_said: Callable[[bytes], dict[str, Any]] = decoder(dict[str, Any])


class OpenAIFold:
    """Folds chunks into our events.

    Args:
        answer: collects the pieces.
        model: name shown when the server tells none.
        failed: makes the error of an error chunk.
        request_id: the provider's id of the request.
        think_tags: whether text may begin with `<think>`.
    """

    def __init__(
        self,
        answer: Answer,
        model: str,
        failed: Callable[[Mapping[str, Any]], ModelError],
        request_id: str | None = None,
        *,
        think_tags: bool = True,
    ) -> None:
        self._answer = answer
        self._model = model
        self._failed = failed
        self._request_id = request_id
        self._tags: ThinkTags | None = ThinkTags() if think_tags else None
        self._calls: dict[int, Call] = {}
        self._ids: dict[int, str | None] = {}
        self._details: dict[tuple[Any, Any], dict[str, Any]] = {}  # by index and type
        self._highest = 0  # of their indexes
        self._stop: StopReason | None = None
        self._refused = False
        self._usage: _Usage | None = None
        self._started = False
        self._done = False

    @property
    def complete(self) -> bool:
        """Whether the final marker came: `[DONE]`, or the reason of the end from servers without it."""
        return self._done or self._stop is not None

    def feed(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of one payload; raises msgspec.DecodeError for unreadable ones."""
        if payload == b"[DONE]":
            self._done = True
            return ()
        chunk = _decode(payload)
        choices = chunk.choices
        if choices and self._started:
            choice = choices[0]
            self._usage = chunk.usage or choice.usage or self._usage
            if chunk.error or choice.error or choice.finish_reason:
                self._end(chunk, choice)
            return self._delta(choice.delta) if choice.delta else ()
        return self._first_or_last(chunk)

    def whole(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of an answer that was not streamed."""
        chunk = _decode(payload)
        events = list(self._first_or_last(chunk))
        if not chunk.choices:  # an error in a form of its own
            raise self._failed(_decode_said(payload))
        message = chunk.choices[0].message
        if message is not None:
            events += self._delta(message)
        self._done = True
        return events

    def finish(self) -> Sequence[ModelEvent]:
        """Return what was held back in case it became a tag."""
        return self._pieces(self._tags.finish()) if self._tags else ()

    def end(self) -> End:
        """Return the final event of a complete answer."""
        if self._details:
            self._answer.add_redacted(compact_json({"reasoning_details": list(self._details.values())}))
        return self._answer.end("refusal" if self._refused else self._stop or "other", self.usage)

    @property
    def usage(self) -> Usage | None:
        """What the provider reported; its prompt count minus the cached part is our input."""
        reported = self._usage
        if reported is None or reported.prompt_tokens is None:
            return None
        prompt, output = reported.prompt_tokens_details, reported.completion_tokens_details
        cached = (prompt.cached_tokens if prompt else None) or reported.prompt_cache_hit_tokens or 0
        written = (prompt.cache_write_tokens if prompt else None) or 0
        return Usage(
            input_tokens=int(max(0, reported.prompt_tokens - cached - written)),
            # Some count no reasoning among what was written, but all of it in the total.
            output_tokens=int(
                max(reported.completion_tokens or 0, (reported.total_tokens or 0) - reported.prompt_tokens)
            ),
            cache_read_tokens=int(cached),
            cache_write_tokens=int(written),
            reasoning_tokens=int((output.reasoning_tokens or 0) if output else 0),
        )

    def _first_or_last(self, chunk: _Chunk) -> Sequence[ModelEvent]:
        choice = chunk.choices[0] if chunk.choices else None
        self._end(chunk, choice)
        events: list[ModelEvent] = []
        if not self._started:
            self._started = True
            events.append(Start(chunk.model or self._model, self._request_id))
        if chunk.usage is not None:
            self._usage = chunk.usage
        if choice is not None and choice.delta is not None:
            events += self._delta(choice.delta)
        return events

    def _end(self, chunk: _Chunk, choice: _Choice | None) -> None:
        """Keep why an answer ends; raise the error that a chunk holds, or that the reason is."""
        error = chunk.error or (choice and choice.error)
        reason = (choice and choice.finish_reason) or ""
        if not error and _FAILED.fullmatch(reason.lower()):
            error = f"the answer ended with {reason!r}"
        if error:
            self._usage = chunk.usage or self._usage
            raise self._failed({"message": error} if isinstance(error, str) else error)
        if reason:
            self._stop = _STOPS.get(reason.partition(":")[0], "other")  # Gemini: "content_filter: SAFETY"

    def _delta(self, delta: _Delta) -> Sequence[ModelEvent]:
        text = delta.content
        reasoning = delta.reasoning_content or delta.reasoning
        plain = self._tags is None or self._tags.done
        for part in delta.reasoning_details or ():
            self._detail(part)
        if text and plain and isinstance(text, str) and not reasoning and not delta.tool_calls:
            self._answer.add_text(text)
            return (TextDelta(text),)
        events: list[ModelEvent] = []
        if reasoning:
            events.append(self._think(reasoning))
        if text:
            events += self._text(text) if isinstance(text, str) else self._content_parts(text)
        if delta.refusal:
            self._refused = True
            events += self._text(delta.refusal)
        for call in delta.tool_calls or ():
            events += self._call(call)
        return events

    def _detail(self, part: dict[str, Any]) -> None:
        """Put the pieces of a part of the reasoning together: the whole goes back as it was."""
        known = self._details.setdefault((part.get("index"), part.get("type")), {})
        for key, value in part.items():
            if key in ("text", "summary", "data") and isinstance(known.get(key), str):
                known[key] += value or ""
            elif value is not None or key not in known:
                known[key] = value

    def _think(self, text: str) -> ModelEvent:
        self._answer.add_thinking(text)
        return ThinkingDelta(text)

    def _text(self, text: str) -> Sequence[ModelEvent]:
        if self._tags is not None and not self._tags.done:
            return self._pieces(self._tags.feed(text))
        self._answer.add_text(text)
        return (TextDelta(text),)

    def _pieces(self, pieces: Sequence[tuple[str, str]]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for kind, text in pieces:
            if kind == "thinking":
                events.append(self._think(text))
            else:
                self._answer.add_text(text)
                events.append(TextDelta(text))
        return events

    def _content_parts(self, parts: Sequence[_ContentPart]) -> list[ModelEvent]:
        """Content as parts, as Mistral's reasoning models send it."""
        events: list[ModelEvent] = []
        for part in parts:
            thoughts = part.thinking
            if isinstance(thoughts, str):
                events.append(self._think(thoughts))
            elif thoughts:
                events += [self._think(thought.text) for thought in thoughts if thought.text]
            if part.text:
                events += self._text(part.text)
        return events

    def _call(self, delta: _ToolCall) -> Sequence[ModelEvent]:
        events: list[ModelEvent] = []
        index = delta.index
        name = (delta.function.name if delta.function else None) or ""
        if index is None:  # without index, an id or a name begins the next call
            newest = self._calls.get(self._highest)
            begins = delta.id or (name and (newest is None or newest.name))
            index = len(self._calls) if begins or not self._calls else self._highest
        known = self._calls.get(index)
        if known is not None and name and delta.id and delta.id != self._ids[index]:
            known = None  # parallel calls that all carry index 0
        if known is None:
            known = self._answer.begin_call(delta.id, name)
            self._calls[index], self._ids[index] = known, delta.id
            self._highest = max(self._highest, index)
            events.append(ToolCallStart(known.id, known.name))
        elif name and not known.name:
            known.name = name  # it came after its id
        if delta.extra_content:
            signed = {"call": known.id, "extra_content": delta.extra_content}
            self._answer.add_redacted(compact_json(signed))
        arguments = delta.function.arguments if delta.function else None
        if arguments:
            text = arguments if isinstance(arguments, str) else compact_json(arguments)
            known.pieces.append(text)
            events.append(ToolCallDelta(known.id, text))
        return events
