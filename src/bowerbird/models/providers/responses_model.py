"""OpenAI's Responses wire: what its newer models take tools by, and some of its models anything at all.

Here: requests, their streamed answers, how a request proves who asks. Not here: Chat Completions
(`openai_model`), the call (`adapter`).

Nothing is stored at the vendor, so what a model reasoned comes here encrypted, is kept with its message,
and goes back to that model alone: before the call or the text that it led to, as it was received.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from bowerbird.core.errors import ModelError
from bowerbird.core.forms import decoder
from bowerbird.core.messages import (
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    day_of,
)
from bowerbird.core.requests import (
    End,
    ModelEvent,
    ModelRequest,
    Start,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolSpec,
)
from bowerbird.core.usage import Usage
from bowerbird.models.answers.answer import Answer, Call
from bowerbird.models.catalog import Traits
from bowerbird.models.providers.adapter import Fold
from bowerbird.models.providers.beginnings import translated
from bowerbird.models.providers.connection import Connection
from bowerbird.models.providers.content import (
    IMAGE_TYPES,
    base64_of,
    described,
    few_tools,
    wire_id,
    wire_name,
    wire_schema,
)
from bowerbird.models.providers.encoding import compact_json
from bowerbird.models.providers.endpoint import Endpoint
from bowerbird.models.providers.thinking import nearest_effort
from bowerbird.models.redact import Redactor

PATH = "/responses"
OPTIONAL_FIELDS = frozenset(
    {
        "max_output_tokens", "stream", "store", "include", "reasoning", "temperature", "text",
        "tool_choice", "prompt_cache_key",
    }
)  # fmt: skip


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


class _Content(msgspec.Struct):
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    content: list[_Content] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    phase: str | None = None
    id: str | None = None
    summary: list[_Content] | None = None
    encrypted_content: str | None = None


class _Why(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    model: str | None = None
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None
    error: dict[str, Any] | None = None
    incomplete_details: _Why | None = None


class _Event(msgspec.Struct):
    type: str = ""
    delta: str | dict[str, Any] | None = None
    response: _Response | None = None
    item: _Item | None = None
    output_index: int = 0
    summary_index: int = 0
    code: str | None = None
    message: str | None = None


_decode_event: Callable[[bytes], _Event] = decoder(_Event)
_decode_response: Callable[[bytes], _Response] = decoder(_Response)


class ResponsesFold:
    """Folds the events of one answer into ours; see `adapter.Fold`."""

    def __init__(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> None:
        self._answer = answer
        self._failed = failed
        self._request_id = request_id
        self._started = False
        self._stop: StopReason | None = None
        self._usage: _Usage | None = None
        self._calls: dict[int, Call] = {}
        self._refused = False

    @property
    def complete(self) -> bool:
        """Whether the final event came."""
        return self._stop is not None

    @property
    def usage(self) -> Usage | None:
        """What was reported; the cached part of the input is no input of ours."""
        reported = self._usage
        if reported is None:
            return None
        cached = (reported.input_tokens_details or _Details()).cached_tokens or 0
        return Usage(
            input_tokens=max(0, reported.input_tokens - cached),
            output_tokens=reported.output_tokens,
            cache_read_tokens=cached,
            reasoning_tokens=(reported.output_tokens_details or _Details()).reasoning_tokens or 0,
        )

    def feed(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of one payload; raises msgspec.DecodeError for unreadable ones."""
        if payload == b"[DONE]":
            return ()
        event = _decode_event(payload)
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                self._refused |= event.type == "response.refusal.delta"
                return self._text(event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return self._think(event.delta)
            case "response.reasoning_summary_part.added" if event.summary_index:
                return self._think("\n\n")
            case "response.output_item.added" if event.item is not None:
                return self._begin(event.item, event.output_index)
            case "response.function_call_arguments.delta":
                return self._arguments(event.output_index, event.delta)
            case "response.output_item.done" if event.item is not None:
                return self._complete(event.item, event.output_index)
            case "response.created" if event.response is not None:
                return self._start(event.response)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(event.response or _Response())
                return ()
            case "error":
                raise self._failed({"message": event.message or "it failed", "code": event.code})
            case _:
                return ()

    def whole(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of an answer that was not streamed."""
        response = _decode_response(payload)
        events = list(self._start(response))
        for index, item in enumerate(response.output or ()):
            events += self._begin(item, index)
            for part in (*(item.summary or ()), *(item.content or ())):
                self._refused |= bool(part.refusal)
                said = part.text or part.refusal
                events += self._think(said) if item.type == "reasoning" else self._text(said)
            events += self._complete(item, index)
        self._finish(response)
        return events

    def finish(self) -> Sequence[ModelEvent]:
        """Nothing is held back."""
        return ()

    def end(self) -> End:
        """Return the final event of a complete answer."""
        return self._answer.end(self._stop or "other", self.usage)

    def _start(self, response: _Response) -> Sequence[ModelEvent]:
        if self._started:
            return ()
        self._started = True
        return (Start(response.model or self._answer.model, self._request_id),)

    def _text(self, text: object) -> Sequence[ModelEvent]:
        if not isinstance(text, str) or not text:
            return ()
        self._answer.add_text(text)
        return (TextDelta(text),)

    def _think(self, text: object) -> Sequence[ModelEvent]:
        if not isinstance(text, str) or not text:
            return ()
        self._answer.add_thinking(text)
        return (ThinkingDelta(text),)

    def _begin(self, item: _Item, index: int) -> Sequence[ModelEvent]:
        if item.type == "message":
            self._answer.begin_text()
            if item.phase:
                self._answer.add_redacted(compact_json({"phase": item.phase}))
        if item.type != "function_call":
            return ()
        call = self._calls[index] = self._answer.begin_call(item.call_id, item.name or "")
        return (ToolCallStart(call.id, call.name),)

    def _arguments(self, index: int, piece: object) -> Sequence[ModelEvent]:
        call = self._calls.get(index)
        if call is None or not isinstance(piece, str) or not piece:
            return ()
        call.pieces.append(piece)
        return (ToolCallDelta(call.id, piece),)

    def _complete(self, item: _Item, index: int) -> Sequence[ModelEvent]:
        """An item is whole: reasoning is kept as the vendor wants it back, arguments may come only here."""
        if item.type == "reasoning" and item.encrypted_content:
            summary = [{"type": "summary_text", "text": part.text or ""} for part in item.summary or ()]
            kept = {"type": "reasoning", "summary": summary, "encrypted_content": item.encrypted_content}
            self._answer.add_redacted(compact_json({**kept, "id": item.id or ""}))
        if item.type != "function_call":
            return ()
        events = list(self._begin(item, index)) if index not in self._calls else []
        if not self._calls[index].pieces:
            events += self._arguments(index, item.arguments)
        return events

    def _finish(self, response: _Response) -> None:
        self._usage = response.usage
        if response.error is not None or response.status in ("failed", "cancelled"):
            raise self._failed(response.error or {"message": f"the answer is {response.status}"})
        why = (response.incomplete_details or _Why()).reason
        if self._refused or why == "content_filter":
            self._stop = "refusal"
        elif why == "max_output_tokens":
            self._stop = "max_tokens"
        else:
            self._stop = "end_turn" if why is None else "other"


class _Translation:
    """One request's messages as items of Responses."""

    def __init__(self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes]) -> None:
        self._request = request
        self._origin = traits.info.name
        self._images = traits.info.images
        self._blobs = blobs

    def items(self, part: Sequence[Message], _first: int) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for message in part:
            items += self._assistant(message) if message.role == "assistant" else self._user(message)
        return items

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        kept: list[dict[str, Any]] = []  # what only goes back before the item it led to
        phase: dict[str, Any] = {}
        for block in message.content:
            match block:
                case RedactedThinkingBlock(data, made_by) if made_by == self._origin:
                    back: dict[str, Any] = json.loads(data)
                    kept += [back] if "type" in back else []
                    phase = phase if "type" in back else back
                case TextBlock(text) if text.strip():
                    items += [*kept, {"role": "assistant", "content": text, **phase}]
                    kept, phase = [], {}
                case ToolUseBlock(call, name, arguments):
                    said = {"name": wire_name(name), "arguments": compact_json(arguments)}
                    items += [*kept, {"type": "function_call", "call_id": wire_id(call), **said}]
                    kept = []
                case _:
                    pass
        return items

    def _user(self, message: Message) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = []
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                output = self._output(block)
                results.append(
                    {"type": "function_call_output", "call_id": wire_id(block.tool_use_id), "output": output}
                )
            elif isinstance(block, ImageBlock) or (isinstance(block, TextBlock) and block.text.strip()):
                parts.append(self._part(block))
        if self._request.dated and parts and not results:
            parts.append(_text_part(day_of(message)))
        if len(parts) == 1 and "text" in parts[0]:
            return [*results, {"role": "user", "content": parts[0]["text"]}]
        return [*results, {"role": "user", "content": parts}] if parts else results

    def _output(self, block: ToolResultBlock) -> str | list[dict[str, Any]]:
        prefix = "Error: " if block.is_error else ""
        if isinstance(block.content, str):
            return prefix + block.content
        parts = [self._part(part) for part in block.content if isinstance(part, ImageBlock) or part.text]
        if all("text" in part for part in parts):
            return prefix + "\n".join(part["text"] for part in parts)
        return [_text_part("Error:"), *parts] if prefix else parts

    def _part(self, block: TextBlock | ImageBlock) -> dict[str, Any]:
        if isinstance(block, TextBlock):
            return _text_part(block.text)
        known = block.media_type in IMAGE_TYPES and self._images
        encoded = base64_of(block, self._blobs) if known else None
        if encoded is None:
            return _text_part(described(block, self._blobs))
        url = f"data:{block.media_type};base64,{encoded}"
        return {"type": "input_image", "image_url": url, "detail": "auto"}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    shape = {"description": tool.description, "parameters": wire_schema(tool), "strict": False}
    return {"type": "function", "name": tool.name, **shape}


def _reasoning(request: ModelRequest, traits: Traits) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what asks for reasoning, and notes: nothing asked is what the model does by itself."""
    wish = request.thinking
    if wish is None or traits.thinking_form == "none":
        return {}, ()
    if not wish.enabled:
        return ({"reasoning": {"effort": traits.off}} if traits.off else {}), ()
    effort = nearest_effort(wish.effort, traits.efforts)
    notes = () if effort in (wish.effort, None) else (f"effort {wish.effort}: not known, sent {effort}",)
    named = {"effort": traits.max_name if effort == "max" else effort} if effort else {}
    return {"reasoning": {**named, "summary": "auto"}}, notes


class ResponsesWire:
    """See `adapter.Wire`."""

    optional_fields = OPTIONAL_FIELDS

    def key(self, request: ModelRequest, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return ("responses", traits.info.name, request.dated)

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the body of a request, and notes for the trace."""
        limit = traits.output_limit
        reasoning, notes = _reasoning(request, traits)
        translation = _Translation(request, traits, blobs)
        body: dict[str, Any] = {
            "model": traits.info.model,
            "input": translated(request.messages, self.key(request, traits, without), translation.items),
            "max_output_tokens": min(request.max_tokens, limit) if limit else request.max_tokens,
            "stream": True,
            "store": False,  # what is said here is kept here, not at the vendor
            **reasoning,
        }
        if traits.own_host and traits.thinking_form != "none":
            body["include"] = ["reasoning.encrypted_content"]
        if system := "\n\n".join(text for text in request.system if text):
            body["instructions"] = system
        tools, cut = few_tools(request.tools)
        if tools:
            body["tools"] = [_tool(tool) for tool in tools]
            if request.tool_choice in ("none", "required"):
                body["tool_choice"] = request.tool_choice
            elif request.tool_choice != "auto":
                body["tool_choice"] = {"type": "function", "name": request.tool_choice}
        if request.temperature is not None and traits.temperature:
            body["temperature"] = request.temperature
        if request.output_schema is not None and traits.info.constrained_output:
            form = {"type": "json_schema", "name": "answer", "schema": request.output_schema}
            body["text"] = {"format": {**form, "strict": False}}
        if request.session and traits.own_host:
            body["prompt_cache_key"] = request.session
        return {key: value for key, value in body.items() if key not in without}, (*notes, *cut)

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return ResponsesFold(answer, failed, request_id)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to a server that speaks OpenAI Responses."""
    return Connection(endpoint, PATH, endpoint.proof, redactor)
