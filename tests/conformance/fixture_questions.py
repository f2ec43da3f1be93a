"""Tools of the conformance suite that ask back: in the older era by requests, in the newer one by results (PT-15).

Here: those. Not here: tools that answer at once (`fixture_tools.py`).
"""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    GetPromptResult,
    InputRequiredResult,
    ListRootsRequest,
    PromptMessage,
    SamplingMessage,
    TextContent,
)

Answer = CallToolResult | InputRequiredResult
OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": f"value{n}", "title": f"{word} Option"}
    for n, word in ((1, "First"), (2, "Second"), (3, "Third"))
]
DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def form(message: str, **properties: dict[str, Any]) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(text: str, most: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=most))


def said(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


NAME = {"type": "string"}
CONFIRM = form("Please confirm", ok={"type": "boolean"})


def add_asking_tools(server: MCPServer) -> None:
    """Add the tools that send requests of their own, for clients of 2025-11-25."""

    @server.tool(structured_output=False)
    async def test_sampling(prompt: str, ctx: Context) -> CallToolResult:
        """Ask the client's model."""
        message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        result = await ctx.session.create_message([message], max_tokens=100)  # pyright: ignore[reportDeprecated]
        return said(f"LLM response: {getattr(result.content, 'text', '')}")

    async def asked(ctx: Context, message: str, properties: dict[str, Any]) -> CallToolResult:
        schema = {"type": "object", "properties": properties, "required": []}
        result = await ctx.session.elicit_form(
            message, schema, related_request_id=ctx.request_context.request_id
        )
        return said(f"action={result.action}, content={result.content}")

    @server.tool(structured_output=False)
    async def test_elicitation(message: str, ctx: Context) -> CallToolResult:
        """Ask the person."""
        return await asked(ctx, message, {"username": NAME, "email": NAME})

    @server.tool(structured_output=False)
    async def test_elicitation_sep1034_defaults(ctx: Context) -> CallToolResult:
        """Ask with defaults."""
        return await asked(ctx, "Please review and update the form fields with defaults", DEFAULTS)

    @server.tool(structured_output=False)
    async def test_elicitation_sep1330_enums(ctx: Context) -> CallToolResult:
        """Ask with choices."""
        return await asked(ctx, "Please select options from the enum fields", ENUMS)


def add_input_tools(server: MCPServer) -> None:
    """Add the tools whose result asks for input, for clients of 2026-07-28."""

    def once(name: str, questions: dict[str, Any], state: str | None = None) -> None:
        async def ask(ctx: Context) -> Answer:
            given = ctx.input_responses or {}
            if set(questions) <= set(given) and (state is None or ctx.request_state == state):
                return said(f"state-ok, heard: {', '.join(str(given[key]) for key in questions)}")
            return InputRequiredResult(input_requests=questions, request_state=state)

        server.tool(name, description="Ask, and answer when asked again.", structured_output=False)(ask)

    prefix = "test_input_required_result_"
    who = form("What is your name?", name=NAME)
    once(prefix + "elicitation", {"user_name": who})
    once(prefix + "sampling", {"capital_question": sample("What is the capital of France?", 100)})
    once(prefix + "list_roots", {"client_roots": ListRootsRequest()})
    once(prefix + "request_state", {"confirm": CONFIRM}, "one")
    once(prefix + "tampered_state", {"confirm": CONFIRM}, "sealed")
    three = {
        "user_name": who,
        "greeting": sample("Generate a greeting", 50),
        "client_roots": ListRootsRequest(),
    }
    once(prefix + "multiple_inputs", three, "three")
    once("test_streaming_elicitation", {"confirm": CONFIRM})

    @server.tool(prefix + "multi_round", structured_output=False)
    async def rounds(ctx: Context) -> Answer:
        """Ask twice."""
        given = ctx.input_responses or {}
        if ctx.request_state == "second" and "step2" in given:
            return said("all steps answered")
        if ctx.request_state == "first" and "step1" in given:
            color = form("Step 2: What is your favorite color?", color=NAME)
            return InputRequiredResult(input_requests={"step2": color}, request_state="second")
        name = form("Step 1: What is your name?", name=NAME)
        return InputRequiredResult(input_requests={"step1": name}, request_state="first")

    @server.tool(prefix + "capabilities", structured_output=False)
    async def as_able(ctx: Context) -> Answer:
        """Ask for what the client can do only."""
        able = ctx.client_capabilities
        every: dict[str, Any] = {
            "person": who if able and able.elicitation else None,
            "model": sample("Say something", 10) if able and able.sampling else None,
        }
        wanted = {key: request for key, request in every.items() if request is not None}
        if not wanted or set(wanted) <= set(ctx.input_responses or {}):
            return said("nothing more to ask")
        return InputRequiredResult(input_requests=wanted)

    @server.tool(structured_output=False)
    async def test_missing_capability(ctx: Context) -> CallToolResult:
        """Refuse a client that cannot sample."""
        able = ctx.client_capabilities
        if able is None or able.sampling is None:
            needed = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "this tool needs sampling", needed)
        return said("able")

    @server.prompt(prefix + "prompt")
    async def prompt(ctx: Context) -> GetPromptResult | InputRequiredResult:
        """Ask before the prompt."""
        given = ctx.input_responses or {}
        if "user_context" not in given:
            question = form("What context should the prompt use?", context=NAME)
            return InputRequiredResult(input_requests={"user_context": question})
        content = TextContent(type="text", text=f"With {given['user_context']}")
        return GetPromptResult(messages=[PromptMessage(role="user", content=content)])
