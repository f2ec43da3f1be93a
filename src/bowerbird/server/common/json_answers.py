"""Small forms that every route shares: JSON answers, ids, times, page limits.

Here: how a value looks on the wire. Not here: errors (`errors.py`), any one route's members.
"""

import re
from typing import Any

import msgspec
from starlette.responses import Response

_ENCODER = msgspec.json.Encoder()
# What an id of ours can look like; anything else names nothing.
_ID = re.compile(r"[A-Za-z0-9._@%-][A-Za-z0-9._@%:-]{0,199}")

MAX_PAGE = 1000
# Some character that is no white space. Written out, because what `\s` means differs between those who check
# a description (Python, Rust, ECMAScript): none of their white space counts here.
NOT_BLANK = "[^\\s\x1c-\x1f\x85\ufeff]"


def is_id(text: str) -> bool:
    """Whether `text` could be an id: opaque, safe, at most 200 characters.

    Example:
        >>> is_id("0123456789ab"), is_id("../x"), is_id("")
        (True, False, False)
    """
    return _ID.fullmatch(text) is not None


def encode(value: Any) -> bytes:
    """Return `value` as JSON; structs, dataclasses and plain data."""
    return _ENCODER.encode(value)


def answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return `value` as a JSON response."""
    return Response(_ENCODER.encode(value), status, headers=headers, media_type="application/json")


def cut(text: str, limit: int, mark: str = "...") -> str:
    """Return at most `limit` characters of `text`, then `mark` if anything was left out."""
    return text if len(text) <= limit else text[:limit] + mark


def clean(text: str) -> str:
    """Return `text` without NUL, which not every database can hold in a text."""
    return text.replace("\0", "\ufffd")
