"""What frames hold lists of: files, calls, tasks, background commands. Plain data that other rooms make.

Here: their members. Not here: frames.
"""

from typing import Any, NotRequired, TypedDict

import msgspec

from bowerbird.core.usage import Usage


class FileRow(TypedDict):
    """A file of the conversation's branch: its last name, its path from the workspace's root, its bytes."""

    name: str
    path: str
    size: int


class ToolDiff(TypedDict):
    """What a call changed: hunks of a unified diff, cut at 8,000 characters, and how many lines in all."""

    text: str
    added: int
    removed: int


class ToolUse(TypedDict):
    """A call of a tool: the tool's name, its arguments, the call's id.

    When it is asked about: what it would change, and the permission rules that "always" would keep.
    """

    name: str
    input: dict[str, Any]
    id: str
    diff: NotRequired[ToolDiff]
    rules: NotRequired[list[str]]


class Todo(TypedDict):
    """An item of the conversation's own list; `status` is `pending`, `in_progress` or `completed`."""

    content: str
    status: str
    activeForm: NotRequired[str]


class Task(TypedDict):
    """A task of the workspace's board; `blockedBy` and `blocks` hold the numbers of other tasks."""

    id: int
    subject: str
    description: NotRequired[str]
    status: NotRequired[str]
    blockedBy: NotRequired[list[int]]
    blocks: NotRequired[list[int]]
    owner: NotRequired[str | None]
    activeForm: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]


class Notification(TypedDict):
    """A background command that ended: 80 characters of it, and the last 500 of its output."""

    task_id: str
    status: str
    command: str
    result: str


class BackgroundRun(TypedDict):
    """A background command of the branch, running or ended."""

    task_id: str
    status: str
    command: str
    exit_code: NotRequired[int | None]
    duration_ms: NotRequired[int | None]
    tail: NotRequired[str]
    output: NotRequired[str]
    total_bytes: NotRequired[int]
    truncated: NotRequired[bool]
    spill: NotRequired[str | None]


class CallUsage(TypedDict, total=False):
    """What one call of a model used; `cost` is in USD, null = the model has no known price."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost: float | None
    estimated: bool


class Sender(TypedDict):
    """Who said something: the user's id and name, and the door it came through; null = not known."""

    id: str | None
    name: str | None
    door: str | None


class TurnUsage(msgspec.Struct, frozen=True):
    """What all model calls of a turn used, those of its subagents included.

    Attributes:
        input_tokens: not read from the provider's cache. output_tokens: with reasoning.
        last_input_tokens: input of the main loop's last call, with what a cache held.
        plan_mode: whether plan mode is on now.
        cache_read_tokens: read from the provider's cache. cache_write_tokens: written to it.
        reasoning_tokens: the part of the output that was reasoning.
        cost: in USD; null = the model has no known price.
        subagents: the part that subagents and teammates used, with members of the same names; {} = none.
    """

    input_tokens: int
    output_tokens: int
    last_input_tokens: int = 0
    plan_mode: bool = False
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    subagents: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, usage: Usage, last_input: int, *, plan_mode: bool) -> "TurnUsage":
        """Return a turn's usage in this form.

        Args:
            last_input: input of the main loop's last call. plan_mode: whether it is on now.
        """
        return cls(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            last_input_tokens=last_input,
            plan_mode=plan_mode,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            cost=usage.cost,
            subagents=msgspec.to_builtins(usage.subagents) if usage.subagents else {},
        )
