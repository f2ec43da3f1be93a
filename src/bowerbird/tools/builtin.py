"""Which built-in families exist, in the order they are offered.

Here: groups by name. Not here: the tools, nor the services some of them take: whoever
has those calls the family's factory itself.
"""

from collections.abc import Callable, Sequence

from bowerbird.core.errors import InvalidArgument
from bowerbird.tools.tool import Tool


def _files() -> list[Tool]:
    from bowerbird.tools.files.file_tools import file_tools

    return file_tools()


def _code() -> list[Tool]:
    from bowerbird.tools.files.code import code_tools

    return code_tools()


def _python() -> list[Tool]:
    from bowerbird.tools.processes.python_tools import python_tools

    return python_tools()


def _think() -> list[Tool]:
    from bowerbird.tools.think import think_tools

    return think_tools()


def _plan() -> list[Tool]:
    from bowerbird.tools.plan import plan_tools

    return plan_tools()


def _skills() -> list[Tool]:
    from bowerbird.tools.skills import skill_tools

    return skill_tools()


def _web() -> list[Tool]:
    from bowerbird.tools.web.web_tools import web_tools

    return web_tools()


GROUPS: dict[str, Callable[[], list[Tool]]] = {
    "files": _files,
    "code": _code,
    "python": _python,
    "think": _think,
    "skills": _skills,
    "plan": _plan,
    "web": _web,
}


def builtin_tools(wanted: Sequence[str] = ()) -> list[Tool]:
    """Return the tools of these groups or names, in group order; all of them for none.

    Raises:
        InvalidArgument: a name is neither a group nor a built-in tool of one.
    """
    made = {group: factory() for group, factory in GROUPS.items()}
    if not wanted:
        return [t for tools in made.values() for t in tools]
    known = {t.name for tools in made.values() for t in tools}
    for name in wanted:
        if name not in made and name not in known:
            raise InvalidArgument(f"no group or built-in tool is named {name!r}; groups: {', '.join(made)}")
    return [t for group, tools in made.items() for t in tools if group in wanted or t.name in wanted]
