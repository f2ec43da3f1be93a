"""What the agent loop yields: steps to be stored, and live signs of work.

Here: the loop's events and the outcome of a run. Not here: the wire events of the
server (doors translate), the journal's record form (`store`), the model's own stream
(`core/requests.py`).

A *step event* must be stored before the consumer asks the loop for its next event:
`ToolIntent` is yielded before its tool runs, `ToolOutcome` after it, so a consumer that
commits each step before going on has law 1 and the effect ledger for free.
A *live event* is for viewers only and is never stored.
"""

from typing import Any, Literal, cast

import msgspec

from bowerbird.core.messages import Block, Message
from bowerbird.core.requests import ModelFallback, Retrying
from bowerbird.core.tagged import Tagged
from bowerbird.core.usage import Usage

EffectClass = Literal["read", "plan", "session", "branch", "outside"]
OutcomeStatus = Literal["ok", "error", "denied", "interrupted", "abandoned"]
RunStop = Literal[
    "completed", "max_iterations", "token_budget", "cost_budget", "deadline", "stuck", "cancelled",
    "interrupted", "refused", "truncated", "plan_ready", "awaiting_approval", "awaiting_user",
    "awaiting_tools", "output_invalid", "model_error",
]  # fmt: skip

_WIRE_STOP: dict[str, str] = {
    "completed": "end_turn",
    "max_iterations": "max_turns",
    "cost_budget": "budget",
    "plan_ready": "plan",
    "awaiting_approval": "approval_timeout",
    "model_error": "error",
}


CUT_SHORT = frozenset(("max_turns", "token_budget", "budget", "deadline", "stuck", "truncated"))
"""Ends of turns that a limit ended, by their names in journal and wire: neither done nor failed."""


def wire_stop(stop: RunStop) -> str:
    """Return the name of `stop` in journal and wire."""
    return _WIRE_STOP.get(stop, stop)


# ---------------------------------------------------------------- steps (stored)


class UserStep(Tagged, frozen=True, tag="user"):
    """A user message that entered the running turn (the first one, a steer message).

    `header` says who wrote it, for the model alone: people see the message as it was typed.
    """

    message: Message
    steer: bool = False
    header: str = ""


class AssistantStep(Tagged, frozen=True, tag="assistant"):
    """A complete answer of the model, or what there was of it (`stop_reason="partial"`).

    Attributes:
        left_out: what the model was not shown, as its provider had refused it.
    """

    message: Message
    stop_reason: str
    model: str
    usage: Usage
    invalid_calls: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    left_out: tuple[str, ...] = ()


class ToolIntent(Tagged, frozen=True, tag="tool_intent"):
    """A tool is about to run; `effect` is its class, `mark` where the branch can go back to."""

    call: str
    tool: str
    input: dict[str, Any]
    effect: EffectClass
    mark: str | None = None
    key: str | None = None


class ToolOutcome(Tagged, frozen=True, tag="tool_outcome"):
    """A tool ended, or was not run (`denied`, or an error about its arguments)."""

    call: str
    tool: str
    status: OutcomeStatus
    content: str | list[Block]
    data: dict[str, Any] | None = None
    truncated: bool = False
    tainted: bool = False
    ms: int = 0
    blob: str | None = None

    @property
    def id(self) -> str:
        """The call's id, under the name that results have on wires."""
        return self.call

    @property
    def duration_ms(self) -> int:
        """How long the tool ran."""
        return self.ms

    @property
    def shown_status(self) -> OutcomeStatus:
        """`status` as people see it: a command that exited with another code than 0 has failed."""
        data = self.data or {}
        # Looking at a background command, which has a name, is no failure when that one failed.
        failed = bool(data.get("exit_code")) and "task_id" not in data
        return "error" if failed and self.status == "ok" else self.status

    @property
    def diff(self) -> dict[str, Any] | None:
        """What the call changed in text files, for people: `text`, `added`, `removed`; None = nothing."""
        said: object = (self.data or {}).get("diff")
        diff = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
        return diff if {"text", "added", "removed"} <= diff.keys() else None

    @property
    def is_error(self) -> bool:
        """Whether the model is told that the call failed."""
        return self.status != "ok"


def taint_source(outcome: ToolOutcome) -> str:
    """Return where untrusted text came from, for people: the tool, and the address when it is one.

    >>> taint_source(ToolOutcome("c", "web_fetch", "ok", "x", {"url": "https://a.example/"}))
    'web_fetch https://a.example/'
    """
    url = (outcome.data or {}).get("url")
    return f"{outcome.tool} {url}"[:300] if isinstance(url, str) else outcome.tool


class Injected(Tagged, frozen=True, tag="injected"):
    """Text that the runtime put before the model: notices, inbox, corrective messages."""

    source: Literal["background", "inbox", "schedule", "recovery", "runtime"]
    message: Message
    ids: tuple[str, ...] = ()


class Compaction(Tagged, frozen=True, tag="compaction"):
    """What is sent from now on in place of messages `from_id` … `to_id`; history stays."""

    from_id: str
    to_id: str
    summary: str
    reason: Literal["auto", "overflow", "tool", "user"]
    focus: str | None = None
    transcript: str | None = None


class ApprovalRequest(Tagged, frozen=True, tag="request"):
    """Calls that wait for a person's decision; `expires_at` once it is recorded."""

    id: str
    kind: Literal["approval", "plan", "effect", "budget", "user"]
    calls: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    text: str = ""
    expires_at: str | None = None


class CallAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A person's word about one call of a request.

    Attributes:
        decision: of this call, whatever is decided of the others.
        feedback: why not. command: what to run in place of the call's own `command`.
    """

    decision: Literal["approve", "deny"]
    feedback: str | None = None
    command: str | None = None


class ApprovalAnswer(Tagged, frozen=True, tag="answer"):
    """A person's decision about a request; `calls` has those of its calls that are decided by themselves."""

    id: str
    decision: str
    by: str = ""
    feedback: str | None = None
    calls: dict[str, CallAnswer] = msgspec.field(default_factory=dict[str, CallAnswer])

    def of(self, call: str) -> "ApprovalAnswer":
        """Return what was said of one call."""
        own = self.calls.get(call)
        changes = {} if own is None else {"decision": own.decision, "feedback": own.feedback}
        return msgspec.structs.replace(self, **changes, calls={} if own is None else {call: own})


class ModelSwitch(Tagged, frozen=True, tag="model_switch"):
    """The tier that answers from the next model call on."""

    tier: str
    by: Literal["tool", "user", "task"]


class ModeChange(Tagged, frozen=True, tag="settings"):
    """A run setting changed, say plan mode."""

    changes: dict[str, Any]
    by: Literal["tool", "user"]


class UsageStep(Tagged, frozen=True, tag="usage"):
    """One model call that is not an assistant step (compaction, summary for a title …)."""

    purpose: str
    model: str
    usage: Usage


# ---------------------------------------------------------------- live (never stored)


class TextLive(Tagged, frozen=True, tag="text_delta"):
    """A piece of the answer; `offset` characters of it come before."""

    content: str
    message_id: str
    offset: int


class MessageRestart(Tagged, frozen=True, tag="message_restart"):
    """What was streamed of a message is void: its stream broke off and the model is asked again."""

    message_id: str
    reason: str


class ThinkingLive(Tagged, frozen=True, tag="thinking_delta"):
    """A piece of the reasoning; `offset` characters of it come before."""

    content: str
    message_id: str
    offset: int


class ToolProgress(Tagged, frozen=True, tag="tool_progress"):
    """A running tool says how far it is."""

    call: str
    text: str


class Notice(Tagged, frozen=True, tag="notice"):
    """Something a person should see: compaction, a limit near, a clamped value."""

    kind: str
    text: str


class Egress(Tagged, frozen=True, tag="egress"):
    """A sandboxed process asked for a host: it was let out, or refused."""

    host: str
    port: int
    verdict: str
    bytes_in: int = 0
    bytes_out: int = 0


class BackgroundResult(Tagged, frozen=True, tag="background_result"):
    """Background commands ended; each is `{task_id, status, command, result}`."""

    notifications: tuple[dict[str, str], ...]


class SubagentStart(Tagged, frozen=True, tag="subagent_start"):
    """A subagent begins its task; `subagent_id` is its session, `parent_id` its caller's."""

    subagent_id: str
    task: str
    agent_type: str
    handle: str
    parent_id: str


class SubagentEnd(Tagged, frozen=True, tag="subagent_end"):
    """A subagent ended; `usage` joins its caller's totals, `elapsed` is in seconds."""

    subagent_id: str
    summary: str
    agent_type: str
    usage: Usage
    handle: str
    parent_id: str
    status: str
    tool_count: int
    elapsed: float


class TeammateStatus(Tagged, frozen=True, tag="teammate_status"):
    """A teammate works, waits for work, or has ended."""

    name: str
    role: str
    status: str


class TaskUpdate(Tagged, frozen=True, tag="task_update"):
    """The workspace's task board as it is now, every task in the form of DE-32."""

    tasks: tuple[dict[str, Any], ...]


LandingKind = Literal["land", "undo"]
LandingPhase = Literal["checking", "saving", "writing", "placing", "taking_back", "recording", "over"]


class LandingProgress(Tagged, frozen=True, tag="landing_progress"):
    """How far a landing or an undo of many files is; each phase counts all of its files.

    Attributes:
        kind: `land` or `undo`.
        phase: `checking` against the directory, `saving` what an undo needs, `writing` beside their places,
            `placing`, `recording`; `taking_back` after an error. `over` is the last, however it ended.
        done, total: files of this phase.
        undoes: of an undo: the landing that it takes back.
    """

    kind: LandingKind
    phase: LandingPhase
    done: int
    total: int
    undoes: str | None = None


class SandboxTier(Tagged, frozen=True, tag="sandbox_tier"):
    """Processes are isolated another way than before; `reasons` says why no better one."""

    tier: str
    minimum: str
    reasons: dict[str, str | None]


class Trace(Tagged, frozen=True, tag="trace"):
    """A request to a model or its answer, as recorded while tracing is on."""

    record: dict[str, Any]


# ---------------------------------------------------------------- the end


class RunError(msgspec.Struct, frozen=True):
    """Why a run failed: `{type, message, retryable}`."""

    type: str
    message: str
    retryable: bool = False


class Done(Tagged, frozen=True, tag="done"):
    """The run ended; the last event of every run that was not closed by its consumer."""

    stop_reason: RunStop
    text: str
    usage: Usage
    steps: int
    error: RunError | None = None
    output: Any = None


StepEvent = (
    UserStep
    | AssistantStep
    | ToolIntent
    | ToolOutcome
    | Injected
    | Compaction
    | ApprovalRequest
    | ApprovalAnswer
    | ModelSwitch
    | ModeChange
    | UsageStep
)
LiveEvent = (
    TextLive
    | ThinkingLive
    | ToolProgress
    | Notice
    | Retrying
    | MessageRestart
    | ModelFallback
    | Egress
    | BackgroundResult
    | TaskUpdate
    | TeammateStatus
    | SubagentStart
    | SubagentEnd
    | LandingProgress
    | SandboxTier
    | Trace
)
RunEvent = StepEvent | LiveEvent | Done
