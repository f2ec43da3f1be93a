"""Frames of work beside the dialogue: subagents, teammates, lists of tasks, background commands.

Not here: the dialogue itself (`answers.py`).
"""

from typing import ClassVar

from bowerbird.core.usage import Usage
from bowerbird.core.wire.base import ServerFrame
from bowerbird.core.wire.rows import BackgroundRun, Notification, Task, Todo


class SubagentStart(ServerFrame, frozen=True, tag="subagent_start"):
    """A subagent begins its task.

    Attributes:
        task: what it is to do. agent_type: its role. handle: its short name.
        parent_id: the session of its caller. subagent_id: its own session.
    Example:
        {"type": "subagent_start", "subagent_id": "0123456789ab.sub0", "task": "look", "agent_type": "explore", "handle": "sub0", "parent_id": "0123456789ab", "cursor": 3, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    subagent_id: str
    task: str
    agent_type: str
    handle: str
    parent_id: str


class SubagentEnd(ServerFrame, frozen=True, tag="subagent_end"):
    """A subagent ended.

    Attributes:
        subagent_id: its session. summary: what it reports, at most 2,000 characters. agent_type: its role.
        usage: what it used; part of its caller's totals. handle: its short name.
        parent_id: the session of its caller. status: how it ended, `completed` for one.
        tool_count: its calls of tools. elapsed: seconds.
    Example:
        {"type": "subagent_end", "subagent_id": "0123456789ab.sub0", "summary": "found", "agent_type": "explore", "usage": {"input_tokens": 9, "output_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0, "reasoning_tokens": 0, "repeated_tokens": 0, "model_calls": 3, "tool_calls": 2, "cost": null, "estimated": false, "subagents": null}, "handle": "sub0", "parent_id": "0123456789ab", "status": "completed", "tool_count": 2, "elapsed": 1.5, "cursor": 3, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    subagent_id: str
    summary: str
    agent_type: str
    usage: Usage
    handle: str
    parent_id: str
    status: str
    tool_count: int
    elapsed: float


class TeammateStatus(ServerFrame, frozen=True, tag="teammate_status"):
    """A teammate works, waits for work, or has ended.

    Attributes:
        name: the teammate's. role: what it is there for. status: `working`, `idle`, or how it ended.
    Example:
        {"type": "teammate_status", "name": "ann", "role": "tester", "status": "working", "cursor": 3, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True
    line: ClassVar[str] = "{name} ({role}) is {status}"

    name: str
    role: str
    status: str


class TodoUpdate(ServerFrame, frozen=True, tag="todo_update"):
    """The conversation's own list as it is now.

    Attributes:
        todos: all items.
    Example:
        {"type": "todo_update", "todos": [{"content": "look", "status": "pending", "activeForm": "looking"}], "cursor": 4, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    todos: list[Todo]


class TaskUpdate(ServerFrame, frozen=True, tag="task_update"):
    """The workspace's task board as it is now.

    Attributes:
        tasks: all tasks.
    Example:
        {"type": "task_update", "tasks": [{"id": 1, "subject": "look", "description": "", "status": "pending", "blockedBy": [], "blocks": [], "owner": "", "activeForm": "looking", "metadata": {}}], "cursor": 4, "turn_id": "t_01J"}
    """

    is_plain: ClassVar[bool] = True

    tasks: list[Task]


class BackgroundResult(ServerFrame, frozen=True, tag="background_result"):
    """Background commands ended; sent at once, also to an idle conversation.

    Attributes:
        notifications: one for each.
    Example:
        {"type": "background_result", "notifications": [{"task_id": "bg_1", "status": "completed", "command": "make", "result": "ok"}], "cursor": 4, "turn_id": null}
    """

    is_plain: ClassVar[bool] = True

    notifications: list[Notification]


class BackgroundRuns(ServerFrame, frozen=True, tag="background_runs"):
    """Answers `background` and `cancel_background`.

    Attributes:
        runs: every background command of the branch on record, oldest first.
    Example:
        {"type": "background_runs", "runs": [{"task_id": "bg_1", "status": "running", "command": "make"}], "cursor": 4, "turn_id": null}
    """

    runs: list[BackgroundRun]
