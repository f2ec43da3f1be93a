"""Tools of MCP servers for another program in a sandbox, which gets an address and a token, nothing else.

The servers stay ours: their headers, variables and sign-ins are used out here, and what settings say of their
tools (`allow`, `deny`, `approval`) holds in here too. Nobody can be asked while another program works, so a
tool that would ask is not lent. Here: which tools, and serving them on a socket. Not here: who is lent what
(`app/features/providers.py`), the servers (`server.py`).
"""

import asyncio
import contextlib
import hmac
import secrets
import socket
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.lowlevel.server import Server as Served
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as ServerTool
from starlette.responses import Response

from bowerbird.core.messages import TextBlock
from bowerbird.tools.context import ToolContext

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from bowerbird.protocols.mcp_client.client import McpClient
    from bowerbird.tools.result import ToolResult
    from bowerbird.tools.tool import Tool

MOST_AT_ONCE = 8
MOST_BYTES = 4 << 20
ASKS = "its calls ask first, and nobody can be asked meanwhile (mcp_servers.{server}.approval)"
CHANGES = "it may change something, and this run may not (permission_mode, or a run without review)"


def not_lent(tool: "Tool", server: str, *, may_change: bool) -> str | None:
    """Return why a tool is not lent, None when it is."""
    if tool.needs_approval is True:
        return ASKS.format(server=server)
    if tool.effect == "read":
        return None
    if not may_change:
        return CHANGES
    return None if tool.needs_approval is False else ASKS.format(server=server)


async def lend(client: "McpClient", names: Sequence[str], agent: str, *, may_change: bool) -> "Lent":
    """Return the tools of chosen servers, ready to be served; a server that cannot be reached is left out.

    Args:
        names: of servers. agent: who gets them. may_change: whether that run may change things.
    """
    lent: dict[str, dict[str, Tool]] = {}
    left_out: dict[str, str] = {}

    async def of(name: str) -> None:
        try:
            server = await client.server(name)
        except KeyError:
            left_out[name] = "mcp_servers has no such server, or it runs in a sandbox: those are not lent"
            return
        offered = await server.offered()
        if offered is None:
            left_out[name] = server.failure
        for tool in offered or ():
            own = tool.name.removeprefix(f"mcp__{name}__")
            if (why := not_lent(tool, name, may_change=may_change)) is not None:
                left_out[f"{name}: {own}"] = why
            else:
                lent.setdefault(name, {})[own] = tool

    await asyncio.gather(*(of(name) for name in dict.fromkeys(names)))
    return Lent(dict(sorted(lent.items())), dict(sorted(left_out.items())), agent)


class Lent:
    """Tools that one run is lent; `serve`, then `close`.

    Attributes:
        token: what the program sends. names: of the servers that it has tools of; each is at `/NAME`.
        left_out: server, or server and tool → why it is not lent.
        listed: servers whose tools the program has listed.
    """

    def __init__(
        self, tools: "Mapping[str, Mapping[str, Tool]]", left_out: Mapping[str, str], agent: str
    ) -> None:
        self.token = f"tools-{secrets.token_urlsafe(24)}"
        self.names = tuple(tools)
        self.left_out = left_out
        self.listed: set[str] = set()
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._managers = {
            name: StreamableHTTPSessionManager(
                _served(name, own, agent, self._slots, self.listed),
                json_response=True,
                stateless=True,
                # The token is what admits; the sandbox's loopback is the only way here.
                security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
                max_request_body_size=MOST_BYTES,
            )
            for name, own in tools.items()
        }
        self._closing = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._listening: list[_Quiet] = []

    async def serve(self, listener: socket.socket) -> None:
        """Answer on a bound Unix socket, which is the door's from then on; later on another one, too."""
        if not self._tasks:
            opened = asyncio.Event()
            self._tasks.append(asyncio.create_task(self._own(opened), name="lent tools"))
            await opened.wait()
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            lifespan="off",
            access_log=False,
            log_config=None,
            ws="none",
            proxy_headers=False,
            server_header=False,
        )
        server = _Quiet(config)
        self._listening.append(server)
        self._tasks.append(asyncio.create_task(server.serve([listener]), name="door of lent tools"))

    async def close(self) -> None:
        """Cut every connection; calls that run are cancelled."""
        for server in self._listening:
            server.should_exit = server.force_exit = True
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _own(self, opened: asyncio.Event) -> None:
        async with contextlib.AsyncExitStack() as stack:
            for manager in self._managers.values():
                await stack.enter_async_context(manager.run())
            opened.set()
            await self._closing.wait()

    async def _answer(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        given = dict(scope["headers"]).get(b"authorization", b"").removeprefix(b"Bearer ")
        manager = self._managers.get(scope["path"].strip("/"))
        if not hmac.compare_digest(given, self.token.encode()):
            await Response("these tools are lent to another run", 401)(scope, receive, send)
        elif manager is None:
            await Response("there is no such server", 404)(scope, receive, send)
        else:
            await manager.handle_request(scope, receive, send)


class _Quiet(uvicorn.Server):
    """A server inside of a program: signals are the program's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """See uvicorn."""
        yield


def _served(
    name: str, tools: "Mapping[str, Tool]", agent: str, slots: asyncio.Semaphore, heard: set[str]
) -> Served[Any]:
    async def listed(_: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
        del params
        heard.add(name)
        return ListToolsResult(
            tools=[
                ServerTool(name=own, description=tool.description, input_schema=tool.input_schema)
                for own, tool in tools.items()
            ]
        )

    async def called(_: Any, params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:200]}")
        async with slots:
            found = await tool.call(params.arguments or {}, ToolContext(agent=agent, call=params.name))
        text = TextContent(type="text", text=_text(found))
        return CallToolResult(content=[text], is_error=found.is_error)

    return Served(name, on_list_tools=listed, on_call_tool=called)


def _text(found: "ToolResult") -> str:
    if isinstance(found.content, str):
        return found.content
    return "\n".join(block.text for block in found.content if isinstance(block, TextBlock))
