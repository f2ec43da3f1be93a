"""What every built-in tool may do in every mode, written down from the chapters, not from the code.

Here: one row per tool (TO-11 … TO-49, AG-64) and the decision that follows from AG-60. A built-in tool that
has no row here fails `tests/app/test_no_bypass.py`: give it one before it is offered to anybody.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Effect = Literal["read", "plan", "session", "branch", "outside"]
Expected = Literal["run", "ask", "deny"]


@dataclass(frozen=True)
class Row:
    """A tool's class, whether it is of the safe set, whether plan mode has it though its class does not.

    `asks`: in a session this call asks although its class does not.
    `call` holds arguments that fit its schema (None: nothing offers it yet); `aliases` those of each alias.
    """

    effect: Effect
    call: dict[str, Any] | None = None
    safe: bool = False
    plan: bool = False
    aliases: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    asks: bool = False


_LINE = {"command": "echo ran >> ran.txt"}

ROWS: dict[str, Row] = {
    # files (TO-11 … TO-21)
    "read_file": Row("read", {"path": "a.txt"}, True, aliases={"read_file_range": {"path": "a.txt", "start_line": 1, "end_line": 1}}),
    "list_files": Row("read", {}, True, aliases={"glob": {"pattern": "*"}}),
    "ls": Row("read", {}, True),
    "search_files": Row("read", {"pattern": "one"}, True, aliases={"grep": {"pattern": "one"}, "search_code": {"query": "one"}}),
    "write_file": Row("branch", {"path": "written.txt", "content": "x"}),
    "edit_file": Row("branch", {"path": "a.txt", "old": "one", "new": "1"}),
    "delete_file": Row("branch", {"path": "b.txt"}),
    "move_file": Row("branch", {"src": "c.txt", "dst": "d.txt"}),
    "show_changes": Row("read", {}, True),
    "apply_patch": Row("branch", {"patch": "--- /dev/null\n+++ b/patched.txt\n@@ -0,0 +1 @@\n+x\n"}),
    "list_symbols": Row("read", {"path": "a.py"}, True),
    "find_references": Row("read", {"symbol": "one"}, True),
    # processes (TO-23 … TO-26)
    "bash": Row("branch", _LINE, aliases={"execute": _LINE, "shell": _LINE, "run_command": _LINE}),
    "run_python_code": Row("branch", {"code": "1"}),
    "run_python_file": Row("branch", {"path": "a.py"}),
    "run_python": Row("branch", {"code": "open('python.txt', 'w').close()"}),
    "background_run": Row("branch", {"command": "true"}),
    "check_background": Row("read", {}, True),
    "cancel_background": Row("branch", {"task_id": "none"}),
    # thinking, skills, plan, questions (TO-31 … TO-38)
    "think": Row("read", {"thought": "hm"}, True),
    "list_skills": Row("read", {}, True),
    "read_skill": Row("read", {"skill": "none"}, True),
    "compact": Row("plan", {}, True),
    "enter_plan_mode": Row("plan", {}, True),
    "exit_plan_mode": Row("plan", {"plan": "do it"}, True),
    "ask_user": Row("plan", {"question": "well?"}, True),
    "task_create": Row("session", {"subject": "x"}, plan=True),
    "task_get": Row("read", {"taskId": 1}, True),
    "task_update": Row("session", {"taskId": 1, "subject": "y"}, plan=True),
    "task_list": Row("read", {}, True),
    "todo_write": Row("session", {"items": []}, aliases={"write_todos": {"todos": []}}),
    "todo_add": Row("session", {"content": "x", "activeForm": "xing"}),
    "todo_complete": Row("session", {"content": "x"}),
    "todo_list": Row("read", {}, True),
    "task": Row("branch", {"description": "x", "prompt": "", "agent_type": "explore"}, plan=True),
    "spawn_subagents": Row("branch", {"tasks": []}),
    "merge_subagent": Row("branch", {"handle": "none"}),
    "discard_subagent": Row("branch", {"handle": "none"}),
    "read_subagent": Row("read", {"handle": "none"}, True),
    "run_tournament": Row("branch", {"task": "x", "attempts": 1}),
    "spawn_teammate": Row("session"),
    "list_teammates": Row("read", safe=True),
    "send_message": Row("session"),
    "broadcast": Row("session"),
    "read_inbox": Row("session", safe=True),
    "shutdown_request": Row("session"),
    "check_protocol": Row("read", safe=True),
    "plan_review": Row("session"),
    # web (TO-39, TO-40): refused before any connection is made, but only once they run
    "web_search": Row("read", {"query": " "}),
    "web_fetch": Row("read", {"url": "http://127.0.0.1:9/"}, asks=True),  # a host that nobody named (D-10)
    # assistant (TO-43 … TO-48)
    "schedule_task": Row("session"),
    "list_tasks": Row("read", safe=True),
    "cancel_task": Row("session"),
    "host_execute": Row("outside"),
    "switch_model": Row("session", {"tier": "standard"}),
    "execute_agent": Row("outside"),
    "list_agents": Row("read"),
    "get_agent_memory": Row("read"),
}  # fmt: skip


def expected(row: Row, *, plan: bool, approval: bool = False, rule: str | None = None) -> Expected:
    """Return what AG-60 says of a call: plan mode, then rules, then `enable_approval`, then the class."""
    if plan and row.effect not in ("read", "plan") and not row.plan:
        return "deny"
    if rule is not None:
        return {"allow": "run", "ask": "ask", "deny": "deny"}[rule]  # type: ignore[return-value]  # three words
    if approval:
        return "run" if row.safe else "ask"
    if row.asks:
        return "ask"
    return "ask" if row.effect == "outside" else "run"


def all_calls(only: set[str] | None = None) -> list[dict[str, Any]]:
    """Return one call of each tool that has arguments, then one by each alias, as a model makes them."""
    chosen = {name: row for name, row in ROWS.items() if only is None or name in only}
    calls = [{"name": name, "input": row.call} for name, row in chosen.items() if row.call is not None]
    calls += [
        {"name": alias, "input": arguments}
        for row in chosen.values()
        for alias, arguments in row.aliases.items()
    ]
    # What it switches holds from the next call on: it comes last.
    return sorted(calls, key=lambda call: call["name"] == "enter_plan_mode")
