"""A client of the server that knows only SV-6 … SV-18, SV-37 and SV-41: what a strict stranger would write.

Not here: `v=2`, cursors, ids, anything the chapter marks as added. An event of a type that is not in its
table is an error of the server.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
from support.patience import HANG_S
from websockets.asyncio.client import ClientConnection, connect

# Type → the fields that are always there (SV-41).
FIELDS: Mapping[str, tuple[str, ...]] = {
    "text_delta": ("content",),
    "thinking_delta": ("content", "effort"),
    "thinking": ("content", "effort"),
    "tool_call": ("tool", "input"),
    "tool_result": ("tool", "result"),
    "tool_approval_request": ("tools",),
    "tool_approval_result": ("decision", "tools"),
    "subagent_start": ("subagent_id", "task", "agent_type"),
    "subagent_end": ("subagent_id", "summary", "agent_type", "usage"),
    "todo_update": ("todos",),
    "task_update": ("tasks",),
    "background_result": ("notifications",),
    "teammate_status": ("name", "role", "status"),
    "compact": ("message",),
    "llm_request": ("seq", "model", "messages", "tools", "max_tokens"),
    "llm_response": ("seq", "content", "tool_calls", "done", "usage"),
    "plan_ready": ("plan",),
    "plan_approved": (),
    "plan_rejected": ("feedback",),
    "plan_mode_changed": ("enabled",),
    "teams_changed": ("enabled",),
    "approval_changed": ("enabled",),
    "interrupted": ("usage", "files"),
    "done": ("usage", "files"),
    "error": ("message",),
}
USAGE = ("input_tokens", "output_tokens", "last_input_tokens", "plan_mode")
WAIT_S = HANG_S


class PlainChat:
    """One conversation over one socket.

    Attributes:
        text: what the assistant said in the present turn. events: everything that came, in order.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.text = ""
        self.events: list[dict[str, Any]] = []

    async def ask(self, content: str, *, decision: str = "approve") -> dict[str, Any]:
        """Send a message, answer every approval request with `decision`; return the `done` event."""
        await self.send({"type": "message", "content": content})
        return await self.until_done(decision=decision)

    async def send(self, frame: dict[str, Any]) -> None:
        await self._socket.send(json.dumps(frame))

    async def until_done(self, *, decision: str = "approve", end: str = "done") -> dict[str, Any]:
        """Read until the turn has ended."""
        self.text = ""
        async with asyncio.timeout(WAIT_S):
            while True:
                event = await self.next()
                if event["type"] == "text_delta":
                    self.text += event["content"]
                elif event["type"] == "tool_approval_request":
                    await self.send({"type": "tool_approval_response", "decision": decision})
                elif event["type"] == end:
                    return event

    async def next(self) -> dict[str, Any]:
        """Return the next event, checked against the table."""
        event: dict[str, Any] = json.loads(await self._socket.recv())
        kind = event.get("type")
        if kind not in FIELDS:
            raise AssertionError(f"the server sent {kind!r}, which a plain client does not know: {event}")
        missing = [name for name in FIELDS[kind] if name not in event]
        if kind in ("done", "interrupted"):
            missing += [f"usage.{name}" for name in USAGE if name not in event["usage"]]
            missing += [
                f"files[].{n}" for row in event["files"] for n in ("name", "path", "size") if n not in row
            ]
        if missing:
            raise AssertionError(f"{kind} lacks {', '.join(missing)}: {event}")
        self.events.append(event)
        return event


class PlainClient:
    """The REST part, and sockets.

    Example:
        async with PlainClient("http://127.0.0.1:8000") as client:
            conversation = await client.create()
            async with client.chat(conversation) as chat: ...
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self.http = httpx.AsyncClient(base_url=address, timeout=WAIT_S, trust_env=False, verify=False)

    async def __aenter__(self) -> PlainClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of a path."""
        answer = await self.http.get(path, params=query)
        answer.raise_for_status()
        return answer.json()

    async def create(self, **asked: Any) -> str:
        """Begin a conversation (SV-7)."""
        answer = await self.http.post("/api/chat", json=asked)
        answer.raise_for_status()
        return str(answer.json()["conversation_id"])

    def chat(self, conversation: str) -> PlainSocket:
        """Open the conversation's socket."""
        return PlainSocket(f"{self._address.replace('http', 'ws', 1)}/api/chat/{conversation}/ws")


class PlainSocket:
    """A socket as a context manager that gives its `PlainChat`."""

    def __init__(self, address: str) -> None:
        self._connect = connect(address, proxy=None)

    async def __aenter__(self) -> PlainChat:
        return PlainChat(await self._connect.__aenter__())

    async def __aexit__(self, *reason: Any) -> None:
        await self._connect.__aexit__(*reason)
