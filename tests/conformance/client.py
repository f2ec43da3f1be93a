"""The client that the conformance suite is run against: Bowerbird's own connections and sign-ins (PT-14).

`python tests/conformance/client.py ADDRESS`, with the suite's variables in the environment: it connects as a turn
does, lists the tools and calls each. What a person would answer is agreed to.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2
from mcp_types import CreateMessageResult, ElicitResult, Tool
from pydantic import ValidationError

from bowerbird.core.errors import ToolDefinitionError
from bowerbird.protocols.mcp_client.child import Ring
from bowerbird.protocols.mcp_client.connection import Connection, ConnectionLost, Hooks
from bowerbird.protocols.mcp_client.oauth import sign_in
from bowerbird.protocols.mcp_client.schemas import schema_problem
from bowerbird.protocols.mcp_client.spec import OAuthSpec, ServerSpec

CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
ANSWERS: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 5,
    "boolean": True,
    "array": [],
    "object": {},
}


class Agreeing:
    """A person who agrees to everything, and a model that says hello."""

    async def elicit(self, params: Any) -> ElicitResult:
        properties = getattr(params, "requested_schema", {}).get("properties", {})
        return ElicitResult(action="accept", content={key: answer_to(one) for key, one in properties.items()})

    async def sample(self, params: Any) -> CreateMessageResult:
        content: Any = {"type": "text", "text": "hello"}
        return CreateMessageResult(role="assistant", content=content, model="none")


def answer_to(schema: dict[str, Any]) -> Any:
    return schema.get("default", ANSWERS.get(schema.get("type", "string")))


def arguments_of(tool: Tool) -> dict[str, Any]:
    schema = tool.input_schema
    return {key: answer_to(schema["properties"].get(key, {})) for key in schema.get("required", [])}


async def silent(*_: Any) -> None:
    return None


async def agree(address: str) -> None:
    """Follow the way of a browser to the authorization server and back."""
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        await browser.get(address)


async def use(spec: ServerSpec) -> None:
    """Connect, list, call each tool."""
    connection = Connection(spec, Ring(), Hooks(lambda: None))
    try:
        await connection.ready()
        tools = {
            tool.name: tool for tool in await connection.list_tools() if not schema_problem(tool.input_schema)
        }
        wanted = CONTEXT.get("toolCalls") or [
            {"name": name, "arguments": arguments_of(tool)} for name, tool in tools.items()
        ]
        for call in wanted:
            if call["name"] in tools:
                try:
                    await connection.call(call["name"], call.get("arguments", {}), Agreeing(), silent)
                except ValidationError as error:  # a turn is told that the tool failed; other calls go on
                    print(f"{call['name']}: {error}", file=sys.stderr)
    finally:
        await connection.aclose()


async def main(url: str) -> None:
    """Do what the scenario is about."""
    signs_in = os.environ.get("MCP_CONFORMANCE_SCENARIO", "").startswith("auth/")
    with tempfile.TemporaryDirectory() as place:
        oauth = OAuthSpec(
            directory=Path(place),
            client_id=CONTEXT.get("client_id", ""),
            client_secret=CONTEXT.get("client_secret", ""),
        )
        spec = ServerSpec(name="suite", transport="streamable_http", url=url, oauth=oauth)
        if signs_in:
            await sign_in(spec, agree, within_s=20.0)
        await use(spec)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except (ConnectionLost, ToolDefinitionError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
