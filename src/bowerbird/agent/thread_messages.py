"""Messages in the shapes that programs written for LangGraph give and expect (AG-69). Pure.

Here: their forms in, ours out with the attributes that such programs read. Not here: threads (`api.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bowerbird.core.messages import Message, message_to_data

_ROLES = {"human": "user", "ai": "assistant", "HumanMessage": "user", "AIMessage": "assistant"}
_TYPES = {"user": "human", "assistant": "ai"}


class ThreadMessage(dict[str, Any]):
    """A message as `{"role", "content"}`, whose text, calls and type can also be read as attributes.

    Example:
        >>> message = ThreadMessage(role="assistant", content=[{"type": "text", "text": "hello"}])
        >>> message.content, message.type, message["role"]
        ('hello', 'ai', 'assistant')
    """

    @property
    def content(self) -> str:
        """Its text."""
        texts = [str(block["text"]) for block in self._blocks if block.get("type") == "text"]
        return "\n".join(texts)

    @property
    def type(self) -> str:
        """`human`, `ai`, or `tool` for results of tools."""
        if any(block.get("type") == "tool_result" for block in self._blocks):
            return "tool"
        return _TYPES.get(str(self.get("role")), str(self.get("role")))

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        """The calls that it makes: `name`, `args`, `id`."""
        return [
            {"name": block["name"], "args": block["input"], "id": block["id"], "type": "tool_call"}
            for block in self._blocks
            if block.get("type") == "tool_use"
        ]

    @property
    def _blocks(self) -> Sequence[Mapping[str, Any]]:
        content: Any = self.get("content")
        return [{"type": "text", "text": content}] if isinstance(content, str) else content or ()


def thread_message(message: Message) -> ThreadMessage:
    """Return a message of a thread."""
    return ThreadMessage(message_to_data(message))


def plain_messages(messages: Any) -> list[Any]:
    """Return messages as `{"role", "content"}` where they are texts, pairs, or objects of other libraries.

    What is none of these stays as it is, for whoever names what is wrong with it.

    Example:
        >>> plain_messages(["hi", ("human", "ho")])
        [{'role': 'user', 'content': 'hi'}, {'role': 'user', 'content': 'ho'}]
    """
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        messages = [messages]
    return [_plain(one) for one in cast("Sequence[Any]", messages)]


def _plain(one: Any) -> Any:
    if isinstance(one, str):
        return {"role": "user", "content": one}
    if isinstance(one, tuple):
        pair = cast("tuple[Any, ...]", one)
        return {"role": _role(pair[0]), "content": pair[1]} if len(pair) == 2 else pair
    if isinstance(one, Mapping):
        given = cast("Mapping[str, Any]", one)
        kind = given.get("role", given.get("type"))
        return {"role": _role(kind), "content": given["content"]} if "content" in given else given
    kind, content = getattr(one, "type", None), getattr(one, "content", None)
    if isinstance(kind, str) and not isinstance(one, Message) and content is not None:
        return {"role": _role(kind), "content": content}
    return one


def _role(kind: Any) -> Any:
    return _ROLES.get(kind, kind) if isinstance(kind, str) else kind
