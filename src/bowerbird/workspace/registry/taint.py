"""Which turns of a branch had untrusted text in context, and which paths such turns wrote (D-6).

Here: noting it in the branch's manifest, carrying it to the branch that takes changes in, the paths. Not
here: what taint means for a landing (`marks/flags.py`, `policy.py`).
"""

from collections.abc import Iterable, Sequence

from bowerbird.workspace.history.branch_journal import Step
from bowerbird.workspace.registry.state import BranchState

MOST_SOURCES = 20  # of one turn; a review names the first
CARRIED = "carried"  # the turn that a child's journal names for what untrusted text had shaped in the parent


def tainted_paths(state: BranchState) -> dict[str, tuple[str, ...]]:
    """Return the paths that were written with untrusted text in context, and what that was."""
    extra = state.manifest.value.extra
    turns = set(extra.get("tainted", ()))
    if not turns:
        return {}
    sources: dict[str, list[str]] = extra.get("taint_from", {})
    found: dict[str, tuple[str, ...]] = {}
    for row in state.journal.records():
        if row["turn"] in turns:
            known = found.get(row["path"], ())
            found[row["path"]] = tuple(dict.fromkeys((*known, *sources.get(row["turn"], ()))))
    return found


def taint(state: BranchState, turn: str, sources: Iterable[str]) -> None:
    """Record that untrusted text is in the context of a turn.

    Args:
        sources: where it came from, for people: a tool and an address.
    """
    with state.writing():
        add_taint(state, turn, sources)


def take_taint(
    parent: BranchState, child: BranchState, steps: Sequence[Step], turn: str | None
) -> str | None:
    """Let a merge bring the child's taint along; returns the turn to record its steps under.

    What comes from a tainted turn of the child taints the turn that takes it in.
    """
    tainted = tainted_paths(child)
    sources = [source for step in steps for source in tainted.get(step.path, ())]
    if not any(step.path in tainted for step in steps):
        return turn
    add_taint(parent, turn or CARRIED, sources)
    return turn or CARRIED


def add_taint(state: BranchState, turn: str, sources: Iterable[str]) -> None:
    """Note a tainted turn; the caller holds the writer lock."""
    extra = state.manifest.value.extra
    turns = sorted({*extra.get("tainted", ()), turn})
    known: dict[str, list[str]] = extra.get("taint_from", {})
    told = list(dict.fromkeys((*known.get(turn, ()), *sources)))[:MOST_SOURCES]
    if turns != list(extra.get("tainted", ())) or told != known.get(turn, []):
        state.manifest.update(extra={**extra, "tainted": turns, "taint_from": {**known, turn: told}})
