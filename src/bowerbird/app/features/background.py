"""Background commands of sessions, from the sandboxes to their records (DE-29, DE-30).

Here: ends as sandboxes report them, and those that a process which died could not report. Not here:
running commands (`sandbox/`), what comes of an end (`sessions/turn/background_notices.py`).
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import BowerbirdError, SandboxUnavailable
from bowerbird.core.tasks import Tasks
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.branch_sandbox import BACKGROUND_FILE
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.turn.background_notices import CommandEnd, CommandNotices, StoredNotices
from bowerbird.store.rows.owners import sessions_of_branches
from bowerbird.store.rows.sessions import find_session
from bowerbird.tools.processes.family import end_text

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.app.sandboxes import SandboxNews
    from bowerbird.sandbox.background_record import BackgroundRun
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sessions.branches.branches import Branches
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.store.store import Store
    from bowerbird.workspace import Branch

_log = logging.getLogger(__name__)


class BackgroundEnds(SessionPart):
    """Ends of background commands of one process.

    Args:
        host: runs them; reports their ends to `news`. branches: opens those whose process died.
        desk: records them. note_changes: counts what a session's branch changed, once one has ended.
    """

    def __init__(
        self,
        store: "Store",
        host: "SandboxHost",
        news: "SandboxNews",
        branches: "Branches",
        desk: CommandNotices,
        note_changes: "Callable[[str], Awaitable[int]]",
    ) -> None:
        self._note_changes = note_changes
        self._store = store
        self._host = host
        self._branches = branches
        self._desk = desk
        self._tasks = Tasks("ends of background commands")
        news.listen(self._heard)

    def _heard(self, branch_id: str, run: "BackgroundRun") -> None:
        """Take an end that a sandbox reports; returns at once."""
        self._tasks.spawn(self._record_safely(branch_id, [run]))

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Tell the turn's model of ends, those that nobody recorded included."""
        if self._host.had_background(context.branch):
            await self._look(context.branch)
        return msgspec.structs.replace(
            run, notices=StoredNotices(self._store, context.session.thread_id, context.inbox)
        )

    async def start(self, *, drives_all: bool) -> None:
        """Record the ends that a process which died could not, in a server: they are `lost`, once.

        Commands of processes that live are left alone.
        """
        if not drives_all:
            return
        for branch_id in await to_thread(_unrecorded, self._store.data_dir):
            try:
                await self._recover(branch_id)
            except (BowerbirdError, OSError) as error:
                _log.warning("background commands of branch %s: %s", branch_id, error)
        await self._desk.start()

    async def deleting(self, session: "SessionRow") -> None:
        """End the commands of a session that is about to be deleted."""
        if session.branch_id is not None:
            await self._host.cancel_background(session.branch_id)

    async def stop(self, grace_s: float) -> None:
        """Start no more turns: the process is about to end."""
        self._desk.quiet()

    async def aclose(self) -> None:
        """Wait until what was reported is on record."""
        await self._tasks.finish()
        await self._desk.aclose()

    async def _recover(self, branch_id: str) -> None:
        owners = await self._store.read(lambda c: sessions_of_branches(c, [branch_id]))
        if branch_id not in owners:
            return
        session = await self._store.read(lambda c: find_session(c, owners[branch_id][0]))
        if session is not None:
            await self._look(await self._branches.of(session))

    async def _look(self, branch: "Branch") -> None:
        try:
            runs = (await self._host.sandbox(branch)).background
        except SandboxUnavailable:
            return  # said with the first turn that can run commands again
        await self._record(branch.id, runs.untold())

    async def _record_safely(self, branch_id: str, runs: "list[BackgroundRun]") -> None:
        try:
            await self._record(branch_id, runs)
        except (BowerbirdError, OSError) as error:
            # It stays untold in the branch's file: the next turn or start finds it there.
            _log.warning("the end of a background command on branch %s: %s", branch_id, error)

    async def _record(self, branch_id: str, runs: "Iterable[BackgroundRun]") -> None:
        owners = await self._store.read(lambda c: sessions_of_branches(c, [branch_id]))
        if branch_id not in owners:
            return
        for run in runs:
            await self._desk.ended(
                CommandEnd(
                    thread_id=owners[branch_id][0],
                    task_id=run.task_id,
                    body=run.notification(),
                    content=end_text(run),
                    wakes=run.notify,
                    known=run.told,
                )
            )
            await to_thread(self._host.ends_told, branch_id, [run.task_id])
            await self._note_changes(owners[branch_id][0])


def _unrecorded(data_dir: Path) -> list[str]:
    """Return the branches on which commands ran or ended without a record of their end."""
    from bowerbird.sandbox.background_record import BackgroundFile

    paths = sorted((data_dir / "branches").glob(f"*/{BACKGROUND_FILE}"))
    return [
        path.parent.name
        for path in paths
        if any(not run.ended or not run.told for run in BackgroundFile(path).load())
    ]
