"""The named write points of the issue, and where a process dies for each.

Here: names and lists. Not here: how a process dies there (`crash_child.py`, `drill_child.py`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from support.serve_drill import ServeDrill
    from support.serve_processes import Plain, Serves

TURN = [
    "submit", "submitted", "lease", "leased", "before turn_started", "after turn_started", "model call",
    "before assistant", "model call:3", "after assistant", "before assistant:2", "after assistant:2",
    "after assistant:4", "before tool_intent", "after tool_intent", "before tool_intent:2",
    "after tool_intent:2", "after tool_intent:3", "tool", "tool:2", "tool:3", "external call", "external call:2",
    "before tool_outcome", "after tool_outcome", "before tool_outcome:2", "after tool_outcome:3", "settled",
    "settled:2", "frozen", "frozen:2", "snapshot", "snapshot:2", "outbox", "before turn_ended",
    "before turn_ended:2", "after turn_ended", "sending", "delivered", "submit:2", "submitted:2", "lease:2",
    "leased:2", "before assistant:5", "after assistant:6", "before tool_intent:4", "after tool_intent:5", "tool:4",
    "before tool_outcome:4", "after tool_outcome:5", "model call:5", "after turn_ended:2", "sending:2", "delivered:2",
]  # fmt: skip
LATER = [
    "model call:3", "after assistant:4", "after tool_intent:3", "tool:2", "external call:2", "settled:2", "submit:2",
    "leased:2", "delivered:2",
]  # fmt: skip
ONCE = [point for point in TURN if ":" not in point or point in LATER]  # each name, and some once more
COMPACTION = ["summarised", "before compaction", "after compaction"]
LANDING = [
    "landing steps", "landing prepared", "landing applying", "landing place", "landing place:2", "landing sync",
    "landing settle", "landing done",
]  # fmt: skip
UNDO = [point for point in LANDING if point != "landing place:2"] + ["landing remove"]
ISSUE: Mapping[str, Sequence[str]] = {
    "inbox": ("submit", "submitted"),
    "lease": ("lease", "leased"),
    "intent": ("before tool_intent", "after tool_intent"),
    "during tool": ("tool", "external call"),
    "outcome": ("before tool_outcome", "after tool_outcome", "settled"),
    "assistant": ("model call", "before assistant", "after assistant"),
    "compaction": ("summarised", "before compaction", "after compaction"),
    "snapshot": ("frozen", "snapshot"),
    "turn_ended": ("before turn_ended", "after turn_ended"),
    "outbox": ("outbox", "sending", "delivered"),
    "landing prepare": ("landing steps", "landing stage", "landing prepared"),
    "landing apply": ("landing applying", "landing place", "landing remove", "landing mkdir", "landing sync"),
    "landing done": ("landing settle", "landing done"),
}


def round_of(
    drill: "ServeDrill", serves: "Serves | Plain", points: Sequence[str], work: Any = None
) -> list[str]:
    """Let a process die at each point in turn; return those that no process passed.

    What a life does depends on what the one before left, say a message that was accepted already: a point is
    tried three times.

    Args:
        work: what is done in each life; everybody speaks when None.
    """
    return [point for point in points if all(drill.live(serves, point, work) for _ in range(3))]


def named(hits: Mapping[str, int]) -> dict[str, int]:
    """Return the deaths by the issue's names; what was noted about an undo counts as undo."""
    found: dict[str, int] = {}
    by_point = {point: name for name, points in ISSUE.items() for point in points}
    for point, count in hits.items():
        plain = point.partition(":")[0]
        name = "undo" if point.startswith("undo ") else by_point.get(plain, plain)
        found[name] = found.get(name, 0) + count
    return found
