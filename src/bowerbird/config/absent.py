"""Sections that settings written for a later version may name (D-18).

Here, pure: their names, and what is said of them. A section leaves this table when the code that
reads it enters the program. Not here: keys that exist.
"""

from bowerbird.config.keys import Path

ABSENT = {
    "protocols.openai": "other protocols come later",
    "acp": "editors come later",
    "avatar": "nothing would use it",
}


def why_absent(path: Path) -> str | None:
    """Return what is said of a key that a later version has, None for any other.

    Example:
        >>> why_absent(("gateway",))
        'not in this version (the host gateway comes later); take it out'
    """
    name = ".".join(path)
    found = next((said for key, said in ABSENT.items() if name == key or name.startswith(f"{key}.")), None)
    return f"not in this version ({found}); take it out" if found else None
