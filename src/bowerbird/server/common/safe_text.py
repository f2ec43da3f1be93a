"""What a message may say to people outside: no absolute path of this machine (SV-1), the API's words. Pure.

Not here: the form of errors (`errors.py`), secrets (`models/redact.py`).
"""

import re
from collections.abc import Sequence

from bowerbird.core.without_paths import without_paths

_SESSION = re.compile(r"\b([Ss])ession(s?)\b(?![.\w])")
_ONE_SESSION = re.compile(r"\bsession(?= [0-9a-f]{12}\b)")


def said(message: str, visible: Sequence[str] = ()) -> str:
    """Return a message with absolute paths of the server cut down to their last name.

    Args:
        visible: prefixes that the caller knows already, such as their own workspace path.

    Example:
        >>> said("/srv/data/agent.db is locked")
        'agent.db is locked'
    """
    return _ONE_SESSION.sub("conversation", without_paths(message, visible))


def in_wire_words(message: str) -> str:
    """Return a message of ours in the API's words: what is a session inside is a conversation there.

    Example:
        >>> in_wire_words("this session has ended; see sessions.retention")
        'this conversation has ended; see sessions.retention'
    """
    return _SESSION.sub(lambda m: ("C" if m[1] == "S" else "c") + f"onversation{m[2]}", message)
