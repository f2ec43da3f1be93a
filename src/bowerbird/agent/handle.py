"""What an agent holds beside its parameters: its branch, interpreters' names, subagents.

Here: opening each at first use, closing what was opened. Not here: the parameters (`options`), a run
(`agent`), how subagents run (`bowerbird.delegation`).
"""

import threading
from typing import TYPE_CHECKING

from bowerbird.agent.delegates import LibraryDelegate
from bowerbird.agent.interpreters import KeptNames
from bowerbird.agent.options import AgentOptions

if TYPE_CHECKING:
    from bowerbird.tools.process_family import ProcessSetup
    from bowerbird.workspace import Branch, Workspace


class Handle:
    """The one mutable part of an agent.

    Attributes:
        given: a branch that is another's to close, or None.
        names: of its interpreters. setup: how it runs processes, once known.
        delegate: runs its subagents, once there is one.
    """

    def __init__(self, options: AgentOptions, given: "Branch | None") -> None:
        self.given = given
        self._options = options
        self.names = KeptNames()
        self.setup: ProcessSetup | None = None
        self.delegate: LibraryDelegate | None = None
        self._workspace: Workspace | None = None
        self._opened: Branch | None = None
        self._lock = threading.Lock()

    def branch(self) -> "Branch":
        """Return the branch; raises InvalidWorkspace when the directory is gone."""
        if self.given is not None:
            return self.given
        with self._lock:
            if self._opened is None:
                from bowerbird.workspace import Workspace

                self._workspace = Workspace(self._options.workdir)
                self._opened = self._workspace.branch(self._options.name, policy=self._options.landing)
            return self._opened

    def close(self) -> None:
        """Close what was opened here; a later use opens a new branch."""
        with self._lock:
            if self._workspace is not None:
                self._workspace.close()
            self._workspace = self._opened = None
            self.delegate = None
