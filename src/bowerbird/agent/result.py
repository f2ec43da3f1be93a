"""What a run returns to a program (AG-33, AG-35).

Here: the two results and the event that carries one. Not here: how they come about.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from bowerbird.core.events import Done, LiveEvent, RunError, RunStop, StepEvent
from bowerbird.core.usage import Usage
from bowerbird.workspace.compare.results import Changes

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with defaults, which only type checkers need

    from bowerbird.workspace import Branch

    OutputT = TypeVar("OutputT", default=Any)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")


@dataclass(frozen=True, kw_only=True)
class RunResult(Generic[OutputT]):
    """The outcome of `Agent.run`.

    Attributes:
        text: the answer, or what there is of it.
        output: the structured answer; None without `schema` and `data_model`, or when invalid.
        messages: plain messages (`{"role", "content", "id", "ts"}`), inputs first.
        inputs: what was given.
        stop_reason: `completed` or why not.
        error: `type`, `message`, `retryable` of a failure, else None.
        usage: tokens, calls and USD of the run. steps: model answers and tool calls.
        branch: what the run worked on. changes: its changed paths.
    """

    text: str
    output: OutputT | None = None
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    inputs: Any = None
    stop_reason: RunStop = "completed"
    error: RunError | None = None
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    branch: "Branch"
    changes: Changes = field(default_factory=Changes)


class RunDone(Done, Generic[OutputT], frozen=True, tag="done", kw_only=True):
    """The last event of `Agent.stream`: `Done` with the run's result."""

    result: RunResult[OutputT]


AgentEvent = StepEvent | LiveEvent | RunDone[OutputT]
"""What `Agent.stream` yields; the last one is the `RunDone`."""


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The outcome of one step: edit `messages` or answer `pending_calls`, then step again.

    Attributes:
        messages: everything so far, the model's answer last.
        pending_calls: `{"id", "name", "input"}` of the calls that the next step will run.
        stop_reason: `awaiting_tools` while calls are pending, else as for a run.
        usage: of this step. error: as in `RunResult`.
    """

    messages: list[dict[str, Any]]
    pending_calls: list[dict[str, Any]]
    stop_reason: RunStop
    usage: Usage
    error: RunError | None = None
