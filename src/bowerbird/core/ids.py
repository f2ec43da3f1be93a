"""Identifiers: time-ordered, safe as file names, made without coordination.

Here: how ids are made. Not here: what they name, or any record that holds them.
The 26-character part follows the ULID layout (48 bits of milliseconds, 80 random
bits) in lower-case Crockford base32: https://github.com/ulid/spec
"""

import hashlib
import os
import re
import time

from bowerbird.core.errors import InvalidThreadId

MOST_THREAD_BYTES = 200
_MOST_BELOW = 40  # what ids of subagents and teammates add
_THREAD = re.compile(r"[A-Za-z0-9_%@-][A-Za-z0-9._%@-]*")

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


def check_thread_id(thread_id: str, most: int = MOST_THREAD_BYTES) -> str:
    """Return the id of a conversation as it is; it names files and rows from then on.

    Args:
        most: bytes.

    Raises:
        InvalidThreadId: it is empty, too long, or has characters that no file name should have.

    Example:
        >>> check_thread_id("telegram_12345")
        'telegram_12345'
    """
    if not _THREAD.fullmatch(thread_id) or len(thread_id) > most:
        raise InvalidThreadId(
            f"thread id {thread_id[:60]!r}: use letters, digits and _ - . @ %, not beginning with a dot, "
            f"at most {most}"
        )
    return thread_id


def check_stored_thread_id(thread_id: str) -> str:
    """Return an id as `check_thread_id` does, with room for what those of subagents and teammates add."""
    return check_thread_id(thread_id, MOST_THREAD_BYTES + _MOST_BELOW)


def file_name_of_thread(thread_id: str) -> str:
    """Return what files of a conversation are called: its id, or a hash where an old one is no name."""
    try:
        return check_stored_thread_id(thread_id)
    except InvalidThreadId:
        return f"id-{hashlib.sha256(thread_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def new_call_id() -> str:
    """Return an id for a tool call whose provider gave none or repeated one."""
    return "call_" + os.urandom(8).hex()
