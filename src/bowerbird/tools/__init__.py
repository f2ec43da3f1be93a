"""What a model can call: `Tool`, `Toolset`, and one module per family of tools.

Lives here: the contract of a tool, its context and result, the built-in families.
Must not be here: who may call what (`agent/`), settings, the database, and isolation of
processes (`sandbox/`).
"""

from bowerbird.tools.context import ReadTracker, ToolContext
from bowerbird.tools.control import AskUser, CompactNow, Control, EnterPlan, ExitPlan, SwitchModel
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool, as_tool, tool
from bowerbird.tools.toolset import Toolset

__all__ = [
    "AskUser",
    "CompactNow",
    "Control",
    "EnterPlan",
    "ExitPlan",
    "ReadTracker",
    "SwitchModel",
    "Tool",
    "ToolContext",
    "ToolResult",
    "Toolset",
    "as_tool",
    "tool",
]
