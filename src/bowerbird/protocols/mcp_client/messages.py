"""One message of a server as bytes: whether it may be read on the event loop, and reading it (PT-17). Pure.

Here: the bounds of a message's inside. Not here: where messages come from (`transport.py`, `http_bounds.py`),
what they mean (`connection.py`).
"""

import re
from itertools import islice

from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

_PARTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|[\[\]{},]', re.DOTALL)

# Half of a character beyond the first 65,536, as a server writes it that cut its text by UTF-16 units.
_HALF = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)

# Texts, brackets and commas: 16 MiB of them would hold up everybody while they are read.
MOST_PARTS = 100_000
DEEPEST = 150  # brackets; what reads messages gives up on a whole message at 200


def is_readable(line: bytes) -> bool:
    """Whether a line has few enough parts to be read on the event loop."""
    return count_parts(line) <= MOST_PARTS


def count_parts(text: bytes | bytearray) -> int:
    """Return how many parts `text` has, counted no further than one above the bound."""
    if len(text) <= MOST_PARTS:
        return 0  # a part is a byte at least
    return sum(1 for _ in islice(_PARTS.finditer(text), MOST_PARTS + 1))


def read_message(line: bytes) -> JSONRPCMessage:
    """Return the message of a line; what is nested too deep in it becomes null, halves of characters U+FFFD.

    Raises:
        ValueError: it is no message.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        readable = made_readable(line)
        if readable == line:
            raise
        return jsonrpc_message_adapter.validate_json(readable, by_name=False)


def made_readable(text: bytes) -> bytes:
    """Return a message as it is, unless it holds what a reader gives up on."""
    if text.count(b"{") + text.count(b"[") > DEEPEST:
        text = without_depths(text)
    return without_halves(text) if b"\\u" in text else text


def without_halves(text: bytes) -> bytes:
    """Return JSON `text` with each escaped half of a surrogate pair replaced, as every other reader does.

    Example:
        >>> without_halves(b'["\\\\ud83d", "\\\\ud83d\\\\ude00"]')
        b'["\\\\ufffd", "\\\\ud83d\\\\ude00"]'
    """
    return _HALF.sub(lambda found: rb"\ufffd" if found[1] else found[0], text)


def without_depths(text: bytes, deepest: int = DEEPEST) -> bytes:
    """Return JSON `text` with each value nested deeper than `deepest` as null, in one pass.

    Example:
        >>> without_depths(b'{"a":[1,[2]],"b":3}', 2)
        b'{"a":[1,null],"b":3}'
    """
    kept: list[bytes] = []
    depth = since = cut_at = 0
    for found in _PARTS.finditer(text):
        mark = found[0]
        if mark in b"[{":
            depth += 1
            if depth == deepest + 1:
                cut_at = found.start()
        elif mark in b"]}" and depth:
            depth -= 1
            if depth == deepest:
                kept += [text[since:cut_at], b"null"]
                since = found.end()
    return b"".join((*kept, text[since:]))
