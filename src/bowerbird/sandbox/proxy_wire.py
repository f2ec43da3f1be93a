"""The three proxy protocols as a sandboxed client speaks them: reading a request, answering it.

CONNECT and absolute-form HTTP/1.1 (RFC 9110, RFC 9112), SOCKS5 with a domain name (RFC 1928).
Absolute-form requests are sent on in origin form with `Connection: close`, so each connection carries one
request whose Host was checked.
Not here: whether a host is allowed.
"""

import asyncio
import struct
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from bowerbird.sandbox.egress_policy import normal_name
from bowerbird.sandbox.tls_hello import NotTls, server_name

_SOCKS5, _NO_AUTH, _SOCKS_CONNECT = 5, 0, 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REFUSED_BY_RULES = 2
_MOST_HELLO_BYTES = 1 << 16
_HTTPS_PORT = 443
_WEB_PORTS = (80, 443)
_SILENCE_S = 1.0
_METHODS = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ", b"TRACE ")


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for; `head` is what to send on for plain HTTP."""

    kind: Literal["connect", "http", "socks"]
    host: str
    port: int
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What the client then said inside differs from what it asked for."""

    reason: str


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request:
    """Read one request; raises ValueError for what is none of the three protocols."""
    first = await reader.readexactly(1)
    if first[0] == _SOCKS5:
        return await _read_socks(reader, writer)
    head = first + await reader.readuntil(b"\r\n\r\n")
    return parse_http(head)


def parse_http(head: bytes) -> Request:
    """Read the head of a CONNECT or absolute-form request."""
    line, _, headers = head.partition(b"\r\n")
    method, target, version = line.decode("latin-1").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("not HTTP/1")
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        return Request("connect", host, int(port))
    url = urlsplit(target)
    if url.scheme != "http" or not url.hostname or "@" in url.netloc:
        raise ValueError("not an absolute http URL")
    origin = (url.path or "/") + (f"?{url.query}" if url.query else "")
    kept = [
        row
        for row in headers.split(b"\r\n")
        if row and row.split(b":", 1)[0].strip().lower() not in (b"proxy-connection", b"connection", b"host")
    ]
    host_row = f"Host: {url.netloc}".encode("latin-1")
    start = f"{method} {origin} HTTP/1.1".encode("latin-1")
    rows = [start, host_row, *kept, b"Connection: close", b"", b""]
    return Request("http", url.hostname, url.port or 80, b"\r\n".join(rows))


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


async def first_bytes(asked: Request, host: str, reader: asyncio.StreamReader) -> bytes | Mismatch:
    """Return what goes to the far end first, or what does not agree with the request.

    The server name of a TLS hello, and the Host of plain HTTP, must be the name that was asked for:
    otherwise one allowed front would lead to every site behind it.
    """
    if asked.kind == "http":
        return asked.head
    seen = b""
    while len(seen) < _MOST_HELLO_BYTES:
        try:
            # On other ports the far end may speak first, so the client's silence is no error there.
            async with asyncio.timeout(None if asked.port in _WEB_PORTS else _SILENCE_S):
                chunk = await reader.read(_MOST_HELLO_BYTES - len(seen))
        except TimeoutError:
            return seen
        seen += chunk
        if seen[:1] == b"\x16":
            try:
                name = server_name(seen)
            except NotTls as error:
                return Mismatch(str(error))
            if name is not None:
                if not name or normal_name(name) == host:
                    return seen
                return Mismatch("the TLS server name is another host")
        elif asked.port == _HTTPS_PORT and seen:
            return Mismatch("no TLS on port 443")
        elif b"\r\n\r\n" in seen or not seen.startswith(_METHODS):
            return _checked_http(seen, host) if seen.startswith(_METHODS) else seen
        if not chunk:
            return seen
    return Mismatch("the first message is too long")


def _checked_http(seen: bytes, host: str) -> bytes | Mismatch:
    for row in seen.split(b"\r\n\r\n", 1)[0].split(b"\r\n")[1:]:
        name, _, value = row.partition(b":")
        if name.strip().lower() == b"host":
            asked = value.strip().decode("latin-1")
            bare = asked.rsplit(":", 1)[0] if asked.rsplit(":", 1)[-1].isdigit() else asked
            if normal_name(bare) != host:
                return Mismatch("the Host header is another host")
    return seen
