"""The tools of subagents and tournaments (DE-5 … DE-9, DE-21, TO-38).

Here: what a model asks for. Not here: whoever does it (`delegation.py`, `bowerbird.subagents`), permission.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from bowerbird.core.errors import ToolError
from bowerbird.tools.context import ToolContext
from bowerbird.tools.result import ToolResult
from bowerbird.tools.together.delegation import Subagents
from bowerbird.tools.tool import Tool

LONGEST_S = 86_400.0  # children, checks and queues have limits of their own
SUBAGENT_TOOLS = (
    "spawn_subagents", "merge_subagent", "discard_subagent", "read_subagent", "task", "run_tournament",
)  # fmt: skip


async def spawn_subagents(tasks: list[str | dict[str, Any]], context: ToolContext) -> dict[str, Any]:
    """Run subagents at the same time, each on its own fork of your branch, and wait for all of them.

    A subagent sees the files, not this conversation: say in its task everything it needs. Nothing of its
    fork reaches your branch by itself: merge_subagent takes it over. Only files are merged; variables of
    the Python interpreter are not.

    Args:
        tasks: One entry per subagent: its task as text, or {"task": …, "agent_type"?: …, "model_tier"?: …}.
    """
    return await _subagents(context).spawn(tasks)


async def merge_subagent(
    handle: str, context: ToolContext, paths: list[str] | None = None, force: bool = False
) -> dict[str, Any]:
    """Merge what a subagent changed into your branch; the rest can be merged later.

    Conflicts are left as they are and listed. Files are merged, Python variables are not.

    Args:
        handle: Handle of the subagent, such as subagent_0.
        paths: Only these files or directories; null for all.
        force: Take the subagent's version where both changed the same lines.
    """
    return await _subagents(context).merge(handle, paths, force)


async def discard_subagent(handle: str, context: ToolContext) -> dict[str, Any]:
    """Drop a subagent and everything on its fork; one that runs is stopped first.

    Args:
        handle: Handle of the subagent.
    """
    return await _subagents(context).discard(handle)


async def read_subagent(handle: str, context: ToolContext, path: str = "") -> ToolResult:
    """Look at what a subagent changed on its fork, before merging it.

    Args:
        handle: Handle of the subagent.
        path: A file, to see the fork's version of it; empty for all changes as a diff.
    """
    return _readable(await _subagents(context).read(handle, path))


async def task(description: str, prompt: str, agent_type: str, context: ToolContext) -> ToolResult:
    """Let one subagent of a type do a task and return its final answer.

    Changes of general, code and research subagents are merged into your branch when they complete; those
    of explore and plan subagents are thrown away. Only files are merged, not Python variables.

    Args:
        description: The task in three to five words.
        prompt: Everything the subagent needs to know: it sees nothing of this conversation.
        agent_type: general, code, explore, plan, research, or a type that the instructions name.
    """
    return _readable(await _subagents(context).task(description, prompt, agent_type))


async def run_tournament(
    task: str,
    context: ToolContext,
    attempts: int | None = None,
    checks: list[str] = [],  # noqa: B006 - never changed; the schema shows []
    models: list[str] = [],  # noqa: B006 - likewise
    merge: Literal["none", "best"] = "none",
    agents: list[str] = [],  # noqa: B006 - likewise
) -> dict[str, Any]:
    """Let several subagents attempt the same task and rank them by shell commands that check the result.

    Args:
        task: The task, with everything an attempt needs to know.
        attempts: How many, 2 to 8; null for 3, or for one of each agent.
        checks: Shell commands that exit with 0 on success, such as "pytest -q"; none for the configured ones.
        models: Models that attempts use in turn; none for the usual one.
        merge: best merges the winner if it passed; none leaves all handles to merge_subagent.
        agents: Who attempts: other vendors' agents, as list_agents names them, and self; none for you alone.
    """
    return await _subagents(context).tournament(task, attempts, checks, models, merge, agents)


def subagent_tools(names: Sequence[str] = SUBAGENT_TOOLS, *, others: bool = False) -> list[Tool]:
    """Return the tools of these names, in their fixed order.

    Args:
        others: whether models are told that other vendors' agents can attempt.
    """
    return [tool for tool in _all_tools(others) if tool.name in names]


@cache
def _all_tools(others: bool) -> tuple[Tool, ...]:
    # Tools keep nothing of their calls, and making them takes longer than the rest of preparing a turn.
    branch: dict[str, Any] = {"effect": "branch", "timeout_s": LONGEST_S}
    return (
        Tool(spawn_subagents, **branch),
        Tool(merge_subagent, serial="merge_subagent", **branch),
        Tool(discard_subagent, **branch),
        Tool(read_subagent, effect="read"),
        Tool(task, parameters={"subagent_type": "agent_type"}, **branch),
        Tool(run_tournament, hidden=frozenset() if others else frozenset({"agents"}), **branch),
    )


def _subagents(context: ToolContext) -> Subagents:
    if context.subagents is None:
        raise ToolError("this run cannot have subagents")
    return context.subagents


def _readable(record: Mapping[str, Any]) -> ToolResult:
    """Return a record whose `text` is what the model sees."""
    data = {key: value for key, value in record.items() if key != "text"}
    if "text" not in record:
        return ToolResult.error(str(data["error"]))
    return ToolResult(record["text"], data=data, is_error="error" in data)
