"""Every error that a person, a program or a model may meet, as types.

Here: the hierarchy and what each error carries. Not here: how a door renders them
(exit codes, HTTP statuses), nor errors that never leave their module.

    BowerbirdError
    ├── InvalidArgument (ValueError)      the caller passed something wrong
    │   ├── InvalidWorkspace              the directory is missing or unusable
    │   ├── NotSerializable               a value cannot be written as configuration
    │   ├── ToolDefinitionError           a function cannot become a tool
    │   ├── ToolNameCollision             two tools share a name or alias
    │   └── InvalidThreadId
    ├── ConfigError                       settings are wrong
    │   ├── NoModel                       no model is configured
    │   └── ExtraMissing                  a library that comes with an extra is not installed
    ├── WorkspaceError                    a file operation on a branch was refused
    │   └── NotFound, IsDirectory, …      see below
    ├── ModelError                        a provider failed
    ├── ToolError                         a tool says so to the model
    ├── SandboxUnavailable                the promised isolation cannot be given
    ├── StoreError                        StoreBusy DataGone StorageFull StoreCorrupt StoreTooNew LeaseLost
    └── SessionError                      UnknownSession TurnRunning QueueFull AlreadyAnswered …

Every message says what happened, to which input, and what to do.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from bowerbird.core.usage import Usage


class BowerbirdError(Exception):
    """Base of all errors raised on purpose; `str(error)` is for people.

    Attributes:
        code: snake_case name used on wires and in `--json` output.
    """

    code = "error"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            cls.code = "".join(f"_{c.lower()}" if c.isupper() else c for c in cls.__name__).lstrip("_")


class InvalidArgument(BowerbirdError, ValueError):
    """A parameter has a wrong value; the message names both."""


class MessageTooLarge(InvalidArgument):
    """A message has more text than `limits.message_mb` allows."""


class InvalidWorkspace(InvalidArgument):
    """The workspace directory is missing, not a directory, or cannot be used."""


class NotSerializable(InvalidArgument):
    """A value (say a lambda tool) has no form in a configuration."""


class ToolDefinitionError(InvalidArgument):
    """A function cannot become a tool: hint, docstring or parameter line is missing."""


class ToolNameCollision(InvalidArgument):
    """Two tools of a set share a name or alias; both are named."""


class InvalidThreadId(InvalidArgument):
    """A thread id is too long or malformed; nothing was written."""


class ConfigError(BowerbirdError):
    """Settings are wrong or incomplete; every problem of one load is in `problems`."""

    def __init__(self, message: str, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems) or (message,)


class NoModel(ConfigError):
    """No model is named and none can be chosen."""


class ExtraMissing(ConfigError):
    """What was asked for needs a library that is not installed; the message says what installs it."""


# ---------------------------------------------------------------- workspace


class WorkspaceError(BowerbirdError):
    """A branch refused an operation and changed nothing.

    Attributes:
        path: the virtual path concerned, or None.
    """

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        self.path = path


class NotFound(WorkspaceError):
    """Nothing has this path; similar names are in the message."""


class IsDirectory(WorkspaceError):
    """A file was expected, a directory is there."""


class NotDirectory(WorkspaceError):
    """A directory was expected, something else is there."""


class Exists(WorkspaceError):
    """Something is there already."""


class NotEmpty(WorkspaceError):
    """A directory still has entries and `recursive` was not given."""


class PathEscape(WorkspaceError):
    """The path leaves the workspace, by `..` or through a link."""


class InvalidPath(WorkspaceError):
    """The path is empty, too long, or holds NUL."""


class TooManyLinks(WorkspaceError):
    """More than 40 symbolic links on the way."""


class SpecialFile(WorkspaceError):
    """A FIFO, socket or device: shown, never opened."""


class BinaryFile(WorkspaceError):
    """A text operation met a binary file."""


class NoMatch(WorkspaceError):
    """The text to replace is not in the file."""


class NotUnique(WorkspaceError):
    """The text to replace occurs several times."""


class Stale(WorkspaceError):
    """The thing changed since the caller looked (hash, plan, hunk)."""


class Hidden(WorkspaceError):
    """The path is hidden by `workspace.hide`."""


class ReadOnly(WorkspaceError):
    """The path lies on a read-only mount or in a reserved directory."""


class LimitExceeded(WorkspaceError):
    """A limit in settings was reached; the message names setting and value."""


class InvalidPattern(WorkspaceError):
    """A glob or regular expression cannot be used; the construct is named."""


class SearchTimeout(WorkspaceError):
    """A search ran out of time; `partial` holds what it had found."""

    def __init__(self, message: str, path: str | None = None, partial: object = None) -> None:
        super().__init__(message, path)
        self.partial = partial


class BranchBusy(WorkspaceError):
    """Another process or run writes this branch; fork it to work beside."""


class NotRelated(WorkspaceError):
    """A merge was asked between branches that are not parent and descendant."""


class LandingRefused(WorkspaceError):
    """Nothing landed; `refused` lists `{"path", "reason"}` of every refused path."""

    def __init__(self, message: str, refused: Sequence[Mapping[str, str]]) -> None:
        super().__init__(message)
        self.refused = [dict(row) for row in refused]


class LandingStuck(WorkspaceError):
    """A landing met an error in the middle and another one while it was taken back.

    Reading, diffs and other landings go on; `bowerbird landings fix` leads out.

    Attributes:
        landing: its id.
    """

    def __init__(self, message: str, landing: str) -> None:
        super().__init__(message)
        self.landing = landing


# ---------------------------------------------------------------- models

ModelErrorKind = Literal[
    "auth", "not_found", "rate_limit", "overloaded", "server", "network", "timeout",
    "stream_cut", "bad_request", "context_overflow", "quota", "refused", "local",
]  # fmt: skip


class ModelError(BowerbirdError):
    """A model call failed.

    Attributes:
        kind: what failed; see `ModelErrorKind`.
        status: HTTP status, or None.
        provider, model: who was asked.
        retryable: whether the same request may succeed later.
        retry_after_s: seconds the provider asked to wait, or None.
        request_id: the provider's id of the request, or None.
        usage: what a cut answer used as far as known, or None; set where it is read.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ModelErrorKind,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ModelErrorKind = kind
        self.provider = provider
        self.model = model
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.usage: Usage | None = None


