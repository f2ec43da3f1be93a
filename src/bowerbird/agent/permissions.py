"""May this call run? One pure decision, asked where the tool runs (AG-59 … AG-61, AG-64).

Here: `decide` and how rules match. Not here: who is asked and for how long, what happens to a
denied call (`turn_loop/tool_batch`), the policy's data (`policy`), shell grammar (`shell_words`).
"""

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, TypeVar, cast

import msgspec

from bowerbird.agent.always import SHELL_TOOLS, may_cover, patched_paths, paths_of
from bowerbird.agent.policy import Mode, Policy, Rule
from bowerbird.core.addresses import host_and_port
from bowerbird.core.events import EffectClass
from bowerbird.tools.names import SAFE_TOOLS, offered_by_default
from bowerbird.tools.processes.shell_words import SimpleCommand, read_line

Action = Literal["allow", "ask", "deny"]

PLAN_EXTRA = frozenset(("task_create", "task_update", "exit_plan_mode"))
WHILE_AWAITING = frozenset(("send_message", "read_inbox", "idle"))
PLAN_SUBAGENTS = frozenset(("explore", "plan"))
_TEXTS = ("command", "url", "query", "code", "pattern", "skill", "prompt")


class Judged(Protocol):
    """What the decision needs of a tool; every `Tool` has it."""

    @property
    def name(self) -> str: ...
    @property
    def effect(self) -> EffectClass: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...
    @property
    def needs_approval(self) -> bool | None: ...


J = TypeVar("J", bound=Judged)


class Decision(msgspec.Struct, frozen=True):
    """`allow`, `ask` or `deny`, and why."""

    action: Action
    reason: str


def decide(tool: Judged, arguments: Mapping[str, Any], mode: Mode, policy: Policy) -> Decision:
    """Return whether a call may run.

    Args:
        tool: the tool meant, aliases resolved.
        arguments: its arguments, aliases resolved.
        mode: `plan` offers reading and planning only.
        policy: rules and switches; the stricter wins, deny above all.

    Example:
        >>> from bowerbird.tools.think import think_tools
        >>> decide(think_tools()[0], {"thought": "x"}, "plan", Policy()).action
        'allow'
    """
    decision = _decided(tool, arguments, mode, policy)
    if decision.action == "ask" and policy.unattended:
        return Decision("deny", f"{decision.reason}, and nobody can be asked in this run")
    return decision


def _decided(tool: Judged, arguments: Mapping[str, Any], mode: Mode, policy: Policy) -> Decision:
    if (wrong := _in_wrong_mode(tool, arguments, mode)) is not None:
        return Decision("deny", wrong)
    if policy.role is not None and tool.name not in policy.role:
        return Decision("deny", f"{tool.name} is not among the tools of this role")
    if policy.awaiting and tool.effect not in ("read", "plan") and tool.name not in WHILE_AWAITING:
        return Decision("deny", "your plan waits for the lead's answer; until it comes you may only read")
    denied = _first(policy.deny, tool, arguments, _any_matches)
    if denied is not None:
        return Decision("deny", f"rule {denied} denies this call")
    if policy.auto_approve:
        return Decision("allow", "approved for the rest of the session")
    if _all_allowed(policy.always, tool, arguments) and may_cover(arguments):
        return Decision("allow", "a person always allows this call")
    asked = _first(policy.ask, tool, arguments, _any_matches)
    if asked is not None:
        return Decision("ask", f"rule {asked} asks before this call")
    if _all_allowed(policy.allow, tool, arguments):
        return Decision("allow", "a rule allows this call")
    host = _unnamed_host(tool, arguments, policy)
    if host is not None:
        return Decision("ask", f"nobody named {host} here, and an address can carry out what was read")
    return _by_class(tool, arguments, policy)


def offered(tools: Iterable[J], mode: Mode, policy: Policy, *, full: bool) -> tuple[J, ...]:
    """Return the tools a model is told of, in their order: those of its role, or all, or the default ones.

    Plan mode takes none away: what it does not allow is refused when it is called, so that the beginning of
    what is sent stays as it is.
    """
    there = {tool.name: tool for tool in tools}
    if policy.role is not None:
        return tuple(tool for name, tool in there.items() if name in policy.role)
    planning = mode == "plan"
    return tuple(
        tool for name, tool in there.items() if full or offered_by_default(name, there, planning=planning)
    )


def _by_class(tool: Judged, arguments: Mapping[str, Any], policy: Policy) -> Decision:
    if policy.enable_approval:
        if tool.name in SAFE_TOOLS or tool.needs_approval is False:
            return Decision("allow", "safe tool")
        return Decision("ask", "approval is on")
    if tool.needs_approval is not None:
        return Decision("ask" if tool.needs_approval else "allow", f"{tool.name} says so itself")
    if tool.name == "host_execute" and arguments.get("bridge") in policy.bridges:
        return Decision("allow", "the settings allow this bridge's commands")
    if tool.effect == "outside" and tool.name not in policy.given:
        return Decision("ask", f"{tool.name} acts outside the branch")
    if (others := _other_agents(tool, arguments)) and tool.name not in policy.given:
        return Decision("ask", f"what {others} see leaves this machine, and may cost money")
    return Decision("allow", f"confined to the {tool.effect} class")


