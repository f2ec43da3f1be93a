"""What a server answered, as a tool's result (PT-19, PT-21).

Here: the form of each kind of content, marks of untrusted text. Not here: cutting long results
(`tools/limits.py`), the call.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any, cast

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from bowerbird.core.messages import BlobSource, Block, ImageBlock, TextBlock
from bowerbird.core.pictures import PICTURE_BYTES
from bowerbird.tools.result import ToolResult, compact_json
from bowerbird.tools.web.web_tools import as_untrusted

MAX_IMAGES = 20
DATA_CHARS = 50_000
NOTHING = "(no output)"
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

StoreBlob = Callable[[bytes, str], Awaitable[str]]


async def to_tool_result(
    answer: CallToolResult, source: str, store_blob: StoreBlob | None, masked: Callable[[str], str]
) -> ToolResult:
    """Return the result that the model sees; always tainted, an error when the server says so.

    Args:
        source: names server and tool. store_blob: keeps images; None = images become a line.
        masked: takes the server's own secrets out of text.
    """
    texts: list[str] = []
    images: list[ImageBlock] = []
    for item in answer.content:
        text, image = await _converted(item, store_blob if len(images) < MAX_IMAGES else None)
        if image is not None:
            images.append(image)
        elif text:
            texts.append(text)
    data = _data(answer.structured_content)
    if not texts and answer.structured_content is not None:
        texts.append(compact_json(answer.structured_content))
    shown = masked("\n".join(texts))
    if shown or not images:
        shown = as_untrusted(shown or NOTHING, source, "an MCP server")
    content: str | list[Block] = [*([TextBlock(shown)] if shown else []), *images] if images else shown
    return ToolResult(content, data=data, is_error=bool(answer.is_error), tainted=True)


def failed(text: str, masked: Callable[[str], str]) -> ToolResult:
    """Return an error result about a call; `text` may quote the server."""
    said = masked(text)
    return ToolResult(said, data={"error": said}, is_error=True, tainted=True)


def _data(structured: Any) -> dict[str, Any] | None:
    """Return structured content for programs, unless it is larger than any result may be."""
    if not isinstance(structured, dict) or len(compact_json(cast("object", structured))) > DATA_CHARS:
        return None
    return cast("dict[str, Any]", structured)


async def _converted(item: ContentBlock, store_blob: StoreBlob | None) -> tuple[str, ImageBlock | None]:
    match item:
        case TextContent():
            return item.text, None
        case ImageContent():
            return await _image(item.data, item.mime_type, store_blob)
        case AudioContent():
            return f"[{item.mime_type}, {_size(item.data):,} bytes; not shown]", None
        case ResourceLink():
            about = f": {item.description}" if item.description else ""
            return f"[resource {item.uri}, {item.name}{about}]", None
        case EmbeddedResource():
            return await _resource(item, store_blob)


async def _resource(item: EmbeddedResource, store_blob: StoreBlob | None) -> tuple[str, ImageBlock | None]:
    held = item.resource
    if not isinstance(held, BlobResourceContents):
        return f"[resource {held.uri}]\n{held.text}", None
    kind = held.mime_type or "application/octet-stream"
    text, image = await _image(held.blob, kind, store_blob)
    return f"[resource {held.uri}]\n{text}", image


async def _image(data: str, kind: str, store_blob: StoreBlob | None) -> tuple[str, ImageBlock | None]:
    size = _size(data)
    if kind not in _IMAGES:
        return f"[{kind}, {size:,} bytes; not shown]", None
    if size > PICTURE_BYTES:
        return f"[{kind}, {size:,} bytes; images over 5 MiB are not shown]", None
    if store_blob is None:
        return f"[{kind}, {size:,} bytes; images cannot be shown here]", None
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[{kind}; its data are damaged]", None
    return "", ImageBlock(kind, BlobSource(await store_blob(content, kind)))


def _size(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")
