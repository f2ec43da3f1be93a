"""What doors hand to the session service and get back: plain values.

Here: requests and answers of the service. Not here: rows (`store`), events (`core`), settings.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

InputKind = Literal["message", "steer", "interrupt", "answer", "notification"]
TurnState = Literal["queued", "running", "waiting", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
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
    flags: dict[str, Any] = field(default_factory=dict[str, Any])
    thinking_effort: str | None = None
    workspace: str | None = None
    policy: str = "review"
    hide: tuple[str, ...] = ()


class Receipt(msgspec.Struct, frozen=True):
    """What an accepted input became (SE-17).

    Attributes:
        position: turns of the session that run or wait before it; 0 = it is the next.
        duplicate: the same (door, key) was accepted before; nothing was started.
    """

    inbox_id: str
    turn_id: str
    position: int
    duplicate: bool = False


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One session as lists show it."""

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


class TurnInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One turn as doors show it."""

    turn_id: str
    thread_id: str
    n: int
    kind: str
    state: TurnState
    waiting_for: str | None
    attempt: int
    stop_reason: str | None
    error: dict[str, Any] | None
    usage: dict[str, Any] | None
    cost: float | None
    snapshot_id: str | None
    started_at: str | None
    ended_at: str | None
