"""The server of the SDK over our tools, resources and prompts, for both protocol eras (PT-7, PT-11, PT-13).

Here: from the SDK's requests to ours and back. Not here: transports (`http.py`, `stdio.py`), what anything
does.
"""

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bowerbird.core.errors import LimitExceeded, UnknownSession
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_server import resources
from bowerbird.protocols.mcp_server.ground import McpCaller, McpGround
from bowerbird.protocols.mcp_server.owned import owned_session
from bowerbird.protocols.mcp_server.session_tools import own_sessions
from bowerbird.protocols.mcp_server.tool import Call, McpTool
from bowerbird.protocols.mcp_server.tools import BadCall, Fault, McpTools

NAME = "bowerbird"
INSTRUCTIONS = (
    "Bowerbird runs agents on a branch of the user's files. Nothing they change reaches those files until it "
    "is landed. execute_agent asks another vendor's agent; session_create and session_send Bowerbird's own."
)
_LEGACY_NOT_FOUND = -32002
_TOLD_EVERY_S = 0.2

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], McpCaller]


def make_server(ground: McpGround, caller_of: CallerOf) -> Server[Any]:
    """Return the server; transports run it.

    Args:
        caller_of: tells from a request who asks.
    """
    doors = _Doors(ground, caller_of)
    return Server(
        NAME,
        version=ground.version,
        title="Bowerbird",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=doors.tools.parameters,
        on_list_tools=doors.list_tools,
        on_call_tool=doors.call_tool,
        on_list_resources=doors.list_resources,
        on_list_resource_templates=doors.list_templates,
        on_read_resource=doors.read_resource,
        on_list_prompts=doors.list_prompts,
        on_get_prompt=doors.get_prompt,
    )


class _Doors:
    def __init__(self, ground: McpGround, caller_of: CallerOf) -> None:
        self._ground = ground
        self._caller_of = caller_of
        self.tools = McpTools(ground)

    # ------------------------------------------------------------ tools

    async def list_tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return the tools that the caller is offered, all at once."""
        return ListToolsResult(tools=[_shown(tool) for tool in self.tools.offered(self._caller_of(context))])

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool; its result is given twice, as data and as the same JSON in a text (PT-1)."""
        gone = gone_of(context)
        async with _telling(context) as told:
            call = Call(self._caller_of(context), params.arguments or {}, told, gone)
            try:
                result = await self.tools.call(params.name, call)
            except BadCall as error:
                raise MCPError(INVALID_PARAMS, str(error)) from None
            except Fault as error:
                raise MCPError(INTERNAL_ERROR, str(error)) from None
        text = (await to_thread(msgspec.json.encode, result)).decode()
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content=result,
            is_error=result["status"] == "error",
        )

    # ------------------------------------------------------------ resources

    async def list_resources(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        """Return a page of the caller's own sessions."""
        after = params.cursor if params is not None else None
        caller = self._caller_of(context)
        try:
            if after is not None:
                await owned_session(self._ground, caller, after)
        except UnknownSession:
            raise MCPError(INVALID_PARAMS, "the cursor is not one of ours") from None
        rows, more = await own_sessions(self._ground, caller, after)
        found = [
            Resource(
                uri=resources.session_uri(row["thread_id"]),
                name=row["thread_id"],
                title=row["title"] or "Untitled session",
                mime_type="application/json",
            )
            for row in rows
        ]
        return ListResourcesResult(resources=found, next_cursor=rows[-1]["thread_id"] if more else None)

    async def list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Return the forms of addresses."""
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=resources.SESSION_TEMPLATE,
                    name="session",
                    title="A session with its newest messages",
                    mime_type="application/json",
                ),
                ResourceTemplate(
                    uri_template=resources.FILE_TEMPLATE,
                    name="file",
                    title="A file as a session's branch has it, at most 1 MiB",
                ),
            ]
        )

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return a session or a file."""
        uri = str(params.uri)
        try:
            found = await resources.read(self._ground, self._caller_of(context), uri)
        except resources.UnknownResource:
            modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = INVALID_PARAMS if modern else _LEGACY_NOT_FOUND
            raise MCPError(code, f"Resource not found: {uri[:500]}", {"uri": uri}) from None
        except LimitExceeded as error:
            raise MCPError(INVALID_PARAMS, str(error), {"uri": uri}) from None
        if found.text is not None:
            content: Any = TextResourceContents(uri=uri, mime_type=found.mime_type, text=found.text)
        else:
            blob = base64.b64encode(found.data).decode()
            content = BlobResourceContents(uri=uri, mime_type=found.mime_type, blob=blob)
        return ReadResourceResult(contents=[content])

    # ------------------------------------------------------------ prompts

    async def list_prompts(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListPromptsResult:
        """Return the presets."""
        presets = await to_thread(self._ground.presets)
        return ListPromptsResult(prompts=[Prompt(name=p.name, description=p.description) for p in presets])

    async def get_prompt(self, context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Return a preset's instructions as a message."""
        presets = await to_thread(self._ground.presets)
        found = next((preset for preset in presets if preset.name == params.name), None)
        if found is None:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name[:200]}")
        message = PromptMessage(role="user", content=TextContent(type="text", text=found.text))
        return GetPromptResult(description=found.description, messages=[message])


def gone_of(context: Context) -> asyncio.Event:
    """Return what is set when whoever sent the request has left; never set where no transport tells."""
    scope: Any = getattr(context.request, "scope", None)
    found = scope["state"].get("mcp_gone") if scope is not None else None
    return found if found is not None else asyncio.Event()


def _shown(tool: McpTool) -> Tool:
    hints = ToolAnnotations(
        title=tool.title,
        read_only_hint=tool.read_only,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.idempotent,
        open_world_hint=tool.open_world,
    )
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=tool.output,
        annotations=hints,
    )


@asynccontextmanager
async def _telling(context: Context) -> AsyncGenerator[Callable[[str], None]]:
    """Give what takes lines about progress and sends the newest now and then, if the caller wants them."""
    if not context.meta or context.meta.get("progress_token") is None:
        yield lambda _: None
        return
    newest: list[str] = []
    heard = asyncio.Event()

    def tell(line: str) -> None:
        newest[:] = [line]
        heard.set()

    async def send() -> None:
        count = 0
        while True:
            await heard.wait()
            heard.clear()
            count += 1
            await context.session.report_progress(float(count), message=newest[0])
            await asyncio.sleep(_TOLD_EVERY_S)

    sending = asyncio.create_task(send(), name="mcp progress")
    try:
        yield tell
    finally:
        sending.cancel()
        with contextlib.suppress(
            asyncio.CancelledError, Exception
        ):  # who cannot hear it is told by the answer
            await sending
