"""Plain HTTP through the proxy, one request a connection, read by a parser and written anew (SB-28).

What reaches the far end is what was understood here: its request line, the Host that was asked for, the other
fields, the body by its own framing. Nothing that a client sends before, between or after is passed on, so no
server can read another request out of the same bytes. Here: that one request. Not here: TLS, other protocols,
answers.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from urllib.parse import urlsplit

import h11

from bowerbird.sandbox.network.egress_policy import normal_name

_LONGEST_HEAD = 1 << 16
_CHUNK = 1 << 16
# About the connection to this proxy, not about the request.
_HOP_BY_HOP = frozenset(
    b"connection proxy-connection proxy-authorization keep-alive te upgrade http2-settings host".split()
)
_LIKE_HTTP = re.compile(rb"[\r\n]*(?:[!-~]+[ \t]+[^\r\n]*HTTP/|[A-Za-z-]+[ \t]+(?:/|\*|[A-Za-z]+:))")

Read = Callable[[int], Awaitable[bytes]]


class Refused(ValueError):
    """The bytes are no request that may be passed on; the text says why."""


class SecondRequest(Refused):
    """The one request was passed on; what the client sent after it was not."""


def looks_like_http(start: bytes) -> bool | None:
    """Tell whether a client's first bytes are HTTP; None while its first line is not whole.

    >>> looks_like_http(b"PROPFIND / HTTP/1.1\\n"), looks_like_http(b"SSH-2.0-x\\r\\n"), looks_like_http(b"G")
    (True, False, None)
    """
    line = start.lstrip(b"\r\n")
    if line and not 0x20 < line[0] < 0x7F:
        return False
    if b"\n" not in line and len(start) < _LONGEST_HEAD:
        return True if _LIKE_HTTP.match(line) else None
    return _LIKE_HTTP.match(line) is not None


async def one_request(
    first: bytes, read: Read, host: str, port: int, *, absolute: bool
) -> AsyncGenerator[bytes]:
    """Yield what to send to the far end for a client's one request.

    Args:
        first: what the client sent already. read: gives more, b"" at its end.
        host, port: what was asked for and allowed; the Host that the far end sees.
        absolute: the request was made to this proxy, its target is a whole address.

    Raises:
        Refused: it cannot be read, or names another host. SecondRequest: it was passed on, another follows.
    """
    near = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
    far = h11.Connection(h11.CLIENT)
    near.receive_data(first)
    try:
        while True:
            event = near.next_event()
            if event is h11.NEED_DATA:
                near.receive_data(await read(_CHUNK))
            elif isinstance(event, h11.Request):
                yield far.send(_checked(event, host, port, absolute=absolute)) or b""
            elif isinstance(event, h11.Data):
                yield far.send(h11.Data(data=bytes(event.data))) or b""
            elif isinstance(event, h11.EndOfMessage):
                yield far.send(h11.EndOfMessage()) or b""
                break
            else:  # the client is gone
                return
    except Refused:
        raise
    except (h11.RemoteProtocolError, h11.LocalProtocolError, ValueError) as error:
        raise Refused(f"not a request that can be checked ({error})") from error
    if near.trailing_data[0] or await read(1):
        raise SecondRequest("one request per connection: the next needs another")


def _checked(asked: h11.Request, host: str, port: int, *, absolute: bool) -> h11.Request:
    if not asked.http_version.startswith(b"1."):
        raise Refused("only HTTP/1")
    target = asked.target
    fields = [(name, value) for name, value in asked.headers.raw_items()]
    if absolute:
        url = urlsplit(target.decode("latin-1"))
        target = ((url.path or "/") + (f"?{url.query}" if url.query else "")).encode("latin-1")
    else:
        if not target.startswith((b"/", b"*")):
            raise Refused("an address of another host in the request line")
        named = [value.decode("latin-1").strip() for name, value in fields if name.lower() == b"host"]
        if len(named) != 1 or normal_name(_bare(named[0])) != host:
            raise Refused("the Host header is another host")
    listed = {
        word.strip().lower()
        for name, value in fields
        if name.lower() == b"connection"
        for word in value.split(b",")
    }
    chunked = any(name.lower() == b"transfer-encoding" for name, _ in fields)
    # The framing stays as it was read; of two, the one that counted (RFC 9112 §6.3).
    dropped = (_HOP_BY_HOP | listed) - {b"transfer-encoding", b"content-length"}
    if chunked:
        dropped |= {b"content-length"}
    kept = [(name, value) for name, value in fields if name.lower() not in dropped]
    shown = f"[{host}]" if ":" in host else host
    name = shown if port == 80 else f"{shown}:{port}"
    head = [(b"Host", name.encode()), *kept, (b"Connection", b"close")]
    return h11.Request(method=asked.method, target=target, headers=head)


def _bare(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() and (":" not in name or name.endswith("]")) else host
