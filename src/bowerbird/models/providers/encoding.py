"""Request bodies as bytes: the same state gives the same bytes (MO-53).

Here: the order of keys and the cleaning of text that is no Unicode. Not here: what a body holds.
"""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

# The cached prefix first, in the order in which providers read it: two requests of one session then
# share their bytes as far as they share their content.
_FIRST = ("tools", "system", "instructions", "messages", "input")
_ENCODER = msgspec.json.Encoder(order="sorted")


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return `body` as JSON: tools, system, messages first, then the other keys; all inner keys sorted.

    Example:
        >>> encode_body({"model": "m", "messages": [{"role": "user", "content": "a"}]})
        b'{"messages":[{"content":"a","role":"user"}],"model":"m"}'
    """
    keys = [key for key in _FIRST if key in body] + sorted(key for key in body if key not in _FIRST)
    parts: list[bytes | memoryview] = [b"{"]
    for at, key in enumerate(keys):
        parts += (b"," if at else b"", b'"%b":' % key.encode())
        parts += _items(body[key]) if key in ("messages", "input") else (encode_part(body[key]),)
    return b"".join((*parts, b"}"))  # of a long conversation half a megabyte: put together once


def _items(messages: list[Any]) -> list[bytes | memoryview]:
    """Return messages as JSON in parts; the beginning of a long conversation is JSON already."""
    parts: list[bytes | memoryview] = [b"["]
    for at, message in enumerate(messages):
        parts.append(b"," if at else b"")
        parts.append(memoryview(message) if isinstance(message, msgspec.Raw) else encode_part(message))
    return [*parts, b"]"]


def encode_part(value: Any) -> bytes:
    """Return `value` as JSON with sorted keys; text that is no Unicode gets replacement characters."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:  # surrogates, say from a file name in another encoding
        return _ENCODER.encode(_clean(value))


def compact_json(value: Any) -> str:
    """Return `value` as JSON text with sorted keys."""
    return encode_part(value).decode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_clean(k): _clean(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in cast("list[Any]", value)]
    return value
