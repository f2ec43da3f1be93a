"""What a message may say to people outside: no absolute path of this machine (SV-1). Pure.

Not here: the form of errors (`errors.py`), secrets (`models/redact.py`).
"""

import re
from collections.abc import Sequence

_PATH = re.compile(r"(?<![\w./:-])(/(?:[^\s/'\",;:()\[\]]+/)+[^\s'\",;:()\[\]]*)")


def said(message: str, visible: Sequence[str] = ()) -> str:
    """Return a message with absolute paths of the server cut down to their last name.

    Args:
        visible: prefixes that the caller knows already, such as their own workspace path.

    Example:
        >>> said("/srv/data/agent.db is locked")
        'agent.db is locked'
    """

    def short(match: re.Match[str]) -> str:
        path = match.group(1)
        if any(path.startswith(prefix) for prefix in visible):
            return path
        return path.rstrip("/").rsplit("/", 1)[-1]

    return _PATH.sub(short, message)
