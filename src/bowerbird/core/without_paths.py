"""Messages for people outside: no absolute path of this machine. Pure.

Here: that one replacement. Not here: secrets (`models/redact.py`), the words of a door.
"""

import re
from collections.abc import Sequence

_PATH = re.compile(r"(?<![\w./:-])(/(?:[^\s/'\",;:()\[\]]+/)+[^\s'\",;:()\[\]]*)")


def without_paths(message: str, visible: Sequence[str] = ()) -> str:
    """Return a message with absolute paths cut down to their last name.

    Args:
        visible: prefixes that the reader knows already, such as their own workspace.

    Example:
        >>> without_paths("/srv/data/agent.db is locked")
        'agent.db is locked'
    """

    def short(match: re.Match[str]) -> str:
        path = match.group(1)
        if any(path.startswith(prefix) for prefix in visible):
            return path
        return path.rstrip("/").rsplit("/", 1)[-1]

    return _PATH.sub(short, message)
