"""Branches of a directory: layers, merged view, file tools, diff, merge, landing and undo.

Lives here: all file work, and no process but ripgrep and git. Must not be here: settings and the
database (they arrive as values), running commands (`sandbox`), what an agent may do
(`agent`). The way in is `Workspace`; a `Branch` is what tools and doors work with.
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

if TYPE_CHECKING:
    from bowerbird.workspace.branch import Branch
    from bowerbird.workspace.compare.conflicts import Conflict, Place
    from bowerbird.workspace.compare.results import (
        Changes,
        Diff,
        Exported,
        FileDiff,
        LandingPlan,
        MergeConflict,
        MergeResult,
        PathMarks,
        PlannedPath,
    )
    from bowerbird.workspace.git.committing import Committing
    from bowerbird.workspace.git.committing_aside import CommittingAside
    from bowerbird.workspace.git.landed_history import HistoryRules
    from bowerbird.workspace.git.story import GitStory
    from bowerbird.workspace.history.history import Snapshot
    from bowerbird.workspace.landing.landings import Landing
    from bowerbird.workspace.landing.record import LandingEntry, Refused
    from bowerbird.workspace.marks.flags import FlagRules
    from bowerbird.workspace.process_view import BeforeCall, OverlayDirs, ProcessView, ViewChanged
    from bowerbird.workspace.processes.capture import Captured
    from bowerbird.workspace.registry.limits import WorkspaceLimits
    from bowerbird.workspace.registry.registry import BranchInfo
    from bowerbird.workspace.tree.hunks import Hunk
    from bowerbird.workspace.workspace import Workspace

__all__ = [
    "BeforeCall", "Branch", "BranchInfo", "Captured", "Changes", "Committing", "CommittingAside",
    "Conflict", "Diff", "Exported", "FileDiff", "FlagRules",
    "GitStory", "HistoryRules", "Hunk", "Landing", "LandingEntry", "LandingPlan", "MergeConflict",
    "MergeResult", "OverlayDirs", "PathMarks", "Place", "PlannedPath", "ProcessView", "Refused", "Snapshot",
    "ViewChanged", "Workspace", "WorkspaceLimits",
]  # fmt: skip

__getattr__, __dir__ = lazy(
    __name__,
    {
        "branch": "Branch",
        "compare.conflicts": "Conflict Place",
        "compare.results": "Changes Diff Exported FileDiff LandingPlan MergeConflict MergeResult "
        "PathMarks PlannedPath",
        "git.committing": "Committing",
        "git.committing_aside": "CommittingAside",
        "git.landed_history": "HistoryRules",
        "git.story": "GitStory",
        "history.history": "Snapshot",
        "landing.landings": "Landing",
        "landing.record": "LandingEntry Refused",
        "marks.flags": "FlagRules",
        "process_view": "BeforeCall OverlayDirs ProcessView ViewChanged",
        "processes.capture": "Captured",
        "registry.limits": "WorkspaceLimits",
        "registry.registry": "BranchInfo",
        "tree.hunks": "Hunk",
        "workspace": "Workspace",
    },
)
