"""When a branch lands by itself (WS-57).

Here: the three policies as one pure decision. Not here: landing.
"""

from typing import Literal

from bowerbird.core.errors import InvalidArgument

Policy = Literal["review", "turn", "step"]
Moment = Literal["step", "turn_done", "turn_failed", "turn_cancelled", "turn_interrupted"]


def policy_of(name: str) -> Policy:
    """Return the policy called `name`; raises InvalidArgument."""
    if name not in ("review", "turn", "step"):
        raise InvalidArgument(f"landing policy is {name!r}; use review, turn or step")
    return name


def lands_at(policy: Policy, moment: Moment) -> bool:
    """Tell whether a branch lands now without being asked.

    Such a landing is partial and never accepts or forces: what is flagged or in conflict
    stays pending.

    Args:
        moment: `step` after each committed tool outcome, else how a turn ended.

    Example:
        >>> lands_at("turn", "turn_failed"), lands_at("step", "step")
        (False, True)
    """
    if policy == "step":
        return moment in ("step", "turn_done")
    return policy == "turn" and moment == "turn_done"
