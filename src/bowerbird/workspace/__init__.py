"""Branches of a directory: layers, merged view, file tools, diff, merge, landing and undo.

Lives here: all file work, and no process but ripgrep. Must not be here: settings and the
database (they arrive as values), running commands (`sandbox`), what an agent may do
(`agent`). The way in is `Workspace`; a `Branch` is what tools and doors work with.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.workspace.branch import Branch
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
    from bowerbird.workspace.history.history import Snapshot
    from bowerbird.workspace.landing.landings import Landing
    from bowerbird.workspace.landing.record import LandingEntry, Refused
    from bowerbird.workspace.marks.flags import FlagRules
    from bowerbird.workspace.process_view import BeforeCall, Captured, OverlayDirs, ProcessView, ViewChanged
    from bowerbird.workspace.registry.limits import WorkspaceLimits
    from bowerbird.workspace.registry.registry import BranchInfo
    from bowerbird.workspace.tree.hunks import Hunk
    from bowerbird.workspace.workspace import Workspace

__all__ = [
    "BeforeCall", "Branch", "BranchInfo", "Captured", "Changes", "Diff", "Exported", "FileDiff", "FlagRules",
    "Hunk", "Landing", "LandingEntry", "LandingPlan", "MergeConflict", "MergeResult", "OverlayDirs",
    "PathMarks", "PlannedPath", "ProcessView", "Refused", "Snapshot", "ViewChanged", "Workspace",
    "WorkspaceLimits",
]  # fmt: skip

_HOMES = {
    "Branch": "branch",
    "BranchInfo": "registry.registry",
    "BeforeCall": "process_view",
    "Captured": "process_view",
    "Changes": "compare.results",
    "Diff": "compare.results",
    "Exported": "compare.results",
    "FileDiff": "compare.results",
    "FlagRules": "marks.flags",
    "Hunk": "tree.hunks",
    "Landing": "landing.landings",
    "LandingEntry": "landing.record",
    "LandingPlan": "compare.results",
    "MergeConflict": "compare.results",
    "MergeResult": "compare.results",
    "OverlayDirs": "process_view",
    "PathMarks": "compare.results",
    "PlannedPath": "compare.results",
    "ProcessView": "process_view",
    "Refused": "landing.record",
    "Snapshot": "history.history",
    "ViewChanged": "process_view",
    "Workspace": "workspace",
    "WorkspaceLimits": "registry.limits",
}


def __getattr__(name: str) -> Any:
    """Load a public name at first use; `bowerbird --help` needs none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
