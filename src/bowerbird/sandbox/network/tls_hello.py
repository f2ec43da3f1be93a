"""The server name in a TLS ClientHello (RFC 8446 §4.1.2, RFC 6066 §3), read without TLS.

Here: one pure parser over the first bytes of a connection. Not here: sockets.
"""

import struct

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0


class NotTls(ValueError):
    """The bytes are no ClientHello."""


def server_name(data: bytes) -> str | None:
    """Return the SNI host name, "" when the hello has none, None when more bytes are needed.

    Raises:
        NotTls: the bytes are not the beginning of a TLS handshake.
    """
    hello = _handshake(data)
    if hello is None:
        return None
    try:
        at = 4 + 2 + 32  # header, version, random
        at += 1 + hello[at]  # session id
        at += 2 + struct.unpack_from("!H", hello, at)[0]  # cipher suites
        at += 1 + hello[at]  # compression methods
        if at + 2 > len(hello):
            return ""
        end = at + 2 + struct.unpack_from("!H", hello, at)[0]
        at += 2
        while at + 4 <= end:
            kind, size = struct.unpack_from("!HH", hello, at)
            at += 4
            if kind == _SERVER_NAME:
                return _name(hello[at : at + size])
            at += size
    except (struct.error, IndexError) as error:
        raise NotTls("a broken ClientHello") from error
    return ""


def _handshake(data: bytes) -> bytes | None:
    """Return the ClientHello joined from its records, None while it is incomplete."""
    message = b""
    at = 0
    while True:
        if len(data) < at + 5:
            if data[at : at + 1] not in (b"", bytes([_HANDSHAKE])):
                raise NotTls("no TLS handshake")
            return None
        kind, major, _, size = struct.unpack_from("!BBBH", data, at)
        if kind != _HANDSHAKE or major != 3:
            raise NotTls("no TLS handshake")
        record = data[at + 5 : at + 5 + size]
        message += record
        if message and message[0] != _CLIENT_HELLO:
            raise NotTls("no ClientHello")
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big"):
            return message[: 4 + int.from_bytes(message[1:4], "big")]
        if len(record) < size:
            return None
        at += 5 + size


def _name(extension: bytes) -> str:
    at = 2
    while at + 3 <= len(extension):
        kind, size = struct.unpack_from("!BH", extension, at)
        if kind == _HOST_NAME:
            return extension[at + 3 : at + 3 + size].decode("ascii", "replace")
        at += 3 + size
    return ""
