"""Short forms for conversations of the embedded model's tests."""

from itertools import count
from typing import Any

from bowerbird.core.messages import Message, ToolResultBlock, ToolUseBlock, user_text
from bowerbird.core.requests import ModelRequest, ToolSpec

_ids = count(1)
_PARAMETERS = {
    "read_file": ("path", "offset", "limit"),
    "list_files": ("pattern", "offset", "limit"),
    "search_files": ("pattern", "glob", "offset", "limit", "fixed", "case_sensitive", "context"),
    "write_file": ("path", "content"),
    "edit_file": ("path", "old", "new", "replace_all"),
    "run_python_code": ("code",),
    "bash": ("command", "timeout"),
}


def spec(name: str) -> ToolSpec:
    """Return a built-in tool as a model is told of it."""
    properties = {key: {"type": "string"} for key in _PARAMETERS.get(name, ())}
    return ToolSpec(name, f"the tool {name}", {"type": "object", "properties": properties})


SPECS = tuple(spec(name) for name in _PARAMETERS)


def called(
    name: str,
    arguments: dict[str, Any],
    text: str,
    *,
    is_error: bool = False,
    data: dict[str, Any] | None = None,
) -> tuple[Message, Message]:
    """Return the two messages of a call: the assistant's and its result."""
    call = ToolUseBlock(f"call_{next(_ids)}", name, arguments)
    return Message("assistant", (call,)), Message("user", (ToolResultBlock(call.id, text, is_error, data),))


def asked(
    *messages: Message, system: tuple[str, ...] = (), task: str = "Do it.", **more: Any
) -> ModelRequest:
    """Return a request: a task, then `messages`."""
    return ModelRequest((user_text(task), *messages), system=system, **more)


def read(path: str, text: str) -> tuple[Message, Message]:
    """Return the messages of the reading of a whole file."""
    return called("read_file", {"path": path, "offset": 1}, text, data={"content": text, "next_offset": None})


def found(*rows: tuple[str, int, str], **data: Any) -> tuple[Message, Message]:
    """Return the messages of a search that found these paths, line numbers and texts."""
    matches = [{"path": f"/{path}", "line": line, "text": text} for path, line, text in rows]
    return called("search_files", {"pattern": "x"}, "…", data={"matches": matches, **data})
