"""Ollama's own chat wire: lines of JSON from `/api/chat`.

Here: requests, their streamed answers. Not here: the call (`adapter`), which models are there.

By its compatible side nobody can say how large the context shall be: on most machines it is 4,096 tokens, and
what is longer is cut without a word. Here it is as large as the session plans with, and nothing is cut.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from bowerbird.core.errors import ModelError
from bowerbird.core.forms import decoder
from bowerbird.core.messages import (
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
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
)
from bowerbird.core.usage import Usage
from bowerbird.models.answers.answer import Answer
from bowerbird.models.catalog import Traits
from bowerbird.models.providers.adapter import Fold
from bowerbird.models.providers.beginnings import translated
from bowerbird.models.providers.connection import Connection
from bowerbird.models.providers.content import (
    IMAGE_TYPES,
    base64_of,
    described,
    wire_id,
    wire_name,
    wire_schema,
)
from bowerbird.models.providers.encoding import compact_json
from bowerbird.models.providers.endpoint import Endpoint
from bowerbird.models.redact import Redactor

PATH = "/api/chat"
OPTIONAL_FIELDS = frozenset({"think", "format", "truncate"})
_STOPS: dict[str, StopReason] = {"stop": "end_turn", "length": "max_tokens"}


class _Function(msgspec.Struct):
    name: str = ""
    arguments: dict[str, Any] | str | None = None


class _Call(msgspec.Struct):
    function: _Function
    id: str | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None


class _Chunk(msgspec.Struct):
    model: str | None = None
    message: _Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: str | None = None


_decode: Callable[[bytes], _Chunk] = decoder(_Chunk)


class OllamaFold:
    """Folds the lines of one answer into events; see `adapter.Fold`."""

    def __init__(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> None:
        self._answer = answer
        self._failed = failed
        self._request_id = request_id
        self._started = False
        self._last: _Chunk | None = None

    @property
    def complete(self) -> bool:
        """Whether the line came that says so."""
        return self._last is not None

    @property
    def usage(self) -> Usage | None:
        """What the last line reported; it leaves the input out where it was evaluated before."""
        if self._last is None or self._last.eval_count is None:
            return None
        return Usage(input_tokens=self._last.prompt_eval_count or 0, output_tokens=self._last.eval_count)

    def feed(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of one line; raises msgspec.DecodeError for unreadable ones."""
        chunk = _decode(payload)
        if chunk.error is not None:
            raise self._failed({"message": chunk.error})
        events: list[ModelEvent] = []
        if not self._started:
            self._started = True
            events.append(Start(chunk.model or self._answer.model, self._request_id))
        message = chunk.message or _Message()
        if message.thinking:
            self._answer.add_thinking(message.thinking)
            events.append(ThinkingDelta(message.thinking))
        if message.content:
            self._answer.add_text(message.content)
            events.append(TextDelta(message.content))
        for call in message.tool_calls or ():
            said = call.function.arguments or {}
            known = self._answer.begin_call(call.id, call.function.name)
            known.pieces.append(said if isinstance(said, str) else compact_json(said))
            events += [ToolCallStart(known.id, known.name), ToolCallDelta(known.id, known.pieces[0])]
        if chunk.done:
            self._last = chunk
        return events

    def whole(self, payload: bytes) -> Sequence[ModelEvent]:
        """Return the events of an answer that was not streamed."""
        return self.feed(payload)

    def finish(self) -> Sequence[ModelEvent]:
        """Nothing is held back."""
        return ()

    def end(self) -> End:
        """Return the final event of a complete answer."""
        reason = self._last.done_reason if self._last is not None else None
        return self._answer.end(_STOPS.get(reason or "stop", "other"), self.usage)


