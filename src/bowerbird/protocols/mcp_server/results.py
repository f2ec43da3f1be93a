"""Results of tools as plain data, and the words of their errors (PT-1 … PT-3). Pure.

Here: the forms of success and failure, and which of our errors are told in their own words. Not here: the
SDK's types (`server.py`), what any tool does.
"""

from collections.abc import Callable
from typing import Any

from bowerbird.core import errors as core
from bowerbird.core.without_paths import without_paths
from bowerbird.providers.contract.errors import AgentError, AgentRateLimited, shown

LONGEST_DETAILS = 1_000

# What our own errors say of the store is for whoever runs the server.
_REPLACED: dict[type[core.BowerbirdError], str] = {
    core.StorageFull: "the disk is full; nothing was stored",
    core.DataGone: "the data directory is gone",
    core.StoreBusy: "the database is busy; try again",
    core.LeaseLost: "another process took this session over; try again",
    core.StoreError: "the database refused the operation; the server's log says why",
}
_TOLD = (
    AgentError,
    core.InvalidArgument,
    core.SessionError,
    core.WorkspaceError,
    core.SandboxUnavailable,
    core.ConfigError,
    core.ModelError,
)


def success(**members: Any) -> dict[str, Any]:
    """Return a result that went well.

    Example:
        >>> success(count=0)
        {'status': 'success', 'count': 0}
    """
    return {"status": "success", **members}


def failure(message: str) -> dict[str, Any]:
    """Return an error: these two members only."""
    return {"status": "error", "message": message}


def agent_not_found(name: str) -> dict[str, Any]:
    """Return the error for a name that no agent has."""
    return failure(f"Agent '{shown(name)}' not found.")


def agent_failed(name: str, details: str) -> dict[str, Any]:
    """Return the error for a run that failed."""
    return failure(f"Failed to execute agent {shown(name)}: {details}")


def session_not_found(session_id: str) -> dict[str, Any]:
    """Return the error for a session that does not exist for the caller."""
    return failure(f"Session {shown(session_id)} not found.")


def memory_failed(session_id: str, details: str) -> dict[str, Any]:
    """Return the error for a memory that could not be read."""
    return failure(f"Failed to retrieve memory for {shown(session_id)}: {details}")


def words_of(error: BaseException, redact: Callable[[str], str]) -> str | None:
    """Return what clients are told of an error, None for one that is for the log alone."""
    for kind, words in _REPLACED.items():
        if isinstance(error, kind):
            return words
    if isinstance(error, AgentRateLimited) and error.retry_after_s:
        return f"{details(str(error), redact)} (try again in {error.retry_after_s:.0f} s)"
    return details(str(error), redact) if isinstance(error, _TOLD) else None


def details(text: str, redact: Callable[[str], str]) -> str:
    """Return the one sentence that a client is told: no secret, no path of this machine, no end of lines."""
    plain = without_paths(redact(" ".join(text[: 4 * LONGEST_DETAILS].split())))
    return plain if len(plain) <= LONGEST_DETAILS else plain[: LONGEST_DETAILS - 1] + "…"
