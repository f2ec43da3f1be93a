"""Which Host and Origin a request may name (SV-58). Pure.

Here: the two decisions against DNS rebinding and foreign pages. Not here: answering (`gate.py`).
"""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import urlsplit

DEV_PORTS = (3500, 3501)  # where a UI under development is served on the same machine
_WILDCARDS = ("0.0.0.0", "::", "")
_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine itself.

    Example:
        >>> is_loopback("localhost"), is_loopback("[::1]"), is_loopback("127.0.0.2"), is_loopback("a.example")
        (True, True, True, False)
    """
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Names:
    """What this server may be called.

    Attributes:
        bound: the address listened on. hosts: further names (`server.hosts`), with or without a port.
        origins: further Origins (`server.origins`).
    """

    bound: str
    hosts: Collection[str] = ()
    origins: Collection[str] = field(default_factory=tuple)

    def admits_host(self, header: str | None, reached: str | None) -> bool:
        """Whether a Host header names this server.

        Args:
            reached: the local address that the connection came in on.

        Example:
            >>> Names("127.0.0.1").admits_host("evil.example", "127.0.0.1")
            False
        """
        parts = _split_host(header)
        if parts is None:
            return False
        name, port = parts
        known = {entry.lower().rstrip(".") for entry in self.hosts}
        if is_loopback(name) or name in known or (port is not None and f"{name}:{port}" in known):
            return True
        bound = self.bound.strip("[]").lower()
        if bound in _WILDCARDS:
            return reached is not None and name.strip("[]") == reached.strip("[]").lower()
        return name.strip("[]") == bound

    def admits_origin(
        self, origin: str, host: str | None, *, proxied: bool = False, port: str | None = None
    ) -> bool:
        """Whether a page of `origin` may speak to this server, asked under the (admitted) name `host`.

        Args:
            proxied: a trusted proxy passed it on. Many pass the name on without the port they listen on
                (nginx: `Host $host`), so that a Host without a port stands for that name on any port.
            port: the port which that proxy says it was asked on (X-Forwarded-Port).

        Example:
            >>> Names("127.0.0.1").admits_origin("http://localhost:3500", "127.0.0.1:8000")
            True
        """
        if origin in self.origins or origin.lower() in {known.lower().rstrip("/") for known in self.origins}:
            return True
        try:
            parts = urlsplit(origin)
            own = parts.port
        except ValueError:
            return False
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
            return False
        named = _split_host(host)
        if named is not None and _same(parts.hostname, named[0]):
            default = _DEFAULT_PORTS[parts.scheme]
            asked = named[1] or (int(port) if port and port.isascii() and port.isdigit() else None)
            if (own or default) == (asked or default) or (proxied and asked is None):
                return True
        dev = parts.hostname in ("localhost", "127.0.0.1") and own in DEV_PORTS and parts.scheme == "http"
        return dev and is_loopback(self.bound)


def _same(a: str, b: str) -> bool:
    return a.strip("[]").lower().rstrip(".") == b.strip("[]").lower().rstrip(".")


def _split_host(header: str | None) -> tuple[str, int | None] | None:
    """A Host header as name and port; None for what is no such header."""
    if not header or any(c in header for c in "/\\@ ,\t"):
        return None
    text = header.strip().lower()
    if text.startswith("["):
        name, bracket, rest = text.partition("]")
        if not bracket:
            return None
        name, port = name + "]", rest[1:] if rest.startswith(":") else rest and "bad"
    else:
        name, _, port = text.partition(":")
    if not name or (port and not (port.isascii() and port.isdigit())):
        return None
    return name.rstrip("."), int(port) if port else None
