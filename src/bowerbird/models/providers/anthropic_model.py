"""The Anthropic adapter: its requests, without I/O (MO-18, MO-54), their path and headers.

Here: `build_request`, and how requests prove who asks. Not here: answers (`anthropic_fold`), the call
(`adapter`), HTTP (`transport`).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

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
from bowerbird.core.requests import ModelRequest
from bowerbird.models.answers.answer import Answer
from bowerbird.models.catalog import Traits, checks_history
from bowerbird.models.providers.adapter import Fold
from bowerbird.models.providers.anthropic_fold import AnthropicFold
from bowerbird.models.providers.beginnings import translated
from bowerbird.models.providers.connection import Connection
from bowerbird.models.providers.content import (
    IMAGE_TYPES,
    base64_of,
    described,
    strict_schema,
    wire_id,
    wire_name,
    wire_schema,
)
from bowerbird.models.providers.endpoint import Endpoint
from bowerbird.models.providers.thinking import thinking_fields
from bowerbird.models.redact import Redactor

OPTIONAL_FIELDS = frozenset({"temperature", "output_config", "thinking", "stream", "tool_choice"})
MOST_MARKS = 4
_MARK = {"type": "ephemeral"}
_THOUGHTS = ("thinking", "redacted_thinking")
_BINDING = {"prefix_mismatch_behavior": "drop_block"}
_BINDING_BETA = "thinking-binding-controls-2026-08-01"

PATH = "/v1/messages"
VERSION = "2026-10-21"  # as the official SDK asks for; a test compares them
VENDOR_HOST = "api.anthropic.com"


def build_request(
    request: ModelRequest,
    traits: Traits,
    blobs: Mapping[str, bytes],
    without: frozenset[str] = frozenset(),
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of `request`, and notes for the trace.

    Args:
        request: what is asked.
        traits: what the model takes.
        blobs: bytes of the files that the messages name.
        without: optional fields that this server refused.
    """
    limit = traits.output_limit
    max_tokens = min(request.max_tokens, limit) if limit else request.max_tokens
    may_think = not (traits.thinking_form == "budget" and _began_without_thinking(request, traits))
    thinking = thinking_fields(
        request.thinking if may_think else None,
        traits.thinking_form,
        wire="anthropic",
        efforts=traits.efforts,
        max_tokens=max_tokens,
        off=traits.off,
        max_name=traits.max_name,
    )
    notes = list(thinking.notes)
    if request.thinking is not None and request.thinking.enabled and not may_think:
        notes.append("thinking: left out until the calls at hand are answered, which began without it")
    form = thinking.body.get("thinking", {}).get("type")
    thinks = form not in (None, "disabled")
    # Models of a budget take no reasoning of a turn in which they are not to reason; where it is switched
    # off, no model needs what it thought, and those that check it would refuse it.
    keeps = thinks and "thinking" not in without if traits.thinking_form == "budget" else form != "disabled"
    tools, system = _tools(request), _system(request)
    body: dict[str, Any] = {
        "model": traits.info.model,
        "max_tokens": max_tokens,
        "messages": _messages(request, traits, blobs, bool(tools) + bool(system), keeps),
        "stream": True,
    }
    if tools:
        body["tools"] = tools
    if system:
        body["system"] = system
    if request.temperature is not None and traits.temperature and thinking.temperature_allowed:
        body["temperature"] = min(request.temperature, 1.0)
    body.update(thinking.body)
    if traits.info.checks_history and traits.own_host and (thinks or not thinking.body):
        # It thinks by itself. Where a summary or another system prompt comes before its reasoning, that
        # reasoning is left out, or each request from then on would be refused.
        body["thinking"] = {**body.get("thinking", {"type": "adaptive"}), "block_binding": _BINDING}
    choice = _tool_choice(request)
    if choice is not None and thinks and choice["type"] in ("any", "tool"):
        notes.append("tool_choice: left out, it cannot be forced while thinking")
    elif choice is not None:
        body["tool_choice"] = choice
    if request.output_schema is not None and traits.info.constrained_output:
        strict = strict_schema(request.output_schema)
        if strict is None:
            notes.append("output schema: left to the instructions, it has objects with keys of any name")
        else:
            form = {"type": "json_schema", "schema": strict}
            body["output_config"] = {**body.get("output_config", {}), "format": form}
    return {key: value for key, value in body.items() if key not in without}, tuple(notes)


def _tools(request: ModelRequest) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "input_schema": wire_schema(tool)}
        for tool in request.tools
    ]
    if tools:
        tools[-1]["cache_control"] = _MARK
    return tools


def _system(request: ModelRequest) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in request.system if text]
    if blocks:
        # The last of several blocks may change per turn: the mark stands before it.
        blocks[max(0, len(blocks) - 2)]["cache_control"] = _MARK
    return blocks


def _tool_choice(request: ModelRequest) -> dict[str, Any] | None:
    match request.tool_choice:
        case _ if not request.tools:
            return None
        case "auto":
            return None
        case "none":
            return {"type": "none"}
        case "required":
            return {"type": "any"}
        case name:
            return {"type": "tool", "name": name}


def _began_without_thinking(request: ModelRequest, traits: Traits) -> bool:
    """Whether calls are answered, and the message of the first of them does not begin with reasoning.

    Models of a budget cannot begin to reason there; later messages of such a turn need none.
    """
    first: Message | None = None
    answered = False
    for message in reversed(request.messages):
        if message.role == "user":
            answered = answered or bool(message.tool_results)
        elif not _blocks(message, traits.info.name, {}, False):
            continue  # it was only thought of, and is not sent
        elif not answered:
            break
        else:
            first, answered = message, False
    begins = _blocks(first, traits.info.name, {}, False)[:1] if first is not None else []
    return first is not None and not any(block["type"] in _THOUGHTS for block in begins)