# ---------------------------------------------------------------- tools, sandbox


class ToolError(BowerbirdError):
    """Raised inside a tool to tell the model something; no traceback is shown."""


class SandboxUnavailable(BowerbirdError):
    """The isolation that settings ask for cannot be given; names tier, step, remedy."""


# ---------------------------------------------------------------- store, sessions


class StoreError(BowerbirdError):
    """The database refused; SQL never appears in the message."""


class DataGone(StoreError):
    """The data directory is not there any more; a restart finds it, once it is back."""


class StoreBusy(StoreError):
    """The database stayed locked longer than `store.busy_timeout_s`."""


class StorageFull(StoreError):
    """The disk is full or below `store.min_free_mb`; nothing was stored."""


class StoreCorrupt(StoreError):
    """A database file cannot be read; it was not written to."""


class StoreTooNew(StoreError):
    """The database was written by a newer program; nothing was changed."""


class LeaseLost(StoreError):
    """Another process took this session over; this one must stop."""


class SessionError(BowerbirdError):
    """A request to a session cannot be met in its present state."""


class UnknownSession(SessionError):
    """No session has this id, or the prefix fits several."""


class UnknownTurn(UnknownSession):
    """There is no such turn."""


class TurnRunning(SessionError):
    """The turn has not ended yet."""


class QueueFull(SessionError):
    """Too many inputs wait; `retry_after_s` says when to try again."""

    def __init__(self, message: str, retry_after_s: float = 5.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class NotAllowed(SessionError):
    """The caller may see this, but changing it is somebody else's, say an admin's."""

    code = "forbidden"


class NotQueued(SessionError):
    """The input no longer waits: its turn has begun, or it was taken back before."""


class AlreadyAnswered(SessionError):
    """Someone answered this request before."""


class NoPendingRequest(SessionError):
    """There is no request that this answer could belong to."""
