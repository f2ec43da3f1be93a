"""Tools made once and shared by all turns of a process (TO-1).

Here: which families do not depend on the turn, and keeping them. Not here: which of them a turn is offered
(`maker.py`), what any tool does.

Making a tool reads its function's signature and docstring: for thirty tools that costs a few milliseconds,
more than the rest of preparing a turn. A tool keeps nothing of its calls, so turns can share it.
"""

import logging
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.app.mapping import web_settings
from bowerbird.app.sandboxes import process_settings
from bowerbird.tools import Tool

if TYPE_CHECKING:
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sandbox.python.sessions import PythonSessions
    from bowerbird.skills import SkillLibrary

_MOST_LIBRARIES = 64
_log = logging.getLogger(__name__)


class ToolFamilies:
    """The families of one process.

    Args:
        settings: the tree. python: interpreters of `run_python_code`; None makes them at the first use.
    """

    def __init__(self, settings: Any, python: "PythonSessions | None" = None) -> None:
        self._settings = settings
        self._python = python
        self._skills: dict[tuple[Path | None, str], tuple[Tool, ...]] = {}
        self._processes: dict[tuple[SandboxHost, str], tuple[Tool, ...]] = {}

    def make(self) -> None:
        """Make those that no session can change, so that no turn waits for them; blocks."""
        for family in (self.files, self.python, self.think, self.web, self.plan):
            _log.debug("%d tools are made", len(family))

    @cached_property
    def files(self) -> tuple[Tool, ...]:
        """File and code tools."""
        from bowerbird.tools.files.code import code_tools
        from bowerbird.tools.files.file_tools import file_tools

        return (*file_tools(), *code_tools())

    @cached_property
    def python(self) -> tuple[Tool, ...]:
        """Tools that run Python apart, empty where there is no interpreter for it."""
        from bowerbird.tools.processes.python_tools import python_tools

        return tuple(python_tools(self._python))

    @cached_property
    def think(self) -> tuple[Tool, ...]:
        """The tool to think with."""
        from bowerbird.tools.think import think_tools

        return tuple(think_tools())

    @cached_property
    def web(self) -> tuple[Tool, ...]:
        """Search and fetch."""
        from bowerbird.tools.web.web_tools import web_tools

        return tuple(web_tools(web_settings(self._settings)))

    @cached_property
    def plan(self) -> tuple[Tool, ...]:
        """Planning, compaction, questions: all of them, whatever a turn is offered."""
        from bowerbird.tools.plan import plan_tools

        return tuple(plan_tools())

    def processes(self, host: "SandboxHost", network: str) -> tuple[Tool, ...]:
        """Tools that run commands in the sandboxes of `host`, for one mode of the network."""
        found = self._processes.get((host, network))
        if found is None:
            from bowerbird.tools.processes.family import tools_on

            found = self._processes[host, network] = tools_on(host, process_settings(self._settings), network)
        return found

    def skills(self, library: "SkillLibrary | None") -> tuple[Tool, ...]:
        """Tools that read the skills of a workspace; none without a library."""
        if library is None:
            return ()
        key = (library.workspace, library.directory)
        found = self._skills.get(key)
        if found is None:
            from bowerbird.tools.skills import skill_tools

            if len(self._skills) >= _MOST_LIBRARIES:
                self._skills.clear()  # they are made again: only time is lost
            found = self._skills[key] = tuple(skill_tools(library))
        return found