def message_key(request: ModelRequest, traits: Traits, keeps: bool = True) -> tuple[str, str, bool]:
    """Return everything beside a message that its translation depends on."""
    return ("anthropic", traits.info.name if keeps else "", request.dated)


def _messages(
    request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], marks_used: int, keeps: bool
) -> list[Any]:
    key, images = message_key(request, traits, keeps), traits.info.images
    _, origin, _ = key
    marked = _marked_messages(request, MOST_MARKS - marks_used)

    def translate(part: Sequence[Message], first: int) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        for index, message in enumerate(part, first):
            content = _blocks(message, origin, blobs, images)
            if request.dated and content and message.role == "user" and not message.tool_results:
                content.append({"type": "text", "text": day_of(message)})
            if index in marked:
                _mark(content)
            if not content:
                continue
            if messages and messages[-1]["role"] == message.role:
                messages[-1]["content"] += content
            else:
                messages.append({"role": message.role, "content": content})
        return messages

    return translated(request.messages, key, translate, fixed=tuple(marked), merges=True)


def _marked_messages(request: ModelRequest, room: int) -> set[int]:
    """Return after which messages a mark stands: the newest, and the latest others asked for."""
    count = len(request.messages)
    asked = {i for i in request.cache_marks if 0 <= i < count} | ({count - 1} if count else set[int]())
    return set(sorted(asked)[-room:])


def _mark(content: list[dict[str, Any]]) -> None:
    for block in reversed(content):
        if block["type"] not in _THOUGHTS:
            block["cache_control"] = _MARK
            return


def _blocks(message: Message, origin: str, blobs: Mapping[str, bytes], images: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for block in message.content:
        data = _block(block, origin, blobs, images)
        if data is not None:
            blocks.append(data)
    while blocks and blocks[-1]["type"] in _THOUGHTS:
        blocks.pop()  # no message may end so: an answer that was only thought of
    return blocks


def _block(block: Block, origin: str, blobs: Mapping[str, bytes], images: bool) -> dict[str, Any] | None:
    match block:
        case TextBlock(text):
            return {"type": "text", "text": text} if text.strip() else None
        case ThinkingBlock(thinking, signature, made_by):
            # Only its own model can check a signature.
            if signature is None or made_by != origin:
                return None
            return {"type": "thinking", "thinking": thinking, "signature": signature}
        case RedactedThinkingBlock(data, made_by):
            return {"type": "redacted_thinking", "data": data} if made_by == origin else None
        case ToolUseBlock(call, name, arguments):
            return {"type": "tool_use", "id": wire_id(call), "name": wire_name(name), "input": arguments}
        case ToolResultBlock():
            return _result(block, blobs, images)
        case ImageBlock():
            return _image(block, blobs, images)
        case _:
            return None


def _result(block: ToolResultBlock, blobs: Mapping[str, bytes], images: bool) -> dict[str, Any]:
    content: str | list[dict[str, Any]]
    if isinstance(block.content, str):
        content = block.content
    else:
        content = [
            _image(part, blobs, images, in_error=block.is_error)
            if isinstance(part, ImageBlock)
            else {"type": "text", "text": part.text}
            for part in block.content
            if isinstance(part, ImageBlock) or part.text
        ]
    data: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": wire_id(block.tool_use_id),
        "content": content,
    }
    return {**data, "is_error": True} if block.is_error else data


def _image(
    block: ImageBlock, blobs: Mapping[str, bytes], images: bool, *, in_error: bool = False
) -> dict[str, Any]:
    if in_error and images:
        return {"type": "text", "text": described(block, blobs, "an error holds text only")}
    encoded = base64_of(block, blobs) if images else None
    kind = "image" if block.media_type in IMAGE_TYPES else "document"
    if encoded is None or (kind == "document" and block.media_type != "application/pdf"):
        return {"type": "text", "text": described(block, blobs)}
    return {"type": kind, "source": {"type": "base64", "media_type": block.media_type, "data": encoded}}


class AnthropicWire:
    """See `adapter.Wire`."""

    optional_fields = OPTIONAL_FIELDS

    def key(self, request: ModelRequest, traits: Traits, without: frozenset[str]) -> Hashable:
        """Everything beside a message that its translation depends on."""
        return message_key(request, traits)

    def body(
        self, request: ModelRequest, traits: Traits, blobs: Mapping[str, bytes], without: frozenset[str]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Body and notes of a request."""
        return build_request(request, traits, blobs, without)

    def fold(
        self, answer: Answer, failed: Callable[[Mapping[str, Any]], ModelError], request_id: str | None
    ) -> Fold:
        """A fold for one answer."""
        return AnthropicFold(answer, answer.model, failed, request_id)


def connect(endpoint: Endpoint, redactor: Redactor) -> Connection:
    """Return a connection to a server that speaks Anthropic Messages."""
    headers = {"anthropic-version": VERSION, **endpoint.proof}
    own_host = urlsplit(endpoint.base_url).hostname == VENDOR_HOST
    if own_host and checks_history(endpoint.asked.model):
        headers["anthropic-beta"] = _BINDING_BETA
    if endpoint.api_key and not own_host:
        # Compatible servers and gateways often know this older header only.
        headers["x-api-key"] = endpoint.api_key
    return Connection(endpoint, PATH, headers, redactor)
