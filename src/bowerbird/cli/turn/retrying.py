"""What a terminal says while a model is asked again (UI-63, UI-84).

Here: the kinds of failures that pass, in words. Not here: which do, and how long to wait (`models/wrappers`).
"""

from bowerbird.cli.terminal.text import one_line

_WORDS = {
    "rate_limit": "the provider limits the rate of requests",
    "overloaded": "the provider is overloaded",
    "server": "the provider has a fault of its own",
    "network": "the provider cannot be reached",
    "timeout": "the provider did not answer in time",
    "stream_cut": "the answer broke off",
}


def retry_line(reason: str, delay_s: float) -> str:
    """Return what happened and what comes of it.

    Example:
        >>> retry_line("network", 2.2)
        'the provider cannot be reached; trying again in 2 s'
    """
    return f"{_WORDS.get(reason, one_line(reason))}; trying again in {delay_s:.0f} s"


def restart_line(reason: str) -> str:
    """Return that an answer begins again; a kind of failure is no word for people.

    Example:
        >>> restart_line("the connection was lost")
        'the answer broke off: the connection was lost; it begins again'
        >>> restart_line("timeout")
        'the answer broke off; it begins again'
    """
    why = "" if not reason or reason in _WORDS else f": {one_line(reason)}"
    return f"the answer broke off{why}; it begins again"
