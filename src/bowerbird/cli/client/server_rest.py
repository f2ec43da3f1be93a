"""What a server answers beside sessions, their turns and their review.

Here: those requests of the server's client. Not here: the others (`server.py`).
"""

import asyncio
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.cli.client.protocol import Row
from bowerbird.cli.terminal.exits import FAILED, Refused
from bowerbird.core.threads import to_thread
from bowerbird.skills.commands import custom_commands

if TYPE_CHECKING:
    from bowerbird.cli.client.http import Requests


class ServerRest:
    """The half of `ServerClient` that is about what messages are made of."""

    def __init__(self, requests: "Requests") -> None:
        self._requests = requests

    async def names(self, thread_id: str | None) -> list[str]:
        """See `Client`."""
        return (await self._requests.get("/api/workspace/names", conversation=thread_id))["names"]

    async def file(self, thread_id: str, path: str) -> Row:
        """See `Client`."""
        place = f"/api/workspace/file/{urllib.parse.quote(path)}"
        return await self._requests.get(place, conversation=thread_id)

    async def custom_commands(self, thread_id: str | None) -> list[Row]:
        """See `Client`; the person's own are those of this machine."""
        found: list[Row] = await self._requests.get("/api/commands", conversation=thread_id)
        mine = await to_thread(custom_commands, None, Path.home())
        by_name = {row["name"]: row for row in (*found, *(command.record() for command in mine))}
        return sorted(by_name.values(), key=lambda row: str(row["name"]))

    async def run_command(self, thread_id: str, command: str, stop: asyncio.Event) -> Row:
        """See `Client`; closing the connection stops it there."""
        place = f"/api/conversations/{urllib.parse.quote(thread_id)}/command"
        asking = asyncio.create_task(self._requests.ask("POST", place, {"command": command}, patient=True))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([asking, stopping], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            return {"command": command, "exit_code": -1, "output": "[stopped]", "stopped": True}
        finally:
            for task in (asking, stopping):
                task.cancel()
            await asyncio.gather(asking, stopping, return_exceptions=True)

    async def remember(self, thread_id: str | None, fact: str) -> list[str]:
        """See `Client`."""
        body = {"text": fact} if thread_id is None else {"text": fact, "conversation": thread_id}
        made = await self._requests.ask("POST", "/api/memory", body)
        return list(made.get("forgotten", ()))  # of an older server there is none

    async def scheduled_tasks(self, *, every: bool) -> list[Row]:
        """See `Client`."""
        return await self._requests.get("/api/schedules", all="true" if every else None)

    async def add_task(self, wanted: Mapping[str, Any]) -> Row:
        """See `Client`; on the server's default workspace."""
        return await self._requests.ask("POST", "/api/schedules", dict(wanted))

    async def change_task(self, task_id: str, changes: Mapping[str, Any]) -> Row:
        """See `Client`."""
        return await self._requests.ask("PATCH", _task(task_id), dict(changes))

    async def cancel_task(self, task_id: str) -> Row:
        """See `Client`."""
        return await self._requests.ask("DELETE", _task(task_id))

    async def task_runs(self, task_id: str) -> list[Row]:
        """See `Client`."""
        return await self._requests.get(_task(task_id, "/runs"))

    async def run_task(self, task_id: str) -> Row:
        """See `Client`."""
        return await self._requests.ask("POST", _task(task_id, "/run"))

    async def agents(self) -> list[Row]:
        """See `Client`."""
        return await self._requests.ask("GET", "/api/agents", patient=True)

    async def probe_agent(self, name: str, *, live: bool) -> Row:
        """See `Client`."""
        query = {"live": "true"} if live else None
        return await self._requests.ask("POST", _agent(name, "/probe"), query=query)

    async def run_agent(self, name: str, wanted: Mapping[str, Any], told: Callable[[Row], None]) -> Row:
        """See `Client`."""
        async for event in self._requests.lines(_agent(name, "/run"), wanted):
            if event["kind"] == "done":
                return event["response"]
            told(event)
        raise Refused("the server ended the run without an answer", FAILED)

    async def file_versions(self, path: str) -> list[Row]:
        """See `Client`; of the server's default workspace."""
        return await self._requests.get("/api/memory/files", path=path)

    async def restore_file(self, path: str, landing: str) -> Row:
        """See `Client`."""
        return await self._requests.ask(
            "POST", "/api/memory/files/restore", {"path": path, "landing": landing}
        )

    async def agent_memory(self, session_id: str) -> list[Row]:
        """See `Client`."""
        found = await self._requests.get(f"/api/agents/memory/{urllib.parse.quote(session_id, safe='')}")
        return found["logs"]

    async def agent_conversation(self, session_id: str) -> str | None:
        """Return the session whose branch has what a session with an agent changed. Raises UnknownSession."""
        found = await self._requests.get(f"/api/agents/memory/{urllib.parse.quote(session_id, safe='')}")
        return found["conversation_id"]

    async def agent_runs(self) -> list[Row]:
        """See `Client`."""
        return await self._requests.get("/api/agents/runs")

    async def permissions(self) -> list[Row]:
        """See `Client`."""
        return await self._requests.get("/api/permissions")

    async def remove_permission(self, rule_id: int) -> None:
        """See `Client`."""
        await self._requests.ask("DELETE", f"/api/permissions/{rule_id}")


def _task(task_id: str, rest: str = "") -> str:
    return f"/api/schedules/{urllib.parse.quote(task_id, safe='')}{rest}"


def _agent(name: str, rest: str) -> str:
    return f"/api/agents/{urllib.parse.quote(name, safe='')}{rest}"
