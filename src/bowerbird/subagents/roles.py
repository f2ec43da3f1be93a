"""Types of subagents: which tools each has and what becomes of its changes (DE-14).

Here: the five types, custom ones from settings, what a type makes of its caller's policy. Not here:
the decision on a call (`agent.permissions`), which asks for the role list when the tool runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

import msgspec

from bowerbird.agent.policy import Policy
from bowerbird.core.errors import InvalidArgument

READING = frozenset((
    "read_file", "list_files", "ls", "search_files", "show_changes", "list_symbols", "find_references",
    "list_skills", "read_skill",
))  # fmt: skip
LOOKING = READING | {"bash", "think"}
RESEARCHING = LOOKING | {"web_search", "web_fetch", "write_file"}
# Nobody answers a subagent's questions but approvals, and its caller's plan is not its own.
NEVER = frozenset((
    "ask_user", "enter_plan_mode", "exit_plan_mode", "spawn_teammate", "list_teammates", "send_message",
    "read_inbox", "broadcast", "shutdown_request", "check_protocol", "plan_review",
))  # fmt: skip


class AgentType(msgspec.Struct, frozen=True):
    """What a subagent may do.

    Args:
        tools: names of its only tools, None = all of its caller's.
        changes: `merge` into the caller's branch when a `task` completed, or `drop`.
        instructions: in place of the usual ones, "" = those. model: "" = as its caller's subagents.
    """

    name: str
    description: str
    tools: frozenset[str] | None = None
    changes: Literal["merge", "drop"] = "merge"
    instructions: str = ""
    model: str = ""

    def policy(self, caller: Policy) -> Policy:
        """Return what a subagent of this type may do under its caller's policy.

        Its start was approved, so approvals do not ask for what stays on its fork.
        """
        role = self.tools if caller.role is None else caller.role & (self.tools or caller.role)
        return replace(caller, role=role, enable_approval=False)


BUILT_IN = (
    AgentType("general", "any task, with all tools"),
    AgentType("code", "writing and changing code, with all tools"),
    AgentType("explore", "finding things out; its changes are thrown away", LOOKING, "drop"),
    AgentType("plan", "working out a plan; its changes are thrown away", LOOKING, "drop"),
    AgentType("research", "looking things up, on the web too, and writing them down", RESEARCHING),
)


def agent_types(custom: Iterable[AgentType] = ()) -> Mapping[str, AgentType]:
    """Return all types by name; a custom one may not have a built-in's name.

    Raises:
        InvalidArgument: a name is taken; it is named.
    """
    known = {kind.name: kind for kind in BUILT_IN}
    for kind in custom:
        if kind.name in known:
            raise InvalidArgument(f"there is a type of subagents called {kind.name!r} already; rename yours")
        known[kind.name] = kind
    return known


def guidance(types: Mapping[str, AgentType]) -> str:
    """Return the lines of the system prompt that name the types."""
    lines = [f"- {kind.name}: {kind.description}" for kind in types.values()]
    return "Types of subagents (agent_type):\n" + "\n".join(lines)
