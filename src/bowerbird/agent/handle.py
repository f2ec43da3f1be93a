"""What an agent holds beside its parameters: its branch, interpreters' names, subagents.

Here: opening each at first use, closing what was opened, the names that a Python interpreter keeps from run
to run. A run has its own workers: a worker belongs to one event loop, and runs may have different ones. Not
here: the parameters (`options`), a run (`agent`), how subagents run (`bowerbird.subagents`).
"""

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bowerbird.agent.delegates import LibraryDelegate
from bowerbird.agent.options import AgentOptions
from bowerbird.core.errors import InvalidArgument
from bowerbird.tools.processes.python_tools import PythonLimits, PythonSessions

if TYPE_CHECKING:
    from bowerbird.tools.processes.family import ProcessSetup
    from bowerbird.workspace import Branch, Workspace


class KeptNames:
    """Dumps of interpreters by branch, in memory: they live as long as the agent."""

    def __init__(self) -> None:
        self._dumps: dict[str, bytes] = {}
        self._rollbacks: dict[str, int] = {}

    async def save(self, branch: str, dump: bytes) -> None:
        """Keep `dump` in place of an earlier one."""
        self._dumps[branch] = dump

    async def load(self, branch: str) -> bytes | None:
        """Return what was kept, None when there is nothing."""
        return self._dumps.get(branch)

    @asynccontextmanager
    async def of_run(self, branch: "Branch", timeout_s: float) -> AsyncGenerator[PythonSessions, None]:
        """Give a run its interpreters; at its end the names are kept and the workers closed.

        Names of a state that the branch was taken back from since the last run are forgotten.
        """
        sessions = PythonSessions(PythonLimits(timeout_s=timeout_s), dumps=self)
        try:
            if branch.rollbacks != self._rollbacks.get(branch.id, branch.rollbacks):
                await sessions.rolled_back(branch.id)
            yield sessions
        finally:
            # Also when the run is closed: whoever has seen `done` asks for no further event.
            self._rollbacks[branch.id] = branch.rollbacks
            try:
                await sessions.end_turn(branch.id)
            finally:
                await sessions.aclose()


def given_as(name: str, branch: "Branch | None") -> "Branch | None":
    """Return a branch that a caller gave as the parameter `name`; raises InvalidArgument when it is none."""
    if branch is None:
        return None
    from bowerbird.workspace import Branch

    if not isinstance(branch, Branch):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise InvalidArgument(
            f"{name} is {branch!r}; use a Branch: for example other.branch.fork(), Workspace(…).open(id)"
        )
    return branch


class Handle:
    """The one mutable part of an agent.

    Args:
        options: of the agent. given: a branch that is another's to close, or None.
        opening: opens the workspace for a branch of the agent's own; called once.

    Attributes:
        given: as above.
        names: of its interpreters. setup: how it runs processes, once known.
        delegate: runs its subagents, once there is one.
    """

    def __init__(
        self, options: AgentOptions, given: "Branch | None", opening: "Callable[[], Workspace]"
    ) -> None:
        self.given = given
        self._options = options
        self._opening = opening
        self.names = KeptNames()
        self.setup: ProcessSetup | None = None
        self.delegate: LibraryDelegate | None = None
        self._workspace: Workspace | None = None
        self._opened: Branch | None = None
        self._lock = threading.Lock()

    def branch(self) -> "Branch":
        """Return the branch, the same one also after `close`.

        Raises:
            InvalidWorkspace: the directory is gone.
        """
        if self.given is not None:
            return self.given
        with self._lock:
            if self._opened is None:
                workspace = self._opening()
                try:
                    self._opened = workspace.branch(self._options.name, policy=self._options.landing)
                except BaseException:
                    workspace.close()
                    raise
                self._workspace = workspace
            return self._opened

    def close(self) -> None:
        """Close what was opened here; what is on the branch stays there, and a later use opens it again."""
        with self._lock:
            if self._workspace is not None:
                self._workspace.close()
