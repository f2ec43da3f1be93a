"""Commands that a person runs on the branch of a session, between its turns (UI-74).

Here: when they may run, and their record. Not here: isolation and limits, which are those of the agent's own
commands (`sandbox/`), what a door does with the output.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import InvalidArgument, SandboxUnavailable, ToolError, TurnRunning
from bowerbird.sessions.parts import SessionPart
from bowerbird.store.rows.sessions import SessionRow, get_session
from bowerbird.store.rows.turns import OPEN, turns_of
from bowerbird.tools.processes.process_tools import ProcessSettings, checked_command, shown

if TYPE_CHECKING:
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.store.store import Store
    from bowerbird.workspace import Branch

OUTPUT_BYTES = 30_000


class OwnCommands(SessionPart):
    """Runs commands of people in one process.

    Args:
        host: of the sandboxes. settings: times and allowed programs, as they are now.
        prepare: shows a session's branch to its sandbox as a turn would; returns why no command can run.
        changed: told of a session whose files may have changed.
    """

    def __init__(
        self,
        store: "Store",
        branches: "Branches",
        host: "SandboxHost",
        settings: Callable[[], ProcessSettings],
        prepare: "Callable[[SessionRow, Branch], Awaitable[str | None]]",
        changed: Callable[[str], Awaitable[Any]],
    ) -> None:
        self._store = store
        self._branches = branches
        self._host = host
        self._settings = settings
        self._prepare = prepare
        self._changed = changed

    async def run(self, thread_id: str, command: str, stop: asyncio.Event) -> dict[str, Any]:
        """Run a command line; return `exit_code`, `output` as people read it, `stopped`, `seconds`.

        Args:
            stop: setting it ends the command with everything it started.

        Raises:
            TurnRunning: the agent works, or waits for an answer. SandboxUnavailable: no commands run here.
            InvalidArgument: this one is refused.
        """
        row = await self._store.read(lambda c: get_session(c, thread_id))
        if await self._store.read(lambda c: turns_of(c, thread_id, OPEN)):
            raise TurnRunning("a turn is under way; run the command after its end")
        branch = await self._branches.of(row)
        reason = await self._prepare(row, branch)
        if reason is not None:
            raise SandboxUnavailable(reason)
        settings = self._settings()
        try:
            words = checked_command(self._host, settings.allowed_commands, command, branch)
        except ToolError as error:
            raise InvalidArgument(str(error)) from None
        sandbox = await self._host.sandbox(branch)
        try:
            result = await sandbox.run(
                words,
                timeout=settings.background_timeout_s,
                configured_timeout=settings.background_timeout_s,
                max_output_bytes=OUTPUT_BYTES,
                cancel=stop,
            )
        finally:
            await self._changed(thread_id)
        return {
            "command": command,
            "exit_code": result.exit_code,
            "output": shown(result).text,
            "stopped": result.cancelled,
            "seconds": round(result.duration_ms / 1000, 3),
        }
