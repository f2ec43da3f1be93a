"""Who may write in a channel, and what they may do (AS-5, AS-6). Pure.

Here: roles and what each may. Not here: the stored list (`people.py`), when anybody is asked.
"""

from collections.abc import Mapping
from typing import Literal

Role = Literal["owner", "guest"]
DENIED = "denied"

OWNERS_ONLY = frozenset({"land", "undo", "approve", "cc", "bridge"})
"""What a guest may not do; everything else both may."""


def admitted(user_id: str, listed: Mapping[str, Role], stored: str | None) -> Role | None:
    """Return a user's role, None for whoever may not write. An empty list admits nobody.

    Args:
        listed: the users of the settings. stored: the role of the stored list, `denied`, or None.

    Example:
        >>> admitted("1", {"1": "owner"}, None), admitted("1", {"1": "owner"}, "denied")
        ('owner', None)
        >>> admitted("2", {}, None) is None
        True
    """
    if not user_id or stored == DENIED:
        return None
    if stored in ("owner", "guest"):
        return "owner" if stored == "owner" else "guest"
    return listed.get(user_id)


def may(role: Role, act: str) -> bool:
    """Whether a role may do something of a name in `OWNERS_ONLY`, or anything else."""
    return role == "owner" or act not in OWNERS_ONLY
