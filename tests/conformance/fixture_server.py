"""The server that the conformance suite is run against: Bowerbird's own, with the suite's tools (PT-14, PT-15).

The gate, the door at `/mcp`, its sessions and its checks are the product's; only what the door serves is another
registry. Prints its address, and serves until it is ended: `python tests/conformance/fixture_server.py [product]`.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from conformance.fixture_questions import add_asking_tools, add_input_tools
from conformance.fixture_tools import SCHEMA_2020, add_prompts, add_resources, add_tools
from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import (
    EmptyResult,
    ListToolsResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
    Tool,
    UnsubscribeRequestParams,
)
from support.fake_models import FakeModels
from support.live_server import live_server

from bowerbird.app import serving
from bowerbird.app.features.mcp_server import McpMount


def fixture() -> Server[Any]:
    """Return the server with everything that the suite expects."""
    server = MCPServer("bowerbird-conformance", version="1")
    for add in (add_tools, add_resources, add_prompts, add_asking_tools, add_input_tools):
        add(server)
    low: Server[Any] = vars(server)["_lowlevel_server"]
    listed = low.get_request_handler("tools/list")
    assert listed is not None

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        found = await listed.handler(context, params)
        schema = Tool(name="json_schema_2020_12_tool", description="A schema.", input_schema=SCHEMA_2020)
        return found.model_copy(update={"tools": [*found.tools, schema]})

    async def done(context: Any, params: Any) -> EmptyResult:
        return EmptyResult()

    low.add_request_handler("tools/list", listed.params_type, list_tools)
    low.add_request_handler("logging/setLevel", SetLevelRequestParams, done)
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, done)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, done)
    return low


class Events(EventStore):
    """What was sent, for clients that come back to a stream."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        self._kept.append((stream_id, message))
        return str(len(self._kept))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        at = int(last_event_id)
        if not 0 < at <= len(self._kept):
            return None
        stream_id = self._kept[at - 1][0]
        for number, (stream, message) in enumerate(self._kept[at:], at + 1):
            if stream == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


class FixtureMount(McpMount):
    """The product's mount, serving the fixture."""

    def served(self) -> Server[Any]:
        return fixture()

    def streams(self) -> dict[str, Any]:
        return {"event_store": Events(), "retry_ms": 500}


async def main(*, product: bool) -> None:
    """Serve until the process is ended."""
    if not product:
        serving.McpMount = FixtureMount  # type: ignore[misc]
    with FakeModels() as models, tempfile.TemporaryDirectory() as place:
        async with live_server(Path(place), models) as server:
            print(f"{server.address}/mcp", flush=True)
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(product=sys.argv[1:] == ["product"]))
