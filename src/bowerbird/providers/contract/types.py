"""Requests to provider agents, their answers, events and probes: frozen, and JSON as they stand (PR-10).

Here: the types and the check of a prompt. Not here: who makes or reads them.
"""

import uuid
from enum import StrEnum
from typing import Any, Literal

import msgspec

from bowerbird.core.errors import InvalidArgument

MAX_PROMPT_CHARS = 200_000

AgentType = Literal["api", "cli", "local"]
ProbeStatus = Literal["operative", "key_missing", "unreachable", "unavailable"]
EventKind = Literal["text", "thinking", "tool", "change", "usage", "error", "done"]


class AgentCapabilities(StrEnum):
    """What an agent can do, as far as its vendor says."""

    CODE_GENERATION = "code_generation"
    CODE_EDITING = "code_editing"
    CODE_ANALYSIS = "code_analysis"
    TEXT_COMPLETION = "text_completion"
    STREAMING = "streaming"
    MULTI_TURN = "multi_turn"
    CODE_EXECUTION = "code_execution"
    VISION = "vision"
    TOOL_USE = "tool_use"
    EXTENDED_THINKING = "extended_thinking"
    FILE_OPERATIONS = "file_operations"
    CACHING = "caching"
    BATCH = "batch"
    CLOUD_INFRASTRUCTURE = "cloud_infrastructure"
    CLOUD_STORAGE = "cloud_storage"
    TASK_DECOMPOSITION = "task_decomposition"


class BranchRef(msgspec.Struct, frozen=True):
    """Which branch an agent works on; `snapshot_id` None is its newest state."""

    branch_id: str
    snapshot_id: str | None = None


class ChangeSummary(msgspec.Struct, frozen=True):
    """What a run changed on its branch; paths relative to the workspace, sorted."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    added_lines: int = 0
    removed_lines: int = 0


class MemoryLog(msgspec.Struct, frozen=True):
    """One message of a provider session, as `get_agent_memory` gives it (PR-32)."""

    role: Literal["user", "assistant", "system"]
    content: str


class AgentRequest(msgspec.Struct, frozen=True):
    """What an agent is asked.

    Attributes:
        context: put after the prompt as a fenced JSON block.
        capabilities: what the agent must have; one that lacks any is not called.
        timeout: seconds; None = the agent's own.
        id: the caller's name of this request, copied to the answer as `request_id`.
        session_id: the provider session to go on with; None begins one.
        max_cost: US dollars that a program may spend on its model; None = no limit.
        branch: where a program works; None = a fork of the caller's branch, or a new one.
        direct: what a program changes lands at its end without review, where settings allow that (PR-21).
        history: what was said in the session before, oldest first; the registry sets it (PR-31).
        native_session_id: the vendor's own name of that session, from `native_session_id` in the metadata
            of its last answer; the registry sets it. An agent that cannot go on with it uses `history` as
            text and says so in `metadata["history"]`.
    """

    prompt: str
    context: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    capabilities: tuple[AgentCapabilities, ...] = ()
    timeout: float | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    id: str | None = None
    trace_id: str = msgspec.field(default_factory=lambda: str(uuid.uuid4()))
    session_id: str | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    branch: BranchRef | None = None
    direct: bool = False
    history: tuple[MemoryLog, ...] = ()
    native_session_id: str | None = None


class AgentResponse(msgspec.Struct, frozen=True):
    """What came of a request; an error keeps the text that had arrived.

    Attributes:
        execution_time: seconds.
        cost: in US dollars; None where nobody knows.
        changes: what a program changed on its branch; None for agents that have no files.
    """

    content: str
    trace_id: str
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    error: str | None = None
    execution_time: float = 0.0
    tokens_used: int | None = None
    cost: float | None = None
    request_id: str | None = None
    session_id: str | None = None
    changes: ChangeSummary | None = None

    @property
    def success(self) -> bool:
        """Whether the run ended as it should."""
        return self.error is None


class AgentEvent(msgspec.Struct, frozen=True):
    """Something that happened in a run; the last one is `done` and carries the answer.

    Attributes:
        text: of `text`, `thinking` and `error`; the name and title of `tool`; the path of `change`.
        data: what else the adapter knows (usage figures, a tool's input).
    """

    kind: EventKind
    text: str = ""
    data: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    response: AgentResponse | None = None


class AgentProbe(msgspec.Struct, frozen=True):
    """Whether an agent can be used now, and why not; `checked_at` in ISO 8601, UTC."""

    name: str
    status: ProbeStatus
    detail: str
    latency_ms: float | None = None
    version: str | None = None
    checked_at: str = ""


class AgentInfo(msgspec.Struct, frozen=True):
    """An agent as lists show it (PT-4), without its probe; `max_cost` is of one run, in US dollars."""

    name: str
    display_name: str
    type: AgentType
    description: str
    capabilities: tuple[AgentCapabilities, ...]
    default_model: str | None
    transports: tuple[str, ...]
    max_cost: float | None = None


def check_prompt(prompt: str) -> None:
    """Raise InvalidArgument for a prompt that no agent may be asked (PR-14)."""
    if not prompt.strip():
        raise InvalidArgument("the prompt is blank; say what the agent should do")
    if len(prompt) > MAX_PROMPT_CHARS:
        raise InvalidArgument(
            f"the prompt has {len(prompt):,} characters, {MAX_PROMPT_CHARS:,} are allowed"
            "; put long material in a file"
        )
    if "\0" in prompt:
        raise InvalidArgument("the prompt has a NUL character; remove it")
