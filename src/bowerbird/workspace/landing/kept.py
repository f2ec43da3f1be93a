"""How long landings stay (WS-54, AS-43).

Here: the counts, and what a landing changed below a path that has versions. Not here: forgetting old ones
(`landings.py`), the versions (`versions.py`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bowerbird.workspace.tree.changes import covers

if TYPE_CHECKING:
    from bowerbird.workspace.landing.record import LandingEntry, State

KEPT_LANDINGS = 100
KEPT_BYTES = 2 * 1024**3
ALWAYS_KEPT = 10
KEPT_VERSIONS = 20
VERSIONED = ("/MEMORY.md", "/skills")
"""Of these the newest 20 landings stay longer than others; skills elsewhere like any file."""
_WROTE = ("done", "undone")


def changed_below(state: "State", entries: "Sequence[LandingEntry]", top: str) -> tuple[str, ...]:
    """Return the paths that a landing in this state changed at or below a virtual path."""
    if state not in _WROTE:
        return ()
    return tuple(entry.path for entry in entries if covers(top, entry.path))
