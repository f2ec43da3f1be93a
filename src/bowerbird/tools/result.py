"""What a tool returns, and how any value that a function returns becomes that (TO-5).

Here: `ToolResult` and the conversion. Not here: cutting long results (`limits.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from bowerbird.core.messages import Block
from bowerbird.tools.control import Control


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a tool's own work.

    Attributes:
        content: what the model sees: text, or blocks when there is an image.
        data: what programs get; None when there is nothing beside the text.
        is_error: the tool failed and says so.
        truncated: `content` was cut; its marker says where the rest is.
        tainted: `content` holds text from outside that nobody vouches for.
        blob: id of stored bytes that belong to the result, or None.
        control: what the loop is asked to do, or None.

    Example:
        >>> ToolResult("done", data={"files": 2}).is_error
        False
    """

    content: str | list[Block]
    data: dict[str, Any] | None = None
    is_error: bool = False
    truncated: bool = False
    tainted: bool = False
    blob: str | None = None
    control: Control | None = None

    @classmethod
    def error(cls, message: str) -> "ToolResult":
        """Return a failed result; `data` is `{"error": message}` as for every tool."""
        return cls(message, data={"error": message}, is_error=True)

    @property
    def text(self) -> str:
        """The text of `content`, images left out."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(getattr(block, "text", "") for block in self.content).strip("\n")


def to_result(value: object) -> ToolResult:
    """Return what a function returned as a `ToolResult`.

    A string is content; a dict is data and its compact JSON the content, an error when
    it has an `error`; any other JSON value becomes `{"result": value}`. Dataclasses,
    msgspec and pydantic objects count as their JSON form.

    Raises:
        TypeError: the value has no JSON form.
    """
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, str):
        return ToolResult(value)
    plain = _plain(value)
    if not isinstance(plain, dict):
        plain = {"result": plain}
    data = cast("dict[str, Any]", plain)
    failed = data.get("error") not in (None, False)
    return ToolResult(compact_json(data), data=data, is_error=failed)


def compact_json(value: object) -> str:
    """Return JSON without spaces, non-ASCII characters kept."""
    return msgspec.json.encode(value).decode()


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    plain = dump(mode="json") if callable(dump) else msgspec.to_builtins(value, enc_hook=_pydantic_part)
    if isinstance(plain, Mapping):
        return {str(k): v for k, v in cast("Mapping[Any, Any]", plain).items()}
    return plain


def _pydantic_part(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no JSON form")
