"""What the conformance suite expects a server to have: tools, resources and prompts of its own (PT-15).

Here: those that answer at once. Not here: those that ask back (`fixture_questions.py`), the server. They are in no
product build.
"""

import asyncio
import json
from base64 import b64decode
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    AudioContent,
    CallToolResult,
    Completion,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="
PAUSE_S = 0.05
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, text: str, kind: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=kind, text=text)
    )


def add_tools(server: MCPServer) -> None:
    """Add the tools that answer at once."""

    @server.tool()
    def test_simple_text() -> str:
        """Answer with text."""
        return "This is a simple text response for testing."

    @server.tool(structured_output=False)
    def test_image_content() -> ImageContent:
        """Answer with a picture."""
        return image()

    @server.tool(structured_output=False)
    def test_audio_content() -> AudioContent:
        """Answer with sound."""
        return AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")

    @server.tool(structured_output=False)
    def test_embedded_resource() -> EmbeddedResource:
        """Answer with a resource."""
        return embedded("test://embedded-resource", "This is an embedded resource content.")

    @server.tool(structured_output=False)
    def test_multiple_content_types() -> list[Any]:
        """Answer with three kinds."""
        text = TextContent(type="text", text="Multiple content types test:")
        data = json.dumps({"test": "data", "value": 123})
        return [text, image(), embedded("test://mixed-content-resource", data, "application/json")]

    @server.tool()
    def test_error_handling() -> str:
        """Fail."""
        raise RuntimeError("This tool intentionally returns an error for testing")

    @server.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        """Tell how far it is."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100, f"Completed step {done} of 100")
            await asyncio.sleep(PAUSE_S)
        return "done"

    async def log(ctx: Context) -> str:
        for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.info(line)  # pyright: ignore[reportDeprecated] - the suite asks for it
            await asyncio.sleep(PAUSE_S)
        return "logged"

    server.tool("test_tool_with_logging", description="Log three lines.")(log)
    server.tool("test_logging_tool", description="Log where the request wants it.")(log)

    @server.tool()
    async def test_reconnection(ctx: Context) -> str:
        """Close the stream in the middle of a call."""
        await ctx.close_sse_stream()
        await asyncio.sleep(4 * PAUSE_S)
        return "Reconnection test completed successfully."

    @server.tool()
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Tell those who listen that tools changed."""
        await ctx.notify_tools_changed()
        return "told"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context) -> str:
        """Tell those who listen that prompts changed."""
        await ctx.notify_prompts_changed()
        return "told"

    @server.tool(structured_output=False)
    def test_headers(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
    ) -> CallToolResult:
        """Take an argument that a header repeats."""
        return CallToolResult(content=[TextContent(type="text", text=region)])


def add_resources(server: MCPServer) -> None:
    """Add the resources."""

    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A text."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """A picture."""
        return b64decode(PIXEL)

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def of_template(id: str) -> str:  # noqa: A002 - the suite's name
        """One of many."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        """One that can be subscribed to."""
        return "Watched resource content"


def add_prompts(server: MCPServer) -> None:
    """Add the prompts, and completion of their arguments."""

    @server.prompt()
    def test_simple_prompt() -> str:
        """A prompt."""
        return "This is a simple prompt for testing."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with arguments."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        """A prompt that carries a resource."""
        resource = embedded(resourceUri, "Embedded resource content for testing.")
        return [UserMessage(resource), UserMessage("Please process the embedded resource above.")]

    @server.prompt()
    def test_prompt_with_image() -> list[UserMessage]:
        """A prompt that carries a picture."""
        return [UserMessage(image()), UserMessage("Please analyze the image above.")]

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Completion:
        return Completion(values=["test"], total=1, has_more=False)
