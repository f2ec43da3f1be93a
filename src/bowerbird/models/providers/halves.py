r"""Payloads whose text holds halves of characters: a server that cuts its tokens inside one sends them.

Here: the same payload with U+FFFD in their place. Not here: who reads payloads (the wire modules).
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from bowerbird.core.requests import ModelEvent

_PAIR = rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
_ESCAPES = re.compile(rb"(?P<whole>\\\\|" + _PAIR + rb")|" + _HALF)


def read_with_halves(read: Callable[[bytes], Sequence[ModelEvent]], payload: bytes) -> Sequence[ModelEvent]:
    """Return `read(payload)`, read again without halves where they are what made it unreadable.

    Raises:
        msgspec.DecodeError: it cannot be read for another reason.
    """
    try:
        return read(payload)
    except (UnicodeDecodeError, msgspec.DecodeError):
        mended = without_halves(payload)
        if mended == payload:
            raise
    return read(mended)


def without_halves(payload: bytes) -> bytes:
    r"""Return JSON with U+FFFD for bytes that are no text and for escapes of half a surrogate pair.

    Example:
        >>> without_halves(b'"a\\ud83d \xff \\ud83d\\ude00"')
        b'"a\\ufffd \xef\xbf\xbd \\ud83d\\ude00"'
    """
    text = payload.decode("utf-8", "replace").encode()
    return _ESCAPES.sub(lambda found: found["whole"] or rb"\ufffd", text)
