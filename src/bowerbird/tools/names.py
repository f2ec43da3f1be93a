"""Names of tools: the pattern, those Bowerbird keeps for itself, and the safe ones.

Here: TO-4, TO-10 and TO-49 as data, for every built-in of the tools chapter, offered in
this run or not: a name that means one thing in one run must not mean another in the
next. Not here: the tools.
"""

import hashlib
import re
from collections.abc import Container

from bowerbird.core.errors import ToolDefinitionError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MAX_NAME = 64

BUILTIN_ALIASES: dict[str, str] = {
    "read_file_range": "read_file",
    "glob": "list_files",
    "grep": "search_files",
    "search_code": "search_files",
    "execute": "bash",
    "shell": "bash",
    "run_command": "bash",
    "write_todos": "todo_write",
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTIN_NAMES = _words("""
    read_file list_files ls search_files write_file edit_file delete_file move_file show_changes
    apply_patch list_symbols find_references bash run_python_code run_python_file run_python
    background_run check_background cancel_background think list_skills read_skill compact
    enter_plan_mode exit_plan_mode ask_user task_create task_get task_update task_list todo_write
    todo_add todo_complete todo_list task spawn_subagents merge_subagent discard_subagent
    read_subagent run_tournament spawn_teammate list_teammates send_message broadcast read_inbox
    shutdown_request check_protocol plan_review web_search web_fetch schedule_task list_tasks
    cancel_task host_execute switch_model execute_agent list_agents get_agent_memory
""")
SAFE_TOOLS = _words("""
    think read_file list_files ls search_files show_changes list_symbols find_references list_skills
    read_skill todo_list task_list task_get check_background read_inbox list_teammates check_protocol
    read_subagent compact list_tasks enter_plan_mode exit_plan_mode ask_user
""")

FULL_ONLY = _words("""
    ls show_changes list_symbols find_references background_run cancel_background
    think list_skills compact enter_plan_mode todo_add todo_complete todo_list spawn_subagents
    merge_subagent discard_subagent read_subagent run_tournament get_agent_memory
""")
"""What only `full` offers: another tool does it too. It runs when it is called all the same."""
_BOARD = _words("task_create task_get task_update task_list")
_BASH_DOES = _words("run_python run_python_code run_python_file delete_file move_file")


def offered_by_default(name: str, there: Container[str], *, planning: bool) -> bool:
    """Whether `default` offers the tool `name`; tools that are not built in are always offered.

    Args:
        there: names of all tools of the turn. planning: it began in plan mode.

    Example:
        >>> offered_by_default("run_python", ("bash", "run_python"), planning=False)
        False
    """
    if name in _BASH_DOES:
        return "bash" not in there
    if name in _BOARD:
        return "spawn_teammate" in there
    return planning if name == "exit_plan_mode" else name not in FULL_ONLY


def check_name(name: str) -> str:
    """Return `name` when a tool may have it; raises ToolDefinitionError naming it otherwise."""
    if not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"tool name {name!r} is not allowed: a letter, then up to 63 letters, digits, '_' or '-'"
        )
    return name


def builtin_owner(name: str) -> str | None:
    """Return the built-in that `name` means, by name or alias; None for a free name."""
    return name if name in BUILTIN_NAMES else BUILTIN_ALIASES.get(name)


def mcp_name(server: str, tool: str) -> str:
    """Return `mcp__{server}__{tool}`, cut to 64 characters with a hash of the whole.

    Example:
        >>> mcp_name("git", "log")
        'mcp__git__log'
    """
    whole = f"mcp__{server}__{tool}"
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", whole)
    if clean == whole and len(whole) <= MAX_NAME:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{clean[: MAX_NAME - 9]}_{digest}"
