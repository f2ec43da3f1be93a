"""What a reverse proxy says of those it speaks for (`server.trusted_proxies`).

Here: whom the settings trust, and taking the client's address and scheme from their headers. Not here:
what follows from an address (`gate.py`, `rates.py`). Headers of anybody else are not read.
"""

import ipaddress
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class Networks:
    """Addresses and networks; `address in networks`.

    Example:
        >>> "10.1.2.3" in Networks(["10.0.0.0/8"]), "::ffff:10.1.2.3" in Networks(["10.0.0.0/8"])
        (True, True)
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._networks = tuple(ipaddress.ip_network(entry, strict=False) for entry in entries)
        self._has = lru_cache(maxsize=4096)(self._look)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, address: object) -> bool:
        return isinstance(address, str) and bool(self._networks) and len(address) <= 64 and self._has(address)

    def _look(self, address: str) -> bool:
        try:
            ip = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        return any(ip in network for network in self._networks if network.version == ip.version)


class Forwarded:
    """ASGI: the client that a trusted proxy names stands in the scope in place of the proxy.

    `scope["state"]["proxied"]` tells what lies behind that a trusted proxy passed this on.
    """

    def __init__(self, app: "ASGIApp", trusted: Iterable[str]) -> None:
        entries = list(trusted)
        self._app = app
        self._trusted = Networks(entries)
        self._named = ProxyHeadersMiddleware(cast(Any, app), entries)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        client = scope.get("client") if scope["type"] in ("http", "websocket") else None
        if client is None or client[0] not in self._trusted:
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["proxied"] = True
        named = cast(Any, self._named)
        await named(scope, receive, send)
