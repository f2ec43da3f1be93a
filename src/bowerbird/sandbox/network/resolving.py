"""Addresses of a host's name, for the proxy of a sandbox.

Here: what resolves, as the system does it. Not here: which names may be asked for (`egress_policy`).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable

Resolver = Callable[[str, int], Awaitable[list[str]]]


async def system_resolver(host: str, port: int) -> list[str]:
    """Return the addresses of `host`, in the system's order."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
