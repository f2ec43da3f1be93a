"""Which addresses a fetch for a model may reach (TO-41): the decision, and asking the resolver.

Here: URLs and addresses judged, pure but for name resolution. Not here: connections
(`pinned_http.py`), what is done with an answer.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

import msgspec

from bowerbird.core.addresses import is_public
from bowerbird.core.errors import ToolError

NOT_ALLOWED = "address not allowed"
BLOCKED_PORTS = frozenset(
    (
        1719, 1720, 1723, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900,
        5984, 6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 9300, 10080, 10250,
        11211, 27017,
    )
)  # fmt: skip
"""Ports above 1023 where something else than a public web server listens: databases, cluster and
container control, mail and chat, screens, and those that browsers refuse."""

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefused(ToolError):
    """The URL, or where its name leads, is not for models; no connection was made."""


class Guard(msgspec.Struct, frozen=True):
    """Decides about every request made for a model.

    Attributes:
        allow_hosts: `host` or `host:port` that may be private (`web.allow_hosts`).
        admits: egress allow-list as a predicate of host and port; None = any public host.
        resolve: name and port → addresses; a port for tests, the system's resolver by default.
    """

    allow_hosts: frozenset[str] = frozenset()
    admits: Callable[[str, int], bool] | None = None
    resolve: Resolver | None = None

    def check_url(self, url: str) -> tuple[str, int]:
        """Return host and port of `url`; raises AddressRefused for what no fetch may use."""
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError as error:
            raise AddressRefused(f"not a usable URL: {error}") from error
        if parts.scheme not in ("http", "https"):
            raise AddressRefused(
                f"only http and https addresses can be fetched, not {parts.scheme or 'this'}"
            )
        if parts.username is not None or parts.password is not None:
            raise AddressRefused(f"{NOT_ALLOWED}: it holds a user name or password")
        if not host or any(c <= " " for c in url):
            raise AddressRefused(f"{NOT_ALLOWED}: it names no host")
        port = port if port is not None else {"http": 80, "https": 443}[parts.scheme]
        if port not in (80, 443) and (port < 1024 or port in BLOCKED_PORTS):
            raise AddressRefused(f"{NOT_ALLOWED}: port {port}")
        if self.admits is not None and not self.admits(host, port):
            raise AddressRefused(f"{NOT_ALLOWED}: {host} is not in the network allow-list of the settings")
        return host, port

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses to connect to, resolved once; every one of them is checked.

        Raises:
            AddressRefused: one of them is not a public address, and `host` is not allowed by name.
            OSError: the name does not resolve.
        """
        found = list(dict.fromkeys(await (self.resolve or system_resolver)(host, port)))
        if not found:
            raise OSError(f"{host} has no address")
        named = host in self.allow_hosts or f"{host}:{port}" in self.allow_hosts
        if not named and not all(is_public(address) for address in found):
            raise AddressRefused(NOT_ALLOWED)  # which address it was is not the model's business
        return found


async def system_resolver(host: str, port: int) -> list[str]:
    """Return the addresses the system gives for `host`, IPv4 first: most servers here have it."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    ordered = sorted(found, key=lambda one: one[0] != socket.AF_INET)
    return [str(one[4][0]) for one in ordered]
