"""What can go wrong with a provider agent, as types (PR-13).

Here: the hierarchy. Not here: when each is raised (the adapters), nor how a door says it.
"""

from bowerbird.core.errors import BowerbirdError, InvalidArgument

SHOWN_CHARS = 500


def shown(text: str) -> str:
    """Return `text` as a message may quote it: whole, or its first 500 characters and how many follow."""
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text):,} characters)"


class AgentError(BowerbirdError):
    """A provider agent could not be run, or failed; `str(error)` is for people and holds no key."""


class AgentNotFound(AgentError, InvalidArgument):
    """No agent has this name."""


class AgentUnavailable(AgentError):
    """The program is not there, cannot run here, or its host does not answer."""


class AgentAuthError(AgentError):
    """A key is missing or rejected, or a person has to sign in first; the message says how."""


class AgentTimeout(AgentError):
    """The run took longer than its limit, or was silent for too long."""


class AgentRateLimited(AgentError):
    """The vendor, or Bowerbird's own limit, asks to wait.

    Attributes:
        retry_after_s: seconds, where it is known.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AgentConfigError(AgentError):
    """Settings of this agent are wrong; the message names the key."""


class AgentSessionError(AgentError):
    """The session belongs to another agent, or cannot be continued."""


class AgentContextError(AgentError):
    """Prompt and history are more than the model takes."""


class AgentExecutionError(AgentError):
    """The agent ran and failed.

    Attributes:
        exit_code: of its program; None where it is none.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
