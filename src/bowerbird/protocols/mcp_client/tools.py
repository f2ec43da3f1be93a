"""A server's tool as a tool of ours: name, description, class, approval (PT-19, PT-20).

Here: what follows from settings and annotations, and the handler. Not here: whether a call may run
(`agent/permissions.py` decides on what is said here), the call (`calls.py`).
"""

from typing import Any

from mcp_types import Tool as ServerTool
from mcp_types import ToolAnnotations

from bowerbird.core.events import EffectClass
from bowerbird.protocols.mcp_client.calls import Call, Called
from bowerbird.protocols.mcp_client.schemas import plain_schema
from bowerbird.protocols.mcp_client.spec import ServerSpec
from bowerbird.tools.context import ToolContext
from bowerbird.tools.names import mcp_name
from bowerbird.tools.processes.terminal_text import plain
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

DESCRIPTION_CHARS = 2_000
# The call has a clock of its own, which stands still while a person is asked.
_NO_CLOCK_S = 7 * 86_400.0


def effect_of(spec: ServerSpec, annotations: ToolAnnotations | None) -> tuple[EffectClass, bool]:
    """Return a tool's class, and whether repeating a call does no harm.

    Example:
        >>> effect_of(ServerSpec(name="x", transport="stdio", command="x"), None)
        ('outside', False)
    """
    if not spec.trusted or annotations is None:
        return "outside", False  # anyone can annotate anything
    if annotations.read_only_hint:
        return "read", False
    return "outside", bool(annotations.idempotent_hint)


def needs_approval(spec: ServerSpec, tool: str) -> bool | None:
    """Return whether calls ask, None where the class decides."""
    if spec.approval_of(tool) == "allow":
        return False
    return True if spec.asks_expressly(tool) else None


def make_tool(server: Called, tool: ServerTool) -> Tool:
    """Return the tool that a turn offers; its schema was found good (`schemas.schema_problem`)."""
    spec = server.spec
    effect, keyed = effect_of(spec, tool.annotations)

    async def handler(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        return await Call(server, tool.name, context).run(arguments, repeatable=keyed or effect == "read")

    return Tool(
        name=mcp_name(spec.name, tool.name),
        description=spec.masked(_description(spec, tool)),
        input_schema=plain_schema(tool.input_schema),
        handler=handler,
        effect=effect,
        timeout_s=_NO_CLOCK_S,
        needs_approval=needs_approval(spec, tool.name),
        keyed=keyed,
        foreign=True,
    )


def _description(spec: ServerSpec, tool: ServerTool) -> str:
    """Return what the model is told; it is the server's word, so it is said whose it is."""
    said = plain(tool.description or tool.title or "") or tool.name
    text = f"[MCP server {spec.name}] {said}"
    return text if len(text) <= DESCRIPTION_CHARS else text[: DESCRIPTION_CHARS - 1] + "…"
