"""The task board's tools: `task_create`, `task_get`, `task_update`, `task_list` (TO-37, DE-34 … DE-40).

Here: what a model asks for and sees. Not here: the board itself (`bowerbird.boards`), schedules, whose tools
are `list_tasks` and `cancel_task`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

from bowerbird.core.errors import ToolError
from bowerbird.tools.context import ToolContext
from bowerbird.tools.result import ToolResult, to_result
from bowerbird.tools.tool import Tool

Task = dict[str, Any]
_SERIAL = "task board"  # calls of one answer take effect in their order


class TaskBoard(Protocol):
    """The boards that calls work on, each on its session's.

    Refusals are InvalidArgument and change nothing.
    """

    async def create(self, subject: str, description: str, active_form: str, call: ToolContext) -> Task:
        """Add a task and return it."""
        ...

    async def get(self, task_id: object, call: ToolContext) -> Task:
        """Return a task."""
        ...

    async def update(self, task_id: object, changes: Mapping[str, Any], call: ToolContext) -> Task:
        """Change the named fields of a task and return it; None = as it is."""
        ...

    async def all(self, call: ToolContext) -> tuple[str, list[Task]]:
        """Return the readable list and the tasks, in numeric order."""
        ...


def board_tools(board: TaskBoard | None) -> list[Tool]:
    """Return the four tools; without a board they can be listed and every call is refused."""
    return [
        Tool(_task_create(board), effect="session", serial=_SERIAL),
        Tool(_task_get(board), effect="read"),
        Tool(_task_update(board), effect="session", serial=_SERIAL),
        Tool(_task_list(board), effect="read"),
    ]


def _there(board: TaskBoard | None) -> TaskBoard:
    if board is None:
        raise ToolError("no task board is kept here")
    return board


def _task_create(board: TaskBoard | None) -> Callable[..., Awaitable[ToolResult]]:
    async def task_create(
        subject: str, context: ToolContext, description: str = "", activeForm: str = ""
    ) -> ToolResult:
        """Add a task to the workspace's task board, which all its conversations share.

        Args:
            subject: What is to be done, in a few words.
            description: What somebody who takes the task must know.
            activeForm: What somebody who does it is doing, say "Adding tests".
        """
        return to_result(await _there(board).create(subject, description, activeForm, context))

    return task_create


def _task_get(board: TaskBoard | None) -> Callable[..., Awaitable[ToolResult]]:
    async def task_get(taskId: int | str, context: ToolContext) -> ToolResult:
        """Return one task of the task board with everything known of it.

        Args:
            taskId: Its number.
        """
        return to_result(await _there(board).get(taskId, context))

    return task_get


def _task_update(board: TaskBoard | None) -> Callable[..., Awaitable[ToolResult]]:
    async def task_update(
        taskId: int | str,
        context: ToolContext,
        status: Literal["pending", "in_progress", "completed", "deleted"] | None = None,
        subject: str | None = None,
        description: str | None = None,
        activeForm: str | None = None,
        owner: str | None = None,
        addBlockedBy: list[int | str] | None = None,
        addBlocks: list[int | str] | None = None,
        removeBlockedBy: list[int | str] | None = None,
        removeBlocks: list[int | str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ToolResult:
        """Change a task of the task board; a refused change changes nothing.

        A task that others block can be neither started nor completed. Completing a task frees what it blocks.
        To claim a task set owner and status in_progress together.

        Args:
            taskId: Its number.
            status: The new state; deleted removes the task.
            subject: What is to be done.
            description: What somebody who takes the task must know.
            activeForm: What somebody who does it is doing.
            owner: Who does it; empty for nobody.
            addBlockedBy: Numbers of tasks that must be completed before this one.
            addBlocks: Numbers of tasks that wait for this one.
            removeBlockedBy: Numbers of tasks that this one waits for no more.
            removeBlocks: Numbers of tasks that wait for this one no more.
            metadata: Keys to set; null deletes a key.
        """
        changes = {
            "status": status, "subject": subject, "description": description, "activeForm": activeForm,
            "owner": owner, "addBlockedBy": addBlockedBy, "addBlocks": addBlocks,
            "removeBlockedBy": removeBlockedBy, "removeBlocks": removeBlocks, "metadata": metadata,
        }  # fmt: skip
        return to_result(await _there(board).update(taskId, changes, context))

    return task_update


def _task_list(board: TaskBoard | None) -> Callable[..., Awaitable[ToolResult]]:
    async def task_list(context: ToolContext) -> ToolResult:
        """List the task board: state, number, subject, what blocks it, owner; not schedules (list_tasks)."""
        text, tasks = await _there(board).all(context)
        return ToolResult(text, data={"tasks": tasks})

    return task_list
