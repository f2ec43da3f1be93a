"""The tool `think` (TO-31).

Here: room for a thought, with no effect. Not here: a model's own reasoning (`models/`).
"""

from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool


async def think(thought: str) -> ToolResult:
    """Write down a thought; nothing happens. Use it to plan, and to check results before finishing.

    Args:
        thought: What to think through.
    """
    return ToolResult("ok")


def think_tools() -> list[Tool]:
    """Return `think`."""
    return [Tool(think, effect="read")]
