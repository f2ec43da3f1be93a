"""What doors hand to the session service and get back: plain values.

Here: requests and answers of the service. Not here: rows (`store`), events (`core`), settings.
"""

from typing import Any, Literal

import msgspec

from bowerbird.store.rows.turn_value import Turn

InputKind = Literal["message", "steer", "interrupt", "answer", "notification"]
TurnState = Literal["queued", "running", "waiting", "done", "failed", "cancelled", "interrupted"]
DISCONNECTED = "disconnected"  # stop reason of a turn whose last viewer left (SV-49); it can be resumed


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """How a session begins; every field may be left out.

    Attributes:
        thread_id: None makes one of 12 hex characters.
        workspace: absolute path of the directory, None for an empty branch.
        policy: landing policy of the branch: `review`, `turn` or `step`.
        hide: globs that do not exist for the agent.
        flags: `enable_approval`, `enable_plan_mode`, `enable_teams`, `enable_thinking`, `model` …
    """

    thread_id: str | None = None
    kind: str = "cli"
    channel: str | None = None
    chat_id: str | None = None
    counter: int = 0
    owner: str | None = None
    title: str | None = None
    preset: str | None = None
    system_prompt: str | None = None
    flags: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    thinking_effort: str | None = None
    workspace: str | None = None
    policy: str = "review"
    hide: tuple[str, ...] = ()


class Receipt(msgspec.Struct, frozen=True):
    """What an accepted input became.

    Attributes:
        position: turns of the session that run or wait before it; 0 = it is the next.
        duplicate: the same (door, key) was accepted before; nothing was started.
        open_request: the question that a person has to answer before it is its turn, None for none.
    """

    inbox_id: str
    turn_id: str
    position: int
    duplicate: bool = False
    open_request: str | None = None


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One session as lists show it.

    Attributes:
        turns: number of its newest turn, a fork's inherited ones counted.
        queued: turns that have not begun. messages: what people said and were answered.
        cost: USD of all its model calls, None when one of them has no price.
        pending: kind of the request that waits for a person, None for none.
        changed_files: files of its branch that differ from the workspace, as a review shows them.
        stop_reason: why its newest turn ended, None where that has not.
    """

    thread_id: str
    kind: str
    title: str | None
    status: str
    workspace: str | None
    branch_id: str | None
    preset: str | None
    owner: str | None
    flags: dict[str, Any]
    auto_approve: bool
    turns: int
    queued: int
    cost: float | None
    last_seq: int
    parent: str | None
    created_at: str
    updated_at: str
    system_prompt: str | None = None
    thinking_effort: str | None = None
    messages: int = 0
    pending: str | None = None
    changed_files: int = 0
    stop_reason: str | None = None


class Tokens(msgspec.Struct, frozen=True):
    """Totals of every model call of a session, whoever made it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    calls: int = 0
    cost: float | None = 0.0


class MessageView(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a session for people: what was typed, or what was answered.

    Attributes:
        cursor: seq of its record. content: its text; images as `[image: name]`.
        sender: of a user's message: `id`, `name`, `door`.
        final: whether an assistant's message ended its turn (others came before tool calls).
    """

    id: str
    role: Literal["user", "assistant"]
    content: str
    created_at: str
    turn_id: str | None
    cursor: int
    sender: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    final: bool = True
    thinking: str = ""


class CallView(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call with its full input and result; `status` None while it runs."""

    call_id: str
    turn_id: str | None
    tool: str
    input: Any
    status: str | None = None
    content: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    data: dict[str, Any] | None = None
    truncated: bool = False
    tainted: bool = False
    ms: int = 0
    blob: str | None = None
    cursor: int = 0


class PendingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for a person."""

    request_id: str
    thread_id: str
    turn_id: str
    kind: str
    calls: tuple[str, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    text: str = ""
    asked_at: str = ""
    expires_at: str | None = None
    cursor: int = 0


class QueuedInput(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted input whose turn has not begun."""

    inbox_id: str
    turn_id: str
    position: int
    kind: str
    text: str
    sender: dict[str, Any]
    received_at: str


class TurnInfo(Turn, frozen=True, kw_only=True):
    """One turn as doors show it."""

    state: TurnState = "queued"
    error: dict[str, Any] | None
    usage: dict[str, Any] | None
