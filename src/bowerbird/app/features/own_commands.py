"""Commands of people on branches, bound to settings and sandboxes (UI-74).

Here: that binding. Not here: when they may run (`sessions/own_commands.py`).
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from bowerbird.app.sandboxes import process_settings, session_processes
from bowerbird.sessions.own_commands import OwnCommands
from bowerbird.tools.processes.process_tools import processes_unavailable

if TYPE_CHECKING:
    from bowerbird.app.ground import Ground
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.workspace import Branch


def own_commands(ground: "Ground", changed: Callable[[str], Awaitable[Any]]) -> OwnCommands:
    """Return what runs them in one process."""
    host, maker, news = ground.sandboxes, ground.maker, ground.news

    async def prepare(row: "SessionRow", branch: "Branch") -> str | None:
        reason = processes_unavailable(await host.status())
        if reason is None:
            news.belongs(branch.id, row.thread_id)
            await host.new_turn(branch.id)
            await session_processes(host, maker.settings, branch, row.flags.get("network"))
        return reason

    return OwnCommands(
        ground.store, ground.branches, host, lambda: process_settings(maker.settings), prepare, changed
    )
