"""Identifiers: time-ordered, safe as file names, made without coordination.

Here: how ids are made. Not here: what they name, or any record that holds them.
The 26-character part follows the ULID layout (48 bits of milliseconds, 80 random
bits) in lower-case Crockford base32: https://github.com/ulid/spec
"""

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def ulid(at_ms: int | None = None) -> str:
    """Return 26 characters that sort by creation time.

    Args:
        at_ms: Milliseconds since the epoch; the clock's when None.

    Example:
        >>> len(ulid())
        26
    """
    millis = time.time_ns() // 1_000_000 if at_ms is None else at_ms
    number = (millis << 80) | int.from_bytes(os.urandom(10), "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def new_id(prefix: str) -> str:
    """Return `prefix_` + a `ulid`; prefixes: t i o r s b l m h msg (SE, WS chapters)."""
    return f"{prefix}_{ulid()}"


def new_thread_id() -> str:
    """Return the id of a conversation made over HTTP, CLI, UI or the library."""
    return os.urandom(6).hex()


def new_call_id() -> str:
    """Return an id for a tool call whose provider gave none or repeated one."""
    return "call_" + os.urandom(8).hex()
