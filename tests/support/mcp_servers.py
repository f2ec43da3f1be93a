"""Real MCP servers for the client's tests: the SDK's own server over stdio and HTTP, and misbehaving ones.

Run as a program it is the SDK's server on stdio.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    Image,
    MCPServer,
    Resolve,
)
from mcp_types import ToolAnnotations
from pydantic import BaseModel

if not __package__:  # run as a program
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.patience import HANG_S

from bowerbird.protocols.mcp_client import ServerSpec

HERE = Path(__file__)
RAW = HERE.with_name("raw_mcp_server.py")
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000")


class Colour(BaseModel):
    """What is asked."""

    name: str


async def wanted_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


def sdk_server() -> MCPServer:
    """The SDK's server with one tool per thing that a client must handle."""
    server = MCPServer("sdk")

    @server.tool()
    def add(a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    @server.tool(structured_output=False)
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool(structured_output=False)
    def picture() -> list[Any]:
        """Show a picture."""
        return ["a picture:", Image(data=PNG, format="png")]

    @server.tool()
    def broken() -> str:
        """Fail."""
        raise ValueError("it is broken")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)
    def peek() -> str:
        """Look."""
        return "seen"

    @server.tool(structured_output=False)
    async def paint(colour: Annotated[ElicitationResult[Colour], Resolve(wanted_colour)]) -> str:
        """Paint."""
        return f"painted {colour.data.name}" if isinstance(colour, AcceptedElicitation) else "not painted"

    @server.tool(structured_output=False)
    async def grow(ctx: Context[Any, Any]) -> str:
        """Get another tool."""

        def grown() -> str:
            """Is new."""
            return "new"

        server.add_tool(grown, structured_output=False)
        await ctx.notify_tools_changed()
        return "grown"

    return server


def sdk_spec(**options: Any) -> ServerSpec:
    """The SDK's server over stdio."""
    tests, source = HERE.parent.parent, HERE.parent.parent.parent / "src"
    env = {"PYTHONPATH": os.pathsep.join(map(str, (tests, source)))}
    given = {"name": "sdk", "start_timeout_s": 60.0, **options}
    return ServerSpec(transport="stdio", command=sys.executable, args=(str(HERE),), env=env, **given)


def raw_spec(notes: Path, *behaviours: str, **options: Any) -> ServerSpec:
    """The plain server of the older protocol, noting in the file `notes`."""
    given = {"name": "raw", "start_timeout_s": 30.0, "command": sys.executable, **options}
    return ServerSpec(transport="stdio", args=("-I", "-S", str(RAW), str(notes), *behaviours), **given)


def noted(notes: Path, key: str) -> list[Any]:
    """What the plain server noted under `key`, in order."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [entry[key] for line in lines if key in (entry := json.loads(line))]


def is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def until(condition: Callable[[], Any], timeout_s: float = HANG_S) -> None:
    """Wait until `condition` holds."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.01)


@contextmanager
def http_server(server: MCPServer, seen: list[dict[str, str]] | None = None, port: int = 0) -> Iterator[str]:
    """Serve over streamable HTTP on a loopback port; yields the address. `seen` gets request headers."""
    import uvicorn

    inner = server.streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and seen is not None:
            seen.append({k.decode(): v.decode() for k, v in scope["headers"]})
        await inner(scope, receive, send)

    running = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    until(lambda: running.started)
    port = running.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        running.should_exit = True
        thread.join(HANG_S)


if __name__ == "__main__":
    sdk_server().run("stdio")
