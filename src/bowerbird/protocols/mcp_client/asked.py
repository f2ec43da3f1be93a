"""What a server may say, over any transport (PT-22, PT-23).

Here: its open requests counted as they come and are answered, the form of the tools that it lists. Not here:
the answers (`connection.py`).
"""

from collections import Counter
from contextvars import Context
from typing import Any, Self, cast

import anyio
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, Tool
from pydantic import ValidationError

from bowerbird.protocols.mcp_client.child import Ring

BROKEN = "bowerbird/broken"  # in the `_meta` of a tool: what is wrong with it
MOST_ASKED = 200  # each is a task of ours until the server has read its answer


def bounded(streams: tuple[Any, Any], ring: Ring) -> tuple[Any, Any]:
    """Return the SDK's two streams, of which the first ends when the server has asked too much at once.

    Args:
        ring: is told why.
    """
    asked = _Asked(ring)
    return _Heard(streams[0], asked), _Told(streams[1], asked)


def _in_form(tool: Any, number: int) -> Any:
    """Return a listed tool; for one that breaks MCP's form another that says why: else no tool is listed."""
    why, fields = "it is no object", cast("dict[str, Any]", tool) if isinstance(tool, dict) else {}
    name = fields.get("name")
    named = name if isinstance(name, str) and name else f"tool {number + 1} of its list"
    schema = fields.get("inputSchema")
    if fields and named != name:
        why = "it has no name"
    elif fields and not (isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "object"):
        why = 'its inputSchema is no schema with "type": "object"'
    elif fields:
        try:
            Tool.model_validate(fields, by_name=False)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            why = f"its {where} is not what MCP wants: {error.errors()[0]['msg']}"
        else:
            return fields
    return {"name": named, "inputSchema": {"type": "object"}, "_meta": {BROKEN: why}}


class _Asked:
    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._open = 0
        self._ids: Counter[str] = Counter()

    def hear(self, message: Any) -> bool:
        """Take note of what came; whether the connection may go on."""
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._close((message.params or {}).get("requestId"))  # it is not answered
        elif isinstance(message, JSONRPCRequest):
            self._open += 1
            self._ids[str(message.id)] += 1
            if self._open > MOST_ASKED:
                why = f"[the server asked for over {MOST_ASKED} things at once; the connection was ended]\n"
                self._ring.add(why.encode())
                return False
        elif isinstance(message, JSONRPCResponse) and isinstance(listed := message.result.get("tools"), list):
            message.result["tools"] = [_in_form(tool, n) for n, tool in enumerate(cast("list[Any]", listed))]
        return True

    def tell(self, message: Any) -> None:
        """Take note of what went."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    def _close(self, number: object) -> None:
        if self._ids[str(number)] > 0:
            self._open -= 1
            self._ids[str(number)] -= 1
        if self._ids[str(number)] == 0:
            del self._ids[str(number)]


class _Around:
    def __init__(self, inner: Any, asked: _Asked) -> None:
        self._inner, self._asked = inner, asked

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Heard(_Around):
    """What the server sends."""

    @property
    def last_context(self) -> Context | None:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        item = await self._inner.receive()
        if not self._asked.hear(getattr(item, "message", None)):
            raise anyio.EndOfStream
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Told(_Around):
    """What is sent to the server."""

    async def send(self, item: Any) -> None:
        await self._inner.send(item)
        self._asked.tell(item.message)