class _Translation:
    """One request's messages in Ollama's form: results name their tool, pictures stand beside the text."""

    def __init__(self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes]) -> None:
        self._dated = request.dated
        self._origin = traits.info.name
        self._images = traits.info.images
        self._blobs = blobs
        self._names = {use.id: use.name for message in request.messages for use in message.tool_uses}

    def messages(self, part: Sequence[Message], _first: int) -> list[dict[str, Any]]:
        made = [one for message in part for one in self._of(message)]
        return [one for one in made if one["role"] == "tool" or len(one) > 2 or one["content"].strip()]

    def _of(self, message: Message) -> list[dict[str, Any]]:
        if message.role == "assistant":
            return [self._assistant(message)]
        results: list[dict[str, Any]] = []
        blocks: list[TextBlock | ImageBlock] = []
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                parts = [TextBlock(block.content)] if isinstance(block.content, str) else block.content
                shown = self._shown(parts)
                name = wire_name(self._names.get(block.tool_use_id, ""))
                shown["content"] = ("Error: " if block.is_error else "") + shown["content"]
                named = {"tool_name": name, "tool_call_id": wire_id(block.tool_use_id)}
                results.append({"role": "tool", **shown, **named})
            elif isinstance(block, TextBlock | ImageBlock):
                blocks.append(block)
        if blocks and self._dated and not results:
            blocks.append(TextBlock(day_of(message)))
        return [*results, {"role": "user", **self._shown(blocks)}] if blocks else results

    def _assistant(self, message: Message) -> dict[str, Any]:
        made: dict[str, Any] = {"role": "assistant", "content": message.text}
        calls = [
            {"id": wire_id(use.id), "function": {"name": wire_name(use.name), "arguments": use.input}}
            for use in message.tool_uses
        ]
        own = (b for b in message.content if isinstance(b, ThinkingBlock) and b.origin == self._origin)
        thoughts = "".join(block.thinking for block in own)
        return {
            **made,
            **({"tool_calls": calls} if calls else {}),
            **({"thinking": thoughts} if thoughts and calls else {}),
        }

    def _shown(self, blocks: Sequence[TextBlock | ImageBlock]) -> dict[str, Any]:
        words: list[str] = []
        images: list[str] = []
        for block in blocks:
            if isinstance(block, TextBlock):
                words.append(block.text)
                continue
            known = block.media_type in IMAGE_TYPES and self._images
            encoded = base64_of(block, self._blobs) if known else None
            if encoded is None:
                words.append(described(block, self._blobs))
            else:
                images.append(encoded)
        text = "\n".join(filter(None, words))
        return {"content": text, "images": images} if images else {"content": text}


class OllamaWire:
    """See `adapter.Wire`."""

    optional_fields = OPTIONAL_FIELDS

    def key(self, request: ModelRequest, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return ("ollama", traits.info.name, request.dated)

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the body of a request, and no notes."""
        system = "\n\n".join(text for text in request.system if text)
        translation = _Translation(request, traits, blobs)
        messages = translated(request.messages, self.key(request, traits, without), translation.messages)
        options: dict[str, Any] = {"num_ctx": traits.info.context_window, "num_predict": request.max_tokens}
        if request.temperature is not None:
            options["temperature"] = request.temperature
        body: dict[str, Any] = {
            "model": traits.info.model,
            "messages": [{"role": "system", "content": system}, *messages] if system else messages,
            "stream": True,
            "truncate": False,  # what is too long is refused, and the session makes room for it
            "options": options,
        }
        if request.tools and request.tool_choice != "none":
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name, "description": tool.description, "parameters": wire_schema(tool),
                    },
                }
                for tool in request.tools
            ]  # fmt: skip
        if request.thinking is not None:
            effort = "high" if request.thinking.effort == "max" else request.thinking.effort
            # The models of this family take words; all others take yes or no.
            wish = effort if "gpt-oss" in traits.info.model else True
            body["think"] = wish if request.thinking.enabled else False
        if request.output_schema is not None and traits.info.constrained_output:
            body["format"] = request.output_schema
        return {key: value for key, value in body.items() if key not in without}, ()

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return OllamaFold(answer, failed, request_id)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to an Ollama server."""
    return Connection(endpoint, PATH, endpoint.proof, redactor)
