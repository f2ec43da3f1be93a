"""The tool `send_file`: a file of the branch for the chat that a turn belongs to (AS-24).

Here: the tool, and the row of the outbox that it leaves. Not here: delivering (`delivering.py`), limits of a
service (each channel's own).
"""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError
from bowerbird.sessions.delivery.messages import rows_of
from bowerbird.sessions.turn_maker import TurnContext
from bowerbird.store.rows.outbox import insert_parcels
from bowerbird.tools.context import ToolContext
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

LARGEST = 50_000_000
CAPTION_CHARS = 1_000


def file_tool(turn: TurnContext, write: Callable[..., Any]) -> Tool:
    """Return the tool for one turn.

    Args:
        write: `Store.write`, where an outcome is not kept together with its change.
    """

    async def send_file(path: str, context: ToolContext, caption: str = "") -> ToolResult:
        """Send a file of this workspace to the person in this chat.

        Args:
            path: The file.
            caption: A line below it.
        """
        found = await _stat(turn, path)
        if found is None or found.get("type") != "file":
            return ToolResult.error(f"File not found: {path}")
        if int(found["size"]) > LARGEST:
            return ToolResult.error(f"{path} has more than {LARGEST // 1_000_000} MB; a chat takes no more.")
        content = {"path": path, "caption": caption[:CAPTION_CHARS]}
        rows = rows_of(turn.session, turn.turn, f"file.{context.call}", [content])

        def change(connection: Connection) -> ToolResult:
            insert_parcels(connection, rows)
            return ToolResult(f"{path} is on its way to the chat.")

        if context.change is not None:
            return await context.change(change)
        return await write(change)

    return Tool(send_file, effect="session")


async def _stat(turn: TurnContext, path: str) -> Mapping[str, Any] | None:
    try:
        return await turn.branch.stat(path)
    except BowerbirdError:  # outside of the workspace, hidden, a loop of links: nothing of it is there
        return None
