"""Bowerbird: AI agents that work on a branch of your files; nothing reaches your files until you land it.

Lives here: the names that programs import, each loaded when it is first used. Must not be here: any
code that runs on import (but for where modules are looked for).

Example:
    from bowerbird import Agent

    result = await Agent(workdir="project").run("Fix the failing test")
    print(result.branch.unified())
"""

import sys

# `python -m bowerbird` looks for modules in the directory where it is typed first: a stranger's, perhaps.
del sys.path[: int(sys.argv[:1] == ["-m"] and not sys.flags.safe_path)]

from typing import TYPE_CHECKING, Any  # noqa: E402

from bowerbird.core.lazy import lazy  # noqa: E402

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
    from bowerbird.agent.subagent_results import (
        Spawned,
        SubagentDiff,
        SubagentDiscard,
        SubagentFile,
        SubagentMerge,
        SubagentResult,
        Tournament,
        TournamentCheck,
        TournamentRow,
    )
    from bowerbird.api import Agent, ThreadAgent, create_agent
    from bowerbird.core import errors
    from bowerbird.core.events import (
        ApprovalAnswer,
        ApprovalRequest,
        AssistantStep,
        LandingProgress,
        Notice,
        TextLive,
        ThinkingLive,
        ToolIntent,
        ToolOutcome,
        ToolProgress,
        UserStep,
    )
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
    "ALLOWED_COMMANDS", "Agent", "AgentEvent", "ApprovalAnswer", "ApprovalRequest", "Approver",
    "AssistantStep",
    "Branch", "Changes", "Diff", "ExecuteResponse", "FileDiff", "Hunk", "Landing", "LandingEntry",
    "LandingPlan", "LandingProgress", "Limits", "MergeConflict", "MergeResult", "Notice", "PlannedPath",
    "Policy",
    "RunDone", "RunResult", "Snapshot", "Spawned", "StepResult", "SubagentDiff", "SubagentDiscard",
    "SubagentFile", "SubagentMerge", "SubagentResult", "TextLive", "ThinkingLive", "ThreadAgent", "Tool",
    "ToolContext", "ToolIntent", "ToolOutcome", "ToolProgress", "ToolResult",
    "Toolset", "Tournament", "TournamentCheck", "TournamentRow", "Usage", "UserStep", "Workspace",
    "WorkspaceShellBackend", "__version__", "create_agent", "errors", "get_default_instructions",
    "get_subagent_instructions", "get_subagent_tools_guidance", "tool",
]  # fmt: skip

_find, _found = lazy(
    __name__,
    {
        "agent.delegates": "Approver",
        "agent.limits": "Limits",
        "agent.policy": "Policy",
        "agent.prompt": "get_default_instructions get_subagent_instructions get_subagent_tools_guidance",
        "agent.result": "AgentEvent RunDone RunResult StepResult",
        "agent.subagent_results": "Spawned SubagentDiff SubagentDiscard SubagentFile SubagentMerge "
        "SubagentResult Tournament TournamentCheck TournamentRow",
        "api": "Agent create_agent ThreadAgent",
        "core.events": "ApprovalAnswer ApprovalRequest AssistantStep LandingProgress Notice TextLive "
        "ThinkingLive ToolIntent ToolOutcome ToolProgress UserStep",
        "core.usage": "Usage",
        "sandbox.shell.allowed": "ALLOWED_COMMANDS",
        "sandbox.shell.shell_backend": "ExecuteResponse WorkspaceShellBackend",
        "tools": "Tool tool ToolContext ToolResult Toolset",
        "workspace": "Branch Changes Diff FileDiff Hunk Landing LandingEntry LandingPlan MergeConflict "
        "MergeResult PlannedPath Snapshot Workspace",
    },
)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used; every class of `errors` is one too."""
    if name.startswith("_") or name in _found():
        return _find(name)
    from bowerbird.core import errors

    if name == "errors":
        return errors
    error = getattr(errors, name, None)
    return error if isinstance(error, type) and issubclass(error, Exception) else _find(name)


def __dir__() -> list[str]:
    return sorted(__all__)
