"""Clients of our own MCP server: the SDK's, over HTTP and over a process's pipes, in both protocol eras."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from support.live_server import LiveServer
from support.patience import HANG_S

from bowerbird.store.rows.tokens import make_token

Era = Literal["auto", "legacy"]
ERAS: tuple[Era, ...] = ("auto", "legacy")
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
MODERN = {**HEADERS, "MCP-Protocol-Version": "2026-07-28"}


async def token(server: LiveServer, name: str, role: Any = "user", **more: Any) -> dict[str, str]:
    """Make a token and return the header that carries it."""
    _, secret = await server.context.store.write(lambda c: make_token(c, name, role, **more))
    return {"Authorization": f"Bearer {secret}"}


@asynccontextmanager
async def http_client(
    server: LiveServer, era: Era = "auto", headers: dict[str, str] | None = None
) -> AsyncIterator[Client]:
    """Open a client of `/mcp`."""
    async with (
        httpx2.AsyncClient(headers=headers, timeout=HANG_S, trust_env=False) as http,
        Client(streamable_http_client(f"{server.address}/mcp", http_client=http), mode=era) as client,
    ):
        yield client


@asynccontextmanager
async def stdio(
    command: list[str], cwd: str, env: dict[str, str], era: Era = "auto"
) -> AsyncIterator[Client]:
    """Start a server and open a client of it."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=cwd, env=env)
    async with Client(stdio_client(parameters), mode=era) as client:
        yield client


def modern(method: str, **params: Any) -> dict[str, Any]:
    """Return a request of 2026-07-28, which carries all that a session would know."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}
