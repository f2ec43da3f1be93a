"""What all branches of one `Workspace` share.

Here: the values that handles pass on, and who holds a branch. Not here: what that means for its layers.
"""

import threading

import msgspec

from bowerbird.workspace.git.landed_history import HistoryRules
from bowerbird.workspace.landing.landings import Landings
from bowerbird.workspace.marks.flags import FlagRules
from bowerbird.workspace.registry.registry import BranchRegistry


class Shared(msgspec.Struct):
    """What all branches of one `Workspace` share.

    Attributes:
        rules: flags and caches of landings. git: what landings do with commits.
        held: by branch, how many background processes write, and the turn whose snapshot waits; only of
            branches where there is any.
    """

    registry: BranchRegistry
    landings: Landings
    rules: FlagRules
    git: HistoryRules = msgspec.field(default_factory=HistoryRules)
    held: dict[str, "Held"] = msgspec.field(default_factory=dict[str, "Held"])
    _changing: threading.Lock = msgspec.field(default_factory=threading.Lock)

    def hold(self, branch: str) -> "Held":
        """Count one more background process of a branch."""
        with self._changing:
            held = self.held.setdefault(branch, Held())
            held.count += 1
        return held

    def let_go(self, branch: str) -> bool:
        """Count one less; return whether it was the last."""
        with self._changing:
            held = self.held[branch]
            held.count -= 1
            return held.count == 0

    def forget_unheld(self, branch: str) -> None:
        """Keep nothing of a branch that nothing holds and whose snapshot does not wait."""
        with self._changing:
            held = self.held.get(branch)
            if held is not None and not held.count and not held.waiting:
                del self.held[branch]


class Held(msgspec.Struct):
    """Background processes of one branch."""

    count: int = 0
    turn: str | None = None
    waiting: bool = False
