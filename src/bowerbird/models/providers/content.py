"""What both wires share when messages are translated: files as text or base64, ids, what is left out.

Here: pure helpers over blocks. Not here: the form of a request (`anthropic_model`, `openai_model`),
reading bytes from the blob store (the adapters do, before they translate).
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping

from bowerbird.core.messages import ImageBlock, Message

BlobReader = Callable[[str], bytes]
"""Returns the bytes of `sha256:…`; raises a BowerbirdError or OSError when there are none."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")


def images_in(messages: Iterable[Message]) -> list[ImageBlock]:
    """Return every image or file block of `messages`, also those inside tool results."""
    return [image for images in [message.images for message in messages] if images for image in images]


def described(block: ImageBlock, blobs: Mapping[str, bytes]) -> str:
    """Return the text line that stands for a file a model cannot take."""
    content = blobs.get(block.source.blob)
    size = "not available" if content is None else f"{len(content):,} bytes"
    kind = "image" if block.media_type.startswith("image/") else "file"
    return f"[{kind}: {block.media_type}, {size}]"


def base64_of(block: ImageBlock, blobs: Mapping[str, bytes]) -> str | None:
    """Return the bytes of `block` as base64, None when they could not be read."""
    content = blobs.get(block.source.blob)
    return None if content is None else base64.b64encode(content).decode("ascii")


def wire_id(call_id: str, *, short: bool = False) -> str:
    """Return `call_id` as a provider takes it; another provider's form becomes a stable hash.

    Example:
        >>> wire_id("call_1"), len(wire_id("call_1", short=True))
        ('call_1', 9)
    """
    pattern = _SHORT_ID if short else _SAFE_ID
    if pattern.fullmatch(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:9] if short else f"call_{digest[:16]}"
