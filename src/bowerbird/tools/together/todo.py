"""The list of one conversation: `todo_write`, `todo_add`, `todo_complete`, `todo_list` (TO-37, DE-45).

Here: what a model asks for and sees. Not here: the list itself (`boards/todos.py`), the task board,
which all conversations of a workspace share (`board.py`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, Protocol, TypedDict

from bowerbird.core.errors import ToolError
from bowerbird.tools.context import ToolContext
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool

_SERIAL = "todo list"


class TodoEntry(TypedDict):
    """One item of the list."""

    content: str
    status: Literal["pending", "in_progress", "completed"]
    activeForm: NotRequired[str]


class TodoList(Protocol):
    """The lists that calls work on, each on its session's; results hold the whole list.

    Refusals are InvalidArgument and change nothing.
    """

    async def write(self, items: Sequence[Mapping[str, Any]], call: ToolContext) -> ToolResult:
        """Replace all."""
        ...

    async def add(self, content: str, form: str, call: ToolContext) -> ToolResult:
        """Add a pending item."""
        ...

    async def complete(self, content: str, call: ToolContext) -> ToolResult:
        """Mark an item done."""
        ...

    async def all(self, call: ToolContext) -> ToolResult:
        """Return the list."""
        ...


def todo_tools(todos: TodoList | None) -> list[Tool]:
    """Return the four tools; without lists they can be shown and every call is refused."""
    return [
        Tool(
            _todo_write(todos),
            effect="session",
            serial=_SERIAL,
            aliases=("write_todos",),
            parameters={"todos": "items"},
        ),
        Tool(_todo_add(todos), effect="session", serial=_SERIAL),
        Tool(_todo_complete(todos), effect="session", serial=_SERIAL),
        Tool(_todo_list(todos), effect="read"),
    ]


def _there(todos: TodoList | None) -> TodoList:
    if todos is None:
        raise ToolError("no list is kept here")
    return todos


def _todo_write(todos: TodoList | None) -> Callable[..., Awaitable[ToolResult]]:
    async def todo_write(items: list[TodoEntry], context: ToolContext) -> ToolResult:
        """Replace this conversation's list of steps: at most 20, at most one in_progress.

        Args:
            items: The whole list; activeForm says what somebody who does the step is doing.
        """
        return await _there(todos).write(items, context)

    return todo_write


def _todo_add(todos: TodoList | None) -> Callable[..., Awaitable[ToolResult]]:
    async def todo_add(content: str, activeForm: str, context: ToolContext) -> ToolResult:
        """Add a step to this conversation's list.

        Args:
            content: What is to be done.
            activeForm: What somebody who does it is doing, say "Adding tests".
        """
        return await _there(todos).add(content, activeForm, context)

    return todo_add


def _todo_complete(todos: TodoList | None) -> Callable[..., Awaitable[ToolResult]]:
    async def todo_complete(content: str, context: ToolContext) -> ToolResult:
        """Mark a step of this conversation's list as done.

        Args:
            content: The step, as the list has it.
        """
        return await _there(todos).complete(content, context)

    return todo_complete


def _todo_list(todos: TodoList | None) -> Callable[..., Awaitable[ToolResult]]:
    async def todo_list(context: ToolContext) -> ToolResult:
        """Show this conversation's list of steps."""
        return await _there(todos).all(context)

    return todo_list
