"""Bowerbird: AI agents that work on a branch of your files; nothing lands until you merge it.

Lives here: the names that programs import, each loaded when it is first used. Must not be here: any
code that runs on import.

Example:
    from bowerbird import Agent

    result = await Agent(workdir="project").run("Fix the failing test")
    print(result.branch.unified())
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.agent.delegates import Approver
    from bowerbird.agent.limits import Limits
    from bowerbird.agent.policy import Policy
    from bowerbird.agent.prompt import (
        get_default_instructions,
        get_subagent_instructions,
        get_subagent_tools_guidance,
    )
    from bowerbird.agent.result import AgentEvent, RunDone, RunResult, StepResult
    from bowerbird.api import Agent, ThreadAgent, create_agent
    from bowerbird.core import errors
    from bowerbird.core.events import ApprovalAnswer, ApprovalRequest
    from bowerbird.core.usage import Usage
    from bowerbird.sandbox.shell.allowed import ALLOWED_COMMANDS
    from bowerbird.sandbox.shell.shell_backend import ExecuteResponse, WorkspaceShellBackend
    from bowerbird.tools import Tool, ToolContext, ToolResult, Toolset, tool
    from bowerbird.workspace import (
        Branch,
        Changes,
        Diff,
        FileDiff,
        Hunk,
        Landing,
        LandingEntry,
        LandingPlan,
        MergeConflict,
        MergeResult,
        PlannedPath,
        Snapshot,
        Workspace,
    )

__version__ = "0.1.0"

__all__ = [
    "ALLOWED_COMMANDS",
    "Agent",
    "AgentEvent",
    "ApprovalAnswer",
    "ApprovalRequest",
    "Approver",
    "Branch",
    "Changes",
    "Diff",
    "ExecuteResponse",
    "FileDiff",
    "Hunk",
    "Landing",
    "LandingEntry",
    "LandingPlan",
    "Limits",
    "MergeConflict",
    "MergeResult",
    "PlannedPath",
    "Policy",
    "RunDone",
    "RunResult",
    "Snapshot",
    "StepResult",
    "ThreadAgent",
    "Tool",
    "ToolContext",
    "ToolResult",
    "Toolset",
    "Usage",
    "Workspace",
    "WorkspaceShellBackend",
    "__version__",
    "create_agent",
    "errors",
    "get_default_instructions",
    "get_subagent_instructions",
    "get_subagent_tools_guidance",
    "tool",
]

_HOMES = {
    "Agent": "api",
    "AgentEvent": "agent.result",
    "ALLOWED_COMMANDS": "sandbox.shell.allowed",
    "ApprovalAnswer": "core.events",
    "ApprovalRequest": "core.events",
    "Approver": "agent.delegates",
    "Branch": "workspace",
    "Changes": "workspace",
    "create_agent": "api",
    "Diff": "workspace",
    "ExecuteResponse": "sandbox.shell.shell_backend",
    "FileDiff": "workspace",
    "get_default_instructions": "agent.prompt",
    "get_subagent_instructions": "agent.prompt",
    "get_subagent_tools_guidance": "agent.prompt",
    "Hunk": "workspace",
    "Landing": "workspace",
    "LandingEntry": "workspace",
    "LandingPlan": "workspace",
    "Limits": "agent.limits",
    "MergeConflict": "workspace",
    "MergeResult": "workspace",
    "PlannedPath": "workspace",
    "Policy": "agent.policy",
    "RunDone": "agent.result",
    "RunResult": "agent.result",
    "Snapshot": "workspace",
    "StepResult": "agent.result",
    "ThreadAgent": "api",
    "Tool": "tools",
    "tool": "tools",
    "ToolContext": "tools",
    "ToolResult": "tools",
    "Toolset": "tools",
    "Usage": "core.usage",
    "Workspace": "workspace",
    "WorkspaceShellBackend": "sandbox.shell.shell_backend",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; every class of `errors` is one too."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    errors = import_module(f"{__name__}.core.errors")
    if name == "errors":
        return errors
    found = getattr(errors, name, None)
    if isinstance(found, type) and issubclass(found, Exception):
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