def _other_agents(tool: Judged, arguments: Mapping[str, Any]) -> str:
    """Return the other vendors' agents that a tournament would let attempt."""
    given: Any = arguments.get("agents") if tool.name == "run_tournament" else None
    names = cast("list[Any]", given) if isinstance(given, list) else []
    return ", ".join(str(name) for name in names if name != "self")


def _unnamed_host(tool: Judged, arguments: Mapping[str, Any], policy: Policy) -> str | None:
    """Return the host that a fetch would reach, when neither people nor settings named it."""
    if tool.name != "web_fetch" or policy.hosts is None:
        return None
    host, port = host_and_port(str(arguments.get("url", "")))
    named = any(fnmatchcase(name, pattern) for pattern in policy.hosts for name in (host, f"{host}:{port}"))
    return None if named else (host or "that host")


def _in_wrong_mode(tool: Judged, arguments: Mapping[str, Any], mode: Mode) -> str | None:
    """Return why a call has no place in this mode, None when it has."""
    if mode != "plan":
        no_plan = "plan mode is off, so there is no plan to hand in; go on with the work"
        return no_plan if tool.name == "exit_plan_mode" else None
    if _in_plan_mode(tool, arguments):
        return None
    return f"{tool.name} is refused in plan mode; look, then hand in the plan, and a person decides"


def _in_plan_mode(tool: Judged, arguments: Mapping[str, Any]) -> bool:
    if tool.name == "task":
        return arguments.get("agent_type") in PLAN_SUBAGENTS
    return tool.effect in ("read", "plan") or tool.name in PLAN_EXTRA


# ---------------------------------------------------------------- rules

Matcher = Callable[[Rule, Judged, Mapping[str, Any]], bool]


def _first(rules: Iterable[Rule], tool: Judged, arguments: Mapping[str, Any], match: Matcher) -> Rule | None:
    return next((r for r in rules if _names(r, tool) and match(r, tool, arguments)), None)


def _names(rule: Rule, tool: Judged) -> bool:
    return any(fnmatchcase(name, rule.tool) for name in (tool.name, *tool.aliases))


def _any_matches(rule: Rule, tool: Judged, arguments: Mapping[str, Any]) -> bool:
    """Match of a restricting rule: one part of the call that fits is enough."""
    if rule.pattern is None:
        return True
    if not _is_shell(tool, arguments):
        named = (*_subjects(arguments), *(patched_paths(arguments) or ()))
        return any(_glob(subject, rule.pattern) for subject in named)
    line = read_line(arguments["command"])
    if not line.readable:
        return True  # what cannot be read cannot be cleared
    commands = (*line.commands, *line.hidden)
    return any(not c.known or _glob(c.text, rule.pattern) for c in commands)


def _all_allowed(rules: Iterable[Rule], tool: Judged, arguments: Mapping[str, Any]) -> bool:
    """Match of the allowing rules: together they must cover every part of the call."""
    mine = [r for r in rules if _names(r, tool)]
    if any(r.pattern is None for r in mine):
        return True
    patterns = [r.pattern for r in mine if r.pattern is not None]
    if not patterns:
        return False
    if not _is_shell(tool, arguments):
        subjects = _subjects(arguments)
        return bool(subjects) and all(any(_glob(s, p) for p in patterns) for s in subjects)
    line = read_line(arguments["command"])
    return line.readable and bool(line.commands) and all(_clears(c, patterns) for c in line.commands)


def _clears(command: SimpleCommand, patterns: list[str]) -> bool:
    return command.known and command.bare and any(_glob(command.text, p) for p in patterns)


def _is_shell(tool: Judged, arguments: Mapping[str, Any]) -> bool:
    return tool.name in SHELL_TOOLS and isinstance(arguments.get("command"), str)


def _subjects(arguments: Mapping[str, Any]) -> list[str]:
    """Return what a pattern is held against: the paths, else the main text, else all texts."""
    if paths := paths_of(arguments):
        return paths
    for key in _TEXTS:
        if isinstance(value := arguments.get(key), str):
            return [value]
    return [v for v in arguments.values() if isinstance(v, str)]


def _glob(text: str, pattern: str) -> bool:
    wanted = pattern.strip()
    wanted = wanted[1:] if wanted.startswith("/") and not text.startswith("/") else wanted
    if fnmatchcase(text, wanted):
        return True
    return wanted.endswith(" *") and fnmatchcase(text, wanted[:-2])
