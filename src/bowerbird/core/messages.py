"""Messages and content blocks: the one form in journal, requests and API (MO-1 … MO-8).

Here: the values and their plain-data form. Not here: any provider's wire form
(adapters translate), the journal's records, or what of them is sent to a model.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, cast

import msgspec

from bowerbird.core.forms import convert
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso

Role = Literal["user", "assistant"]

IMAGE_SIZE = 6_000  # characters that an image counts for


# No block is ever part of a cycle, so none is tracked (gc=False): a full collection over all that some
# long conversations consist of stops the event loop for a quarter of a second.


class TextBlock(msgspec.Struct, frozen=True, tag="text", omit_defaults=True, gc=False):
    """Plain text."""

    text: str


class ThinkingBlock(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """A model's reasoning; `signature` and `origin` (`provider:model`) when given."""

    thinking: str
    signature: str | None = None
    origin: str | None = None


class RedactedThinkingBlock(
    msgspec.Struct, frozen=True, tag="redacted_thinking", omit_defaults=True, gc=False
):
    """Reasoning that only its own provider can read."""

    data: str
    origin: str | None = None


class ToolUseBlock(msgspec.Struct, frozen=True, tag="tool_use", gc=False):
    """A call of a tool; `input` is what the tool's schema describes."""

    id: str
    name: str
    input: dict[str, Any]


class BlobSource(msgspec.Struct, frozen=True, gc=False):
    """Where an image's bytes are: `sha256:…` in the blob store, never in the journal."""

    blob: str


class ImageBlock(msgspec.Struct, frozen=True, tag="image", gc=False):
    """An image or file by media type."""

    media_type: str
    source: BlobSource


class ToolResultBlock(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True, gc=False):
    """The result of the call `tool_use_id`; `data` is for programs, never sent to a model."""

    tool_use_id: str
    content: str | list[TextBlock | ImageBlock] = ""
    is_error: bool = False
    data: dict[str, Any] | None = None


class UnknownBlock(msgspec.Struct, frozen=True, tag="unknown"):
    """A block of a type this version does not know: kept as read, not sent."""

    raw: dict[str, Any]


Block = (
    TextBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | UnknownBlock
)

_KNOWN: dict[str, type[Block]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "redacted_thinking": RedactedThinkingBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
    "image": ImageBlock,
}


class Message(msgspec.Struct, frozen=True, dict=True):
    """One message. The system prompt is no message: a request carries it apart.

    What is found out about a message is kept with it: a history is looked at once per model call.

    Example:
        >>> user_text("hello").text
        'hello'
    """

    role: Role
    content: tuple[Block, ...]
    id: str = msgspec.field(default_factory=lambda: new_id("msg"))
    ts: str = msgspec.field(default_factory=now_iso)

    @cached_property
    def size(self) -> int:
        """Characters of everything in it; counted once."""
        return sum(_size(block) for block in self.content)

    @property
    def text(self) -> str:
        """The text blocks joined, without thinking or calls."""
        return "".join(b.text for b in self.content if isinstance(b, TextBlock))

    @cached_property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        """The calls in this message, in the model's order."""
        return tuple([b for b in self.content if isinstance(b, ToolUseBlock)])

    @cached_property
    def tool_results(self) -> tuple[ToolResultBlock, ...]:
        """The results in this message, in call order."""
        return tuple([b for b in self.content if isinstance(b, ToolResultBlock)])

    @cached_property
    def images(self) -> tuple[ImageBlock, ...]:
        """Every image or file in this message, also those inside tool results."""
        found: list[ImageBlock] = []
        for block in self.content:
            if isinstance(block, ImageBlock):
                found.append(block)
            elif isinstance(block, ToolResultBlock) and not isinstance(block.content, str):
                found += [part for part in block.content if isinstance(part, ImageBlock)]
        return tuple(found)


def day_of(message: Message) -> str:
    """Return what a model is told of the day of a message."""
    return f"Date: {message.ts[:10]}"


def user_text(text: str) -> Message:
    """Return a user message of one text block."""
    return Message("user", (TextBlock(text),))


def assistant_text(text: str) -> Message:
    """Return an assistant message of one text block."""
    return Message("assistant", (TextBlock(text),))


def block_from_data(data: Mapping[str, Any]) -> Block:
    """Return the block that plain data describes; unknown types become `UnknownBlock`.

    Keys beyond those of the type are dropped, so provider-only fields never pass
    through. Raises msgspec.ValidationError when a known type lacks a field.
    """
    kind = _KNOWN.get(str(data.get("type")))
    if kind is None:
        return UnknownBlock(dict(data))
    return convert(dict(data), kind)


def block_to_data(block: Block) -> dict[str, Any]:
    """Return the plain data of `block`, exactly the keys of MO-2 … MO-7."""
    if isinstance(block, UnknownBlock):
        return dict(block.raw)
    return cast("dict[str, Any]", msgspec.to_builtins(block))


def blocks_from_data(content: str | Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    """Return blocks from a string (one text block) or a list of plain blocks."""
    if isinstance(content, str):
        return (TextBlock(content),)
    return tuple(block_from_data(item) for item in content)


def message_from_data(data: Mapping[str, Any]) -> Message:
    """Return a message from `{"role", "content", "id"?, "ts"?}`; a string content is accepted."""
    role = data.get("role")
    if role not in ("user", "assistant"):
        raise ValueError(f"role is {role!r}; use 'user' or 'assistant'")
    stored = {k: str(data[k]) for k in ("id", "ts") if data.get(k)}
    return Message(role, blocks_from_data(data.get("content") or ""), **stored)


def message_to_data(message: Message) -> dict[str, Any]:
    """Return the plain data of `message`."""
    return {
        "role": message.role,
        "content": [block_to_data(b) for b in message.content],
        "id": message.id,
        "ts": message.ts,
    }


def text_of(content: str | Sequence[Block]) -> str:
    """Return the text of a tool's result or of blocks, images left out.

    Example:
        >>> text_of((TextBlock("a"), TextBlock("b")))
        'a\\nb'
    """
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


def result_text(block: ToolResultBlock) -> str:
    """Return the text of a tool result, images left out."""
    return text_of(block.content)


def _size(block: Block) -> int:
    match block:
        case TextBlock(text=text) | ThinkingBlock(thinking=text) | RedactedThinkingBlock(data=text):
            return len(text)
        case ToolUseBlock():
            return len(block.name) + len(msgspec.json.encode(block.input))
        case ToolResultBlock(content=str() as text):
            return len(text)
        case ToolResultBlock(content=parts):
            images = sum(isinstance(part, ImageBlock) for part in parts)
            return len(result_text(block)) + images * IMAGE_SIZE
        case ImageBlock():
            return IMAGE_SIZE
        case _:
            return 0
