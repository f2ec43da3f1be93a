"""An ordered, immutable set of tools, with their aliases (TO-4, TO-6, TO-10).

Here: names, collisions, order, resolution of what a model called. Not here: whether a
tool may be called (`agent/`), nor what it does.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bowerbird.core.errors import InvalidArgument, ToolNameCollision
from bowerbird.core.requests import ToolSpec
from bowerbird.tools.names import builtin_owner
from bowerbird.tools.tool import Arguments, Tool, as_tool


class Toolset:
    """Tools in the order they are sent to models.

    Args:
        tools: `Tool`s or plain async functions.
        absent: why a built-in tool is not here, by name; told when a model calls it all the same.

    Raises:
        ToolNameCollision: two of them share a name or alias; both are named.

    Example:
        >>> tools = Toolset()
        >>> len(tools), tools.get("bash")
        (0, None)
    """

    __slots__ = ("_by_name", "_tools", "absent")

    def __init__(
        self, tools: Iterable[Tool | Callable[..., Any]] = (), *, absent: Mapping[str, str] | None = None
    ) -> None:
        self.absent = dict(absent or {})
        self._tools = tuple(as_tool(t) for t in tools)
        self._by_name: dict[str, Tool] = {}
        for each in self._tools:
            for name in (each.name, *each.aliases):
                other = self._by_name.get(name)
                if other is not None:
                    raise ToolNameCollision(_collision(each, other, name))
                self._by_name[name] = each

    @classmethod
    def builtin(cls, *wanted: str) -> "Toolset":
        """Return built-in tools by group or name; all that need no services when none is given.

        Args:
            wanted: Groups (`files code python think plan skills web`) or tool names.

        Raises:
            InvalidArgument: a name is neither; the groups are listed.
        """
        from bowerbird.tools.builtin import builtin_tools

        return cls(builtin_tools(wanted))

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self.names)})"

    @property
    def names(self) -> tuple[str, ...]:
        """Canonical names, in order."""
        return tuple(t.name for t in self._tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What models are told, in order; aliases are not offered."""
        return tuple(t.spec for t in self._tools)

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name or alias."""
        return self._by_name.get(name)

    def canonical(self, name: str) -> str | None:
        """Return the canonical name behind `name`, None when there is no such tool."""
        found = self._by_name.get(name)
        return found.name if found else None

    def why_absent(self, name: str) -> str | None:
        """Return why the built-in tool behind `name`, perhaps an alias, is not here; None when unknown."""
        return self.absent.get(builtin_owner(name) or name)

    def nearest(self, name: str, count: int = 3) -> list[str]:
        """Return up to `count` canonical names that look like `name`."""
        close = difflib.get_close_matches(name.lower(), list(self._by_name), n=2 * count, cutoff=0.0)
        return list(dict.fromkeys(self._by_name[n].name for n in close))[:count]

    def resolve(self, name: str, arguments: Mapping[str, Any]) -> tuple[Tool, Arguments] | None:
        """Return the tool meant and its own arguments, aliases and variants resolved; None when unknown.

        Called before permission, so that an alias is judged as what it is.
        """
        found = self._by_name.get(name)
        if found is None:
            return None
        given = found.canonical_arguments(name, arguments)
        for parameter, other in found.variants.items():
            if given.get(parameter) in (True, "true", "True") and other in self._by_name:
                found = self._by_name[other]
                given = {key: value for key, value in given.items() if key != parameter}
        return found, given

    def with_(self, *tools: Tool | Callable[..., Any]) -> "Toolset":
        """Return this set with `tools` at its end."""
        return Toolset((*self._tools, *tools), absent=self.absent)

    def without(self, *names: str) -> "Toolset":
        """Return this set without the tools of these names; unknown names are ignored."""
        gone = {self.canonical(n) for n in names}
        return Toolset((t for t in self._tools if t.name not in gone), absent=self.absent)

    def only(self, *names: str) -> "Toolset":
        """Return the tools of these names, in this set's order.

        Raises:
            InvalidArgument: a name is not in the set.
        """
        unknown = [n for n in names if n not in self._by_name]
        if unknown:
            raise InvalidArgument(f"no tool is named {unknown[0]!r}; there are {', '.join(self.names)}")
        kept = {self.canonical(n) for n in names}
        return Toolset((t for t in self._tools if t.name in kept), absent=self.absent)


def _collision(new: Tool, old: Tool, name: str) -> str:
    def told(one: Tool) -> str:
        return f"tool {one.name!r}" + ("" if one.name == name else f" (its alias {name!r})")

    return f"{told(new)} and {told(old)} share the name {name!r}; rename one"
