"""What no JSON-RPC message is, in one sentence for whoever sent it (PT-8, PT-16). Pure.

Here: the check of the outer form. Not here: what messages mean (the SDK), where they come from (`lines.py`,
`http.py`).

The SDK takes a request whose id is no id for a notification: nobody would ever answer it.
"""

import re

import msgspec
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError

from bowerbird.core.forms import decode

_WHOLE = re.compile(rb"-?\d+")
_FORM = "this is not a JSON-RPC message: "
_NONE = msgspec.Raw()


class _Outer(msgspec.Struct):
    """The members of a message, unread; unknown ones are passed over."""

    jsonrpc: msgspec.Raw = _NONE
    id: msgspec.Raw = _NONE
    method: msgspec.Raw = _NONE
    params: msgspec.Raw = _NONE
    result: msgspec.Raw = _NONE
    error: msgspec.Raw = _NONE


def fault_of(data: bytes) -> JSONRPCError | None:
    """Return the answer to what is no JSON-RPC message, with its id where it has one; None for a message.

    Example:
        >>> fault_of(b'{"jsonrpc": "2.0", "id": null, "method": "ping"}').error.message
        'this is not a JSON-RPC message: the id of a request is a text or a whole number'
        >>> fault_of(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}') is None
        True
    """
    try:
        outer = decode(data, _Outer)
    except msgspec.ValidationError:
        return _answer(None, INVALID_REQUEST, f"{_FORM}one message is one JSON object")
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _answer(None, PARSE_ERROR, "this is not JSON")
    why = _why(outer)
    return None if why is None else _answer(_id_of(outer), INVALID_REQUEST, _FORM + why)


def without_session(data: bytes) -> JSONRPCError | None:
    """Return the answer to a message that names no session; None for the one that begins one.

    Args:
        data: a message, by `fault_of`; nothing, of a request that has no body.

    Example:
        >>> without_session(b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}') is None
        True
    """
    outer = decode(data, _Outer) if data else _Outer()
    if bytes(outer.method) == b'"initialize"':
        return None
    return _answer(
        _id_of(outer),
        INVALID_REQUEST,
        "this needs a session: POST initialize; its answer has Mcp-Session-Id",
    )


def _why(outer: _Outer) -> str | None:
    if bytes(outer.jsonrpc) != b'"2.0"':
        return '"jsonrpc" has to be "2.0"'
    if not bytes(outer.method):
        return None if bytes(outer.result) or bytes(outer.error) else "it names no method"
    if not bytes(outer.method).startswith(b'"'):
        return "the method is a text"
    if bytes(outer.id) and _id_of(outer) is None:
        return "the id of a request is a text or a whole number"
    if bytes(outer.params) and not bytes(outer.params).startswith(b"{"):
        return "params are one JSON object"
    return None


def _id_of(outer: _Outer) -> str | int | None:
    raw = bytes(outer.id)
    try:
        if _WHOLE.fullmatch(raw):
            return int(raw)
        return decode(raw, str) if raw.startswith(b'"') else None
    except (ValueError, msgspec.DecodeError):  # more digits than Python reads; half of a surrogate pair
        return None


def _answer(number: str | int | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=code, message=message))
