"""What a run may do without asking: rules and switches, as one frozen value.

Here: the policy's data, its rule syntax and its checked construction. Not here: the decision
(`permissions.decide`), who is asked (`turn.Approver`), shell grammar (`shell_words`).

A rule is `tool`, `tool(pattern)` or a glob of tool names (`mcp__docs__*`). The pattern is a
glob: for shell tools over each simple command of the line, for file tools over the path,
otherwise over the main text argument. `"git *"` also matches plain `git`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from bowerbird.core.errors import InvalidArgument

Mode = Literal["normal", "plan"]

_RULE = re.compile(r"^\s*(?P<tool>[A-Za-z*?][A-Za-z0-9_*?-]*)\s*(?:\((?P<pattern>.*)\))?\s*$", re.DOTALL)


class Rule(msgspec.Struct, frozen=True):
    """One line of a policy: a tool name or glob, and a pattern or None for every call."""

    tool: str
    pattern: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Return the rule that `text` writes; raises InvalidArgument naming it."""
        match = _RULE.match(text)
        if match is None:
            raise InvalidArgument(f"permission rule {text!r} is not 'tool' or 'tool(pattern)'")
        return cls(match["tool"], match["pattern"])

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is denied, allowed and asked, beside the mode.

    Args:
        deny, ask, allow: rules; the stricter wins: deny, then ask, then allow.
        role: names of the only tools this agent may call, or None for all (role list of AG-60).
        enable_approval: ask before every tool outside the safe set.
        given: tools that a program handed over with its agent and said nothing of: handing one over is
            its approval, so they need none by the cautious default class alone.
        hosts: that `web_fetch` reaches unasked, as globs; an address can carry out what was read.
            None = any.
        bridges: of the host's gateway, whose commands run unasked.
        unattended: nobody can be asked: what would ask is denied.
        awaiting: a plan of this agent waits for its lead's answer: until then it may only read.
        auto_approve: a person has allowed the rest of the session; what would ask, runs.
        always: what a person allowed for good when asked (`always.rules_for`); stronger than `ask`, since it
            answers that question, and it reaches no path that a landing marks.

    Example:
        >>> Policy.of({"deny": ["bash(rm *)"]}).deny[0].pattern
        'rm *'
    """

    deny: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    allow: tuple[Rule, ...] = ()
    role: frozenset[str] | None = None
    enable_approval: bool = False
    auto_approve: bool = False
    given: frozenset[str] = frozenset()
    awaiting: bool = False
    hosts: frozenset[str] | None = None
    always: tuple[Rule, ...] = ()
    bridges: frozenset[str] = frozenset()
    unattended: bool = False

    @classmethod
    def of(
        cls,
        value: "Policy | Mapping[str, Any] | Sequence[str] | None",
        *,
        enable_approval: bool = False,
    ) -> "Policy":
        """Return a policy from settings.

        Args:
            value: a Policy; `{"allow": [...], "ask": [...], "deny": [...], "role": [...]}`; or
                a list of lines such as `"deny bash(rm *)"`.
            enable_approval: switched on here or in `value`.

        Raises:
            InvalidArgument: an unknown key or a rule that cannot be read.
        """
        if isinstance(value, Policy):
            return value if not enable_approval else value.with_approval()
        if value is None:
            return cls(enable_approval=enable_approval)
        if isinstance(value, Mapping):
            return cls._of_mapping(value, enable_approval)
        if isinstance(value, str) or not isinstance(value, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise InvalidArgument(f"permissions is {value!r}; use a mapping or a list of rules")
        lists: dict[str, list[str]] = {"deny": [], "ask": [], "allow": []}
        for line in value:
            action, _, rule = str(line).strip().partition(" ")
            if action not in lists or not rule:
                raise InvalidArgument(f"permission rule {line!r} does not begin with deny, ask or allow")
            lists[action].append(rule)
        return cls._of_mapping(lists, enable_approval)

    @classmethod
    def _of_mapping(cls, value: Mapping[str, Any], enable_approval: bool) -> "Policy":
        for key in value:
            if key not in ("deny", "ask", "allow", "role", "enable_approval", "auto_approve", "always"):
                raise InvalidArgument(f"permissions has no key {key!r}; known: allow, ask, deny, role")
        role = value.get("role")
        return cls(
            deny=_rules(value.get("deny")),
            ask=_rules(value.get("ask")),
            allow=_rules(value.get("allow")),
            role=None if role is None else frozenset(role),
            enable_approval=enable_approval or bool(value.get("enable_approval")),
            auto_approve=bool(value.get("auto_approve")),
            always=_rules(value.get("always")),
        )

    def with_approval(self) -> "Policy":
        """Return this policy with `enable_approval` on."""
        return replace(self, enable_approval=True)

    def approved(self) -> "Policy":
        """Return this policy after a person allowed the rest of the session."""
        return replace(self, auto_approve=True)

    def always_allowing(self, rules: Iterable[Rule]) -> "Policy":
        """Return this policy after a person allowed what `rules` cover for good."""
        return replace(self, always=tuple(dict.fromkeys((*self.always, *rules))))

    def to_data(self) -> dict[str, Any]:
        """Return the plain form that `Policy.of` reads."""
        data: dict[str, Any] = {
            name: [str(rule) for rule in rules]
            for name, rules in (
                ("deny", self.deny),
                ("ask", self.ask),
                ("allow", self.allow),
                ("always", self.always),
            )
            if rules
        }
        if self.role is not None:
            data["role"] = sorted(self.role)
        if self.enable_approval:
            data["enable_approval"] = True
        if self.auto_approve:
            data["auto_approve"] = True
        return data


def _rules(lines: object) -> tuple[Rule, ...]:
    if lines is None:
        return ()
    if isinstance(lines, str) or not isinstance(lines, Sequence):
        raise InvalidArgument(f"permission rules are {lines!r}; use a list of strings")
    return tuple(Rule.parse(str(line)) for line in lines)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - str() accepts anything
