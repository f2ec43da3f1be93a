"""The three proxy protocols as a sandboxed client speaks them: reading a request, answering it.

CONNECT and absolute-form HTTP/1.1 (RFC 9110, RFC 9112), SOCKS5 with a domain name (RFC 1928); what a tunnel
begins with. Not here: whether a host is allowed, the plain request itself (`proxy_http`).
"""

import asyncio
import struct
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from bowerbird.sandbox.network.egress_policy import literal, normal_name
from bowerbird.sandbox.network.proxy_http import Refused, looks_like_http
from bowerbird.sandbox.network.tls_hello import NotTls, server_name

_SOCKS5, _NO_AUTH, _SOCKS_CONNECT = 5, 0, 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REFUSED_BY_RULES = 2
_MOST_HELLO_BYTES = 1 << 16
_HTTP_PORT, _HTTPS_PORT = 80, 443
_TLS = b"\x16"


class Request(msgspec.Struct, frozen=True):
    """What a client asks for; `head` is what it said so far of a plain request."""

    kind: Literal["connect", "http", "socks"]
    host: str
    port: int
    head: bytes = b""


class Opening(msgspec.Struct, frozen=True):
    """What is spoken in a tunnel, and its first bytes."""

    kind: Literal["tls", "http", "other"]
    first: bytes


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request:
    """Read one request; raises ValueError for what is none of the three protocols."""
    first = await reader.readexactly(1)
    if first[0] == _SOCKS5:
        return await _read_socks(reader, writer)
    head = first + await reader.readuntil(b"\r\n\r\n")
    return parse_http(head)


def parse_http(head: bytes) -> Request:
    """Read the head of a CONNECT or absolute-form request."""
    line = head.partition(b"\r\n")[0]
    method, target, version = line.decode("latin-1").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("not HTTP/1")
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        return Request("connect", host, int(port))
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname or "@" in url.netloc:
        raise ValueError("not an absolute http URL")
    return Request("http", url.hostname, url.port or 80, head)


async def _read_socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request:
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    if _NO_AUTH not in methods:
        writer.write(bytes([_SOCKS5, 0xFF]))
        raise ValueError("no common SOCKS method")
    writer.write(bytes([_SOCKS5, _NO_AUTH]))
    await writer.drain()
    version, command, _, kind = await reader.readexactly(4)
    if version != _SOCKS5 or command != _SOCKS_CONNECT:
        raise ValueError("only SOCKS5 CONNECT")
    if kind == _NAME:
        raw = await reader.readexactly((await reader.readexactly(1))[0])
        host = raw.decode("latin-1")
    else:
        import ipaddress

        host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == _IPV4 else 16)))
    (port,) = struct.unpack("!H", await reader.readexactly(2))
    return Request("socks", host, port)


async def accept(asked: Request, writer: asyncio.StreamWriter) -> None:
    """Tell the client that the connection stands."""
    if asked.kind == "connect":
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    elif asked.kind == "socks":
        writer.write(bytes([_SOCKS5, 0, 0, _IPV4, 0, 0, 0, 0, 0, 0]))
    await writer.drain()


async def refuse(asked: Request, writer: asyncio.StreamWriter, reason: str) -> None:
    """Tell the client that it is refused: 403 with the host and the setting, or the SOCKS code."""
    if asked.kind == "socks":
        writer.write(bytes([_SOCKS5, _REFUSED_BY_RULES, 0, _IPV4, 0, 0, 0, 0, 0, 0]))
    else:
        body = f"bowerbird: {reason}\n".encode()
        rows = ["HTTP/1.1 403 Forbidden", "Content-Type: text/plain; charset=utf-8", "Connection: close"]
        rows += [f"Content-Length: {len(body)}", "", ""]
        writer.write("\r\n".join(rows).encode() + body)
    await writer.drain()


async def opening(asked: Request, host: str, reader: asyncio.StreamReader) -> Opening:
    """Read a tunnel's first bytes until it is clear what is spoken in it, and check what can be checked.

    The server name of a TLS hello must be the name that was asked for: otherwise one allowed front would lead
    to every site behind it. On the ports of the web nothing but HTTP and TLS is spoken.

    Raises:
        Refused: it is not what it should be.
    """
    seen = b""
    while len(seen) < _MOST_HELLO_BYTES:
        chunk = await reader.read(_MOST_HELLO_BYTES - len(seen))
        seen += chunk
        if seen[:1] == _TLS:
            name = _server_name(seen)
            if name is not None:
                return Opening("tls", _checked_name(seen, name, host))
        elif seen and asked.port == _HTTPS_PORT:
            raise Refused("no TLS on port 443")
        elif seen:
            http = looks_like_http(seen)
            if http is False and asked.port == _HTTP_PORT:
                raise Refused("neither HTTP nor TLS on port 80")
            if http is not None:
                return Opening("http" if http else "other", seen)
        if not chunk:
            if seen:
                raise Refused("the connection ended in its first line")
            return Opening("other", b"")
    raise Refused("the first message is too long")


def _server_name(seen: bytes) -> str | None:
    try:
        return server_name(seen)
    except NotTls as error:
        raise Refused(str(error)) from error


def _checked_name(seen: bytes, name: str, host: str) -> bytes:
    if not name and literal(host) is None:  # an address has no name to send
        raise Refused("the TLS hello names no server")
    if name and normal_name(name) != host:
        raise Refused("the TLS server name is another host")
    return seen
