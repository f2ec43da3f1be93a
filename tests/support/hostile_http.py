"""An MCP server over HTTP that answers one request with what nobody should read; for `async with`.

Here: the plain HTTP of it. Not here: servers over stdio (`raw_mcp_server.py`).
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Answer = Callable[[asyncio.StreamWriter, Any], Awaitable[None]]  # what a call of the tool gets; its id
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
_TOOL = {"name": "go", "description": "Goes.", "inputSchema": {"type": "object", "properties": {}}}
_HELLO = {
    "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "h", "version": "1"}
}  # fmt: skip


def head(kind: str = "application/json", **more: str) -> bytes:
    """The head of an answer that ends with its connection."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n{lines}\r\n".encode()


def result(number: Any, value: bytes) -> bytes:
    """A message with a result that is written out."""
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(number).encode(), value)


@asynccontextmanager
async def hostile_http(answer: Answer, *, clings: bool = False) -> AsyncIterator[str]:
    """Serve a tool `go`, whose calls are answered by `answer`; yields the address.

    Args:
        clings: it has sessions, and never answers the request that ends one.
    """

    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            try:
                while await _answered(reader, writer, answer, clings):
                    pass
            finally:
                writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _answered(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer, clings: bool
) -> bool:
    lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
    if clings and lines[0].startswith(b"delete"):
        await reader.read()
        return False
    more = b"Mcp-Session-Id: s1\r\n" if clings else b""
    message = json.loads(await reader.readexactly(length) or b"{}")
    match message.get("method"):
        case "initialize":
            said = result(message["id"], json.dumps(_HELLO).encode())
        case "tools/list":
            said = result(message["id"], json.dumps({"tools": [_TOOL]}).encode())
        case "tools/call":
            await answer(writer, message["id"])
            return False
        case None:
            writer.write(b"HTTP/1.1 405 Not Here\r\nContent-Length: 0\r\n\r\n")
            return True
        case _:
            writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            return True
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"
        % (more, len(said))
        + said
    )
    return True
