"""The MCP servers of a process, shared by its sessions (PT-18, PT-24).

Here: all of them at once. Not here: one server (`server.py`), settings (`app/features/mcp.py`).
"""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from bowerbird.agent.turn import Found
from bowerbird.core.extras import missing, require
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_client.spec import ServerSpec

if TYPE_CHECKING:
    from bowerbird.protocols.mcp_client.sandboxed import BranchHome
    from bowerbird.protocols.mcp_client.server import Server
    from bowerbird.tools.tool import Tool

WHAT = "MCP servers"
_PACKAGE = "bowerbird.protocols.mcp_client"


def _unchanged(text: str) -> str:
    return text


class McpClient:
    """Clients of all configured servers; nothing is started before the first turn asks.

    Args:
        specs: servers in the order of their names' first appearance; tools are offered sorted.
        redact: takes secrets out of messages for people and models.
        home: where servers of `sandbox: true` run; without one they are left out.

    Example:
        client = McpClient([ServerSpec(name="files", transport="stdio", command="server-files")])
        found = await client.gather()
        await client.aclose()
    """

    def __init__(
        self,
        specs: Sequence[ServerSpec],
        redact: Callable[[str], str] = _unchanged,
        home: "BranchHome | None" = None,
    ) -> None:
        self.specs = tuple(specs)
        self._home = home
        self._redact = redact
        self._servers: list[Server] | None = None
        self._making = asyncio.Lock()
        self._closed = False

    async def gather(self) -> Found:
        """Return what the servers offer a turn that begins now; see `agent.turn.MoreTools`.

        All are waited for together, each at most its own start timeout; one that is slow or fails is
        left out with a warning and tried again in the background.
        """
        if not self.specs or self._closed:
            return Found()
        lack = missing("mcp", WHAT)
        if lack is not None:
            names = ", ".join(spec.name for spec in self.specs)
            return Found(warnings=(f"left out of this turn: {names}; {lack}",))
        servers = await self._made()
        offers = await asyncio.gather(*(server.offered() for server in servers))
        warnings = [
            f"MCP server {server.spec.name} is left out of this turn: {server.failure}; it is tried again"
            for server, tools in zip(servers, offers, strict=True)
            if tools is None
        ]
        warnings += [warning for server in servers for warning in server.warnings]
        tools = [tool for offered in offers for tool in offered or ()]
        absent = {name: why for server in servers for name, why in server.absent.items()}
        return Found(tuple(sorted(tools, key=lambda tool: tool.name)), absent, tuple(warnings))

    def known(self) -> "tuple[Tool, ...]":
        """Return the tools of the servers that have been started, for lists; none is started for that."""
        tools = [tool for server in self._servers or () for tool in server.known]
        return tuple(sorted(tools, key=lambda tool: tool.name))

    async def server(self, name: str) -> "Server":
        """Return one server, for whoever tests it.

        Raises:
            KeyError: there is none of this name. ExtraMissing: the SDK is not installed.
        """
        require("mcp", WHAT)
        return {server.spec.name: server for server in await self._made()}[name]

    async def aclose(self) -> None:
        """End all connections and started servers, together; may be called more than once."""
        self._closed = True
        if self._servers is not None:
            await asyncio.gather(*(server.aclose() for server in self._servers))

    async def _made(self) -> "list[Server]":
        async with self._making:
            if self._servers is None:
                # Half a second of imports: not on the event loop, not in processes without servers.
                module = await to_thread(import_module, f"{_PACKAGE}.server")
                self._servers = [module.Server(spec, self._redact, self._home) for spec in self.specs]
            return self._servers
