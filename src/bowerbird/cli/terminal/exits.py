"""Exit codes of the command (UI-60), and which one an end or an error gets. Pure.

Here: the numbers and the two mappings. Not here: messages, leaving the process.
"""

from bowerbird.core.errors import (
    BowerbirdError,
    ConfigError,
    InvalidArgument,
    LandingRefused,
    ModelError,
    NotFound,
    PathEscape,
    SandboxUnavailable,
    StoreCorrupt,
    StoreTooNew,
    UnknownSession,
)

DONE = 0
FAILED = 1
USAGE = 2
PARTLY = 3
APPROVAL = 4
LIMIT = 5
SANDBOX = 6
CONFIG = 78
TIMEOUT = 124
INTERRUPTED = 130
PIPE = 141
TERMINATED = 143

MEANINGS = {
    DONE: "done",
    FAILED: "failed: the turn (it can be resumed, its id is on standard error), a server, the database",
    USAGE: "wrong usage: unknown option, command, session, landing or path",
    PARTLY: "partly done, or nothing because of conflicts; they are listed",
    APPROVAL: "an approval was needed and nobody was there to give it",
    LIMIT: "stopped by a limit: turns, tokens, money, time",
    SANDBOX: "the sandbox is weaker than the settings demand",
    CONFIG: "the settings, or a key or token, are missing or wrong",
    TIMEOUT: "the run took longer than --timeout",
    INTERRUPTED: "interrupted (Ctrl+C)",
    PIPE: "the reader of the output went away",
    TERMINATED: "terminated",
}
"""Every code a command may end with; the manual's table is made of this."""

_LIMITS = frozenset({"max_turns", "token_budget", "budget", "deadline", "truncated"})
_UNANSWERED = frozenset({"approval_timeout", "awaiting_user"})
_STOPPED = frozenset({"cancelled", "interrupted", "disconnected"})


class Refused(BowerbirdError):
    """A server does not do what was asked; a command that it ends has `exit_code`."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ServerAway(Refused):
    """A server does not answer now; one that restarts will."""


class NothingToLand(Refused):
    """A server has nothing to land, which is an answer, as it is without a server."""


class CliExit(Exception):
    """The command ends here with `code`; `message`, if any, goes to standard error."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message


_ENDS = {
    "max_turns": "every model call that it may make is made (--max-turns, agent.max_turns)",
    "token_budget": "its tokens are used up (agent.max_token_budget)",
    "budget": "the next call may cost more than is left (--max-cost, budgets)",
    "deadline": "its time is over",
    "stuck": "it repeated the same calls; say what it should do differently",
    "truncated": "the answer is longer than the model can write",
    "refused": "the model declined to answer",
    "disconnected": "nobody was watching it any more",
    "approval_timeout": "nobody answered its question in time",
    "crash_loop": "it crashed several times in a row",
    "output_invalid": "the answer did not have the form that was asked for",
}


def why_it_ended(stop_reason: str | None) -> str:
    """Return in words why a turn ended early; "" for one that came to its end, or that a person stopped.

    Example:
        >>> why_it_ended("truncated"), why_it_ended("end_turn")
        ('the answer is longer than the model can write', '')
    """
    if stop_reason in ("end_turn", "plan", "cancelled", "interrupted", None):
        return ""
    return _ENDS.get(stop_reason, stop_reason)


def ended_as(stop_reason: str | None, *, failed: bool) -> str:
    """Return how a turn ended, for a person who looks elsewhere.

    Example:
        >>> ended_as("end_turn", failed=False), ended_as("deadline", failed=False)
        ('done', 'stopped: its time is over')
    """
    if failed:
        return how_it_ended(stop_reason)
    if why := why_it_ended(stop_reason):
        return f"stopped: {why}"
    return {"end_turn": "done", "plan": "a plan waits for you"}.get(stop_reason or "", "stopped")


def how_it_ended(stop_reason: str | None) -> str:
    """Return how the error of a turn begins: a limit that is reached is no failure."""
    return "stopped" if stop_reason in _LIMITS else "the turn failed"


def code_of_turn(state: str, stop_reason: str | None, *, denied_last: bool = False) -> int:
    """Return the exit code of a one-shot run.

    Args:
        state: state of the turn. stop_reason: its wire name.
        denied_last: a call was denied for want of a person before the final answer.

    Example:
        >>> code_of_turn("done", "max_turns"), code_of_turn("done", "end_turn", denied_last=True)
        (5, 4)
    """
    reason = stop_reason or ""
    if reason in _LIMITS:
        return LIMIT
    if state == "waiting" or reason in _UNANSWERED:
        return APPROVAL
    if reason in _STOPPED or state in ("cancelled", "interrupted"):
        return INTERRUPTED
    if state == "done" and reason in ("end_turn", "plan", ""):
        return APPROVAL if denied_last else DONE
    return FAILED


def code_of_error(error: BaseException) -> int:
    """Return the exit code of an error that ended the command.

    Example:
        >>> code_of_error(ConfigError("x"))
        78
    """
    if isinstance(error, CliExit):
        return error.code
    if isinstance(error, Refused):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return PIPE
    if isinstance(error, ConfigError | StoreTooNew | StoreCorrupt):
        return CONFIG
    if isinstance(error, InvalidArgument | UnknownSession | NotFound | PathEscape):
        return USAGE
    if isinstance(error, LandingRefused):
        return PARTLY
    if isinstance(error, SandboxUnavailable):
        return SANDBOX
    if isinstance(error, BowerbirdError | ModelError | OSError):
        return FAILED
    return FAILED
