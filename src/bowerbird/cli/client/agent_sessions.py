"""Ids of sessions with other vendors' agents where a command takes a session.

Here: how one is known, and what is said of one without files. Not here: looking one up (the clients).
"""

from bowerbird.core.errors import UnknownSession

AGENT_SESSION = "sess_"


def branch_of_agent(given: str, conversation: str | None) -> str:
    """Return the session whose branch has an agent's changes; raises UnknownSession where there is none."""
    if conversation is None:
        raise UnknownSession(
            f"session {given} has no files: it is one with an agent that has none, or that did not begin; "
            f"`bowerbird agents memory {given}` shows what was said"
        )
    return conversation
