"""What a run changed on its branch, as a summary (PR-20).

Here: the state before, the snapshot after, the difference. Not here: landing, review.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bowerbird.providers.contract.types import ChangeSummary

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

_MOST_COUNTED = 500
"""Of so many deleted files the lines are counted."""


@dataclass(frozen=True, slots=True)
class Before:
    """The state that a run began from; `snapshot` None = the branch's fork point."""

    snapshot: str | None


def before(branch: "Branch") -> Before:
    """Remember a branch's state; what was pending becomes a snapshot. Blocks."""
    return Before(branch.end_turn().id if branch.changes().paths else None)


def after(branch: "Branch", start: Before, run: str) -> tuple[str, ChangeSummary]:
    """Make the run's changes one snapshot; return its id and what they are. Blocks."""
    snapshot = branch.end_turn(run).id
    diff = branch.diff(since=start.snapshot)
    files = [each for each in diff.written if each.type != "directory"]
    gone = branch.unified(list(diff.deleted[:_MOST_COUNTED]), since=start.snapshot) if diff.deleted else ""
    return snapshot, ChangeSummary(
        written=tuple(sorted(each.path.lstrip("/") for each in files)),
        deleted=tuple(sorted(path.lstrip("/") for path in diff.deleted)),
        added_lines=sum(each.added for each in files),
        removed_lines=sum(each.removed for each in files) + removed_lines(gone),
    )


def removed_lines(patch: str) -> int:
    """Return how many lines a patch takes away.

    Example:
        >>> removed_lines("diff --git a/x b/x\\n--- a/x\\n+++ /dev/null\\n@@ -1,2 +0,0 @@\\n-a\\n--- b\\n")
        2
    """
    count, in_hunk = 0, False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            in_hunk = False
        elif line.startswith("@@"):
            in_hunk = True
        elif in_hunk and line.startswith("-"):
            count += 1
    return count
