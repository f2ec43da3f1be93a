"""What an agent holds beside its parameters: its branch, interpreters' names, subagents.

Here: opening each at first use, closing what was opened. Not here: the parameters (`options`), a run
(`agent`), how subagents run (`bowerbird.subagents`).
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from bowerbird.agent.delegates import LibraryDelegate
from bowerbird.agent.interpreters import KeptNames
from bowerbird.agent.options import AgentOptions
from bowerbird.core.errors import InvalidArgument

if TYPE_CHECKING:
    from bowerbird.tools.processes.family import ProcessSetup
    from bowerbird.workspace import Branch, Workspace


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
