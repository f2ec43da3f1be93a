"""What all branches of one `Workspace` share.

Here: the values that handles pass on. Not here: any behaviour.
"""

from dataclasses import dataclass, field

from bowerbird.workspace.git.landed_history import HistoryRules
from bowerbird.workspace.landing.landings import Landings
from bowerbird.workspace.marks.flags import FlagRules
from bowerbird.workspace.registry.registry import BranchRegistry


@dataclass
class Shared:
    """What all branches of one `Workspace` share.

    Attributes:
        rules: flags and caches of landings. git: what landings do with commits.
        held: by branch, how many background processes write, and the turn whose snapshot waits.
    """

    registry: BranchRegistry
    landings: Landings
    rules: FlagRules
    git: HistoryRules = field(default_factory=HistoryRules)
    held: dict[str, "Held"] = field(default_factory=dict[str, "Held"])


@dataclass
class Held:
    """Background processes of one branch."""

    count: int = 0
    turn: str | None = None
    waiting: bool = False
