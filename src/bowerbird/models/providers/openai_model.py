"""The OpenAI adapter and its compatible presets: requests of the OpenAI Chat Completions wire (MO-19).

Here: `build_request`, and how requests prove who asks. Not here: answers (`openai_fold`), the call
(`adapter`), HTTP (`transport`).
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from bowerbird.core.errors import ModelError
from bowerbird.core.messages import (
    Block,
    ImageBlock,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    day_of,
)
from bowerbird.core.model_presets import Preset
from bowerbird.core.requests import ModelRequest, ToolSpec
from bowerbird.models.answers.answer import Answer
from bowerbird.models.catalog import Traits, answers_results
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
from bowerbird.models.providers.openai_fold import OpenAIFold
from bowerbird.models.providers.thinking import thinking_fields
from bowerbird.models.redact import Redactor

OPTIONAL_FIELDS = frozenset(
    {
        "max_completion_tokens", "max_tokens", "temperature", "stream", "stream_options", "thinking",
        "reasoning_effort", "reasoning", "reasoning_content", "prompt_cache_key", "response_format",
        "tool_choice", "cache_control",
    }
)  # fmt: skip
_OTHER_LIMIT = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}

_BETWEEN = {"role": "assistant", "content": "Understood."}

PATH = "/chat/completions"


def build_request(
    request: ModelRequest,
    traits: Traits,
    preset: Preset,
    blobs: Mapping[str, bytes],
    without: frozenset[str] = frozenset(),
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of `request`, and notes for the trace.

    Args:
        request: what is asked.
        traits: what the model takes.
        preset: what the server takes.
        blobs: bytes of the files that the messages name.
        without: optional fields that this server refused.
    """
    limit = traits.output_limit
    max_tokens = min(request.max_tokens, limit) if limit else request.max_tokens
    thinking = thinking_fields(
        request.thinking,
        traits.thinking_form,
        wire="openai",
        efforts=traits.efforts,
        max_tokens=max_tokens,
        off=traits.off,
        max_name=traits.max_name,
    )
    body: dict[str, Any] = {
        "model": traits.info.model,
        "messages": _Translation(
            request, blobs, message_key(traits, preset, without, dated=request.dated), traits
        ).messages(preset.system_role),
        "stream": True,
        "stream_options": {"include_usage": True},
        **thinking.body,
        **_limit_field(preset, traits, max_tokens, without),
    }
    tools, cut = few_tools(request.tools)
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
        choice = _tool_choice(request.tool_choice)
        if choice is not None:
            body["tool_choice"] = choice
    if request.temperature is not None and traits.temperature:
        body["temperature"] = request.temperature
    if request.output_schema is not None and traits.info.constrained_output:
        schema = {"name": "answer", "schema": request.output_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.session and preset.name == "openai" and traits.own_host:
        body["prompt_cache_key"] = request.session
    if preset.marks_claude and "claude" in traits.info.model:
        body["cache_control"] = {"type": "ephemeral"}
    if "stream" in without or preset.tells_usage:
        body.pop("stream_options")
    return {key: value for key, value in body.items() if key not in without}, (*thinking.notes, *cut)


def _limit_field(preset: Preset, traits: Traits, max_tokens: int, without: frozenset[str]) -> dict[str, int]:
    """Return the output limit under the name the server knows; the other name when it refused one."""
    name = preset.max_tokens_field
    if name in without:
        name = _OTHER_LIMIT[name]
    return {name: max_tokens}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": wire_schema(tool)}
    return {"type": "function", "function": function}


def _tool_choice(choice: str) -> str | dict[str, Any] | None:
    match choice:
        case "auto":
            return None
        case "none" | "required":
            return choice
        case name:
            return {"type": "function", "function": {"name": name}}


class _MessageKey(NamedTuple):
    """Everything beside a message that its translation depends on."""

    wire: str
    origin: str
    short_ids: bool
    reasoning_back: bool
    reasoning_owed: bool
    dated: bool
    foreign_signature: str
    answers_results: bool


def message_key(traits: Traits, preset: Preset, without: frozenset[str], *, dated: bool) -> _MessageKey:
    """Return everything beside a message that its translation depends on."""
    # Another server behind the prefix of OpenAI is only compatible.
    takes_it = not traits.own_host if preset.name == "openai" else preset.reasoning_back
    reasoning_back = takes_it and "reasoning_content" not in without
    return _MessageKey(
        wire="openai",
        origin=traits.info.name,
        short_ids=preset.short_ids,
        reasoning_back=reasoning_back,
        reasoning_owed=preset.reasoning_owed,
        dated=dated,
        foreign_signature=preset.foreign_signature,
        answers_results=answers_results(traits.info.model),
    )


class _Translation:
    """One request's messages in OpenAI's form."""

    def __init__(
        self, request: ModelRequest, blobs: Mapping[str, bytes], key: _MessageKey, traits: Traits
    ) -> None:
        self._request = request
        self._blobs = blobs
        self._key = key
        self._images = traits.info.images

    def messages(self, system_role: str) -> list[Any]:
        system = "\n\n".join(text for text in self._request.system if text)
        messages: list[Any] = [{"role": system_role, "content": system}] if system else []
        return messages + translated(self._request.messages, self._key, self._part_of)

    def _part_of(self, part: Sequence[Message], first: int) -> list[dict[str, Any]]:
        messages = [one for message in part for one in self._made(message)]
        if not self._key.answers_results:
            return messages
        before = (made for at in range(first - 1, -1, -1) if (made := self._made(self._request.messages[at])))
        answered: list[dict[str, Any]] = []
        role = next((made[-1]["role"] for made in before), "")
        for one in messages:
            answered += [_BETWEEN, one] if (role, one["role"]) == ("tool", "user") else [one]
            role = one["role"]
        return answered

    def _made(self, message: Message) -> list[dict[str, Any]]:
        return self._assistant(message) if message.role == "assistant" else self._user(message)

    def _assistant(self, message: Message) -> list[dict[str, Any]]:
        text = "".join(b.text for b in message.content if isinstance(b, TextBlock))
        calls = [
            {
                "id": self._id(use.id),
                "type": "function",
                "function": {"name": wire_name(use.name), "arguments": compact_json(use.input)},
            }
            for use in message.content
            if isinstance(use, ToolUseBlock)
        ]
        if not text and not calls:
            return []
        data: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            data["tool_calls"] = calls
        data |= self._given_back(message, calls)
        thoughts = [
            b.thinking
            for b in message.content
            if isinstance(b, ThinkingBlock) and b.origin == self._key.origin
        ]
        if self._key.reasoning_back and (thoughts or self._key.reasoning_owed):
            data["reasoning_content"] = "".join(thoughts)
        return [data]

    def _given_back(self, message: Message, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Sign `calls` as they were signed; return the fields of the message that its model wants back."""
        fields: dict[str, Any] = {}
        signed: dict[str, Any] = {}
        before = (
            ""  # a call's id may be another one than when it was signed, as no other of the session has it
        )
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                before = block.id
            elif isinstance(block, RedactedThinkingBlock) and block.origin == self._key.origin:
                kept: dict[str, Any] = json.loads(block.data)
                if "extra_content" in kept:
                    own = {use.id for use in message.tool_uses}
                    signed[self._id(kept["call"] if kept["call"] in own else before)] = kept["extra_content"]
                else:
                    fields |= kept
        for call in calls:
            if call["id"] in signed:
                call["extra_content"] = signed[call["id"]]
        if calls and calls[0]["id"] not in signed and self._key.foreign_signature:
            calls[0]["extra_content"] = {"google": {"thought_signature": self._key.foreign_signature}}
        return fields

    def _user(self, message: Message) -> list[dict[str, Any]]:
        """Results first and directly after their calls, then what else the message holds."""
        results: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                text, files = self._result(block)
                results.append({"role": "tool", "tool_call_id": self._id(block.tool_use_id), "content": text})
                shown += files
            elif (part := self._part(block)) is not None:
                parts.append(part)
        parts = shown + parts
        if self._key.dated and not results and parts:
            parts.append(_text_part(day_of(message)))
        if len(parts) == 1 and parts[0]["type"] == "text":
            return [*results, {"role": "user", "content": parts[0]["text"]}]
        return [*results, {"role": "user", "content": parts}] if parts else results

    def _result(self, block: ToolResultBlock) -> tuple[str, list[dict[str, Any]]]:
        """Return a result's text and the images that follow in a user message."""
        prefix = "Error: " if block.is_error else ""
        if isinstance(block.content, str):
            return prefix + block.content, []
        lines: list[str] = []
        files: list[dict[str, Any]] = []
        for part in block.content:
            if isinstance(part, TextBlock):
                lines.append(part.text)
                continue
            data = self._file(part)
            if data["type"] == "text":
                lines.append(data["text"])
            else:
                lines.append("[see the image below]")
                files.append(data)
        return prefix + "\n".join(lines), files

    def _part(self, block: Block) -> dict[str, Any] | None:
        if isinstance(block, TextBlock):
            return _text_part(block.text) if block.text else None
        return self._file(block) if isinstance(block, ImageBlock) else None

    def _file(self, block: ImageBlock) -> dict[str, Any]:
        known = block.media_type in IMAGE_TYPES and self._images
        encoded = base64_of(block, self._blobs) if known else None
        if encoded is None:
            return _text_part(described(block, self._blobs))
        return {"type": "image_url", "image_url": {"url": f"data:{block.media_type};base64,{encoded}"}}

    def _id(self, call_id: str) -> str:
        return wire_id(call_id, short=self._key.short_ids)


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


class OpenAIWire:
    """See `adapter.Wire`; `preset` says in what a server differs."""

    optional_fields = OPTIONAL_FIELDS

    def __init__(self, preset: Preset, *, own_host: bool) -> None:
        self._preset = preset
        # OpenAI itself never writes tags; everywhere else a model may.
        self._think_tags = not (preset.name == "openai" and own_host)

    def key(self, request: ModelRequest, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return message_key(traits, self._preset, without, dated=request.dated)

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Body and notes of a request."""
        return build_request(request, traits, self._preset, blobs, without)

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return OpenAIFold(answer, answer.model, failed, request_id, think_tags=self._think_tags)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to a server that speaks OpenAI Chat Completions."""
    return Connection(endpoint, PATH, endpoint.proof, redactor)
