"""A tool of the MCP server as a value, and a call of it.

Here: those two, and short forms of schemas. Not here: the tools (`agent_tools.py`, `session_tools.py`,
`branch_tools.py`), checking arguments and limits of who is offered what (`tools.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bowerbird.protocols.mcp_server.ground import McpCaller, Role

Result = dict[str, Any]
Schema = dict[str, Any]
NULLABLE_TEXT: Schema = {"anyOf": [{"type": "string"}, {"type": "null"}]}
"""Some clients know no list of types."""


def _silent(_: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call, its arguments checked.

    Attributes:
        told: takes a line about how far it is; never blocks.
        gone: set when the caller has left and nobody can hear the answer.
    """

    caller: McpCaller
    arguments: Mapping[str, Any]
    told: Callable[[str], None] = _silent
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def text(self, name: str) -> str | None:
        """Return an argument that is a text, None where it was not given."""
        return self.arguments.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """A tool.

    Attributes:
        needs: the role it takes. lands: it changes the user's directory.
        read_only, destructive, idempotent, open_world: hints for clients.
    """

    name: str
    title: str
    description: str
    parameters: Schema
    output: Schema
    run: Callable[[Call], Awaitable[Result]]
    needs: Role = "user"
    lands: bool = False
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False


def parameters(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """Return the schema of a tool's arguments: these and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def output(**properties: Schema) -> Schema:
    """Return the schema of a tool's results; an error has `status` and `message` only."""
    return {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["success", "error"]},
            "message": {"description": "What went wrong, for an error.", **NULLABLE_TEXT},
            **properties,
        },
        "required": ["status"],
    }


def text(description: str, *, most: int = 0, least: int = 0) -> Schema:
    """Return the schema of a text."""
    found: Schema = {"type": "string", "description": description}
    return found | ({"maxLength": most} if most else {}) | ({"minLength": least} if least else {})


THREAD = text("Id of a session, as session_create and session_list give it.", most=200, least=1)
