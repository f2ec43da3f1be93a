"""The list of one session: what it may hold, and its changes (DE-45).

Here: the rules, pure, and a session's list as the tools use it. Not here: rows (`store/rows/todos.py`), the
tools (`tools/together/todo.py`), the board, which is another thing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.store.rows.todos import TodoItem, put_todos, session_todos
from bowerbird.tools.result import ToolResult

if TYPE_CHECKING:
    from bowerbird.store.store import Store
    from bowerbird.tools.context import ToolContext

MAX_ITEMS = 20
MAX_CONTENT = 2_000
STATUSES = ("pending", "in_progress", "completed")

_GLYPHS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}
Items = Sequence[TodoItem]


def checked(items: Items) -> list[TodoItem]:
    """Return a list that may be kept.

    Raises:
        InvalidArgument: more than 20 items, two in progress, an empty content, an unknown status.
    """
    if len(items) > MAX_ITEMS:
        raise InvalidArgument(f"the list would have {len(items)} items; at most {MAX_ITEMS} are allowed")
    for item in items:
        if item.status not in STATUSES:
            raise InvalidArgument(f"status is {item.status!r}; use {', '.join(STATUSES)}")
        if not item.content.strip():
            raise InvalidArgument("content is empty; say what is to be done")
        if len(item.content) > MAX_CONTENT or len(item.activeForm) > MAX_CONTENT:
            raise InvalidArgument(f"content and activeForm have at most {MAX_CONTENT} characters")
    active = [item.content for item in items if item.status == "in_progress"]
    if len(active) > 1:
        raise InvalidArgument(f"{len(active)} items are in_progress ({'; '.join(active)}); one may be")
    return list(items)


def written(given: Sequence[Mapping[str, Any]]) -> list[TodoItem]:
    """Return the list that replaces all; raises InvalidArgument."""
    return checked([_item(row) for row in given])


def added(items: Items, content: str, form: str) -> list[TodoItem]:
    """Return the list with one more pending item; raises InvalidArgument."""
    from bowerbird.boards.words import active_form

    return checked([*items, TodoItem(content, "pending", form or active_form(content))])


def completed(items: Items, content: str) -> list[TodoItem]:
    """Return the list with an item done: the first of this content that is open, else the first.

    Raises:
        InvalidArgument: there is no such item; those there are, are listed.
    """
    same = [index for index, item in enumerate(items) if item.content.strip() == content.strip()]
    if not same:
        known = "; ".join(item.content for item in items) or "none"
        raise InvalidArgument(f"there is no item {content!r}; there are: {known}")
    index = next((i for i in same if items[i].status != "completed"), same[0])
    done = msgspec.structs.replace(items[index], status="completed")
    return checked([*items[:index], done, *items[index + 1 :]])


def todo_lines(items: Items) -> str:
    """Return the readable list: a line per item, then how many are done."""
    if not items:
        return "The list is empty."
    lines = [
        f"{_GLYPHS[item.status]} {item.activeForm if item.status == 'in_progress' else item.content}"
        for item in items
    ]
    done = sum(1 for item in items if item.status == "completed")
    return "\n".join([*lines, "", f"{done} of {len(items)} done"])


class Todos:
    """The lists of all sessions (`tools/together/todo.py`'s `TodoList`); each call reads it."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def write(self, items: Sequence[Mapping[str, Any]], call: "ToolContext") -> ToolResult:
        """Replace all."""
        return await self._change(lambda _: written(items), call)

    async def add(self, content: str, form: str, call: "ToolContext") -> ToolResult:
        """Add a pending item."""
        return await self._change(lambda present: added(present, content, form), call)

    async def complete(self, content: str, call: "ToolContext") -> ToolResult:
        """Mark an item done."""
        return await self._change(lambda present: completed(present, content), call)

    async def items(self, session: str) -> list[TodoItem]:
        """Return the items of a session's list."""
        return await self._store.read(lambda c: session_todos(c, session))

    async def all(self, call: "ToolContext") -> ToolResult:
        """Return the list."""
        return _result(await self.items(call.session))

    async def _change(self, change: Callable[[Items], list[TodoItem]], call: "ToolContext") -> ToolResult:
        def apply(connection: Any) -> ToolResult:
            items = change(session_todos(connection, call.session))
            put_todos(connection, call.session, items)
            return _result(items)

        if call.change is None:
            return await self._store.write(apply)
        return await call.change(apply)


def _item(row: Mapping[str, Any]) -> TodoItem:
    from bowerbird.boards.words import active_form

    content = str(row.get("content") or "")
    form = str(row.get("activeForm") or "") or active_form(content)
    return TodoItem(content, str(row.get("status") or "pending"), form)


def _result(items: Items) -> ToolResult:
    return ToolResult(todo_lines(items), data={"todos": [msgspec.to_builtins(item) for item in items]})
