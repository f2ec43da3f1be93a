"""An application of one process: store, branches, models and sessions, opened and closed together.

Here: the order of opening and closing. Not here: doors, what any part does.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.app.maker import SettingsTurnMaker
from bowerbird.app.mapping import landing_rules, session_settings, store_options, workspace_limits
from bowerbird.app.sandboxes import SandboxNews, open_sandboxes
from bowerbird.config import Loaded
from bowerbird.core.errors import StoreError
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sessions.branches import Branches
from bowerbird.sessions.service import SessionService
from bowerbird.store.store import Store
from bowerbird.store.threads import get_session, update_session

if TYPE_CHECKING:
    from bowerbird.workspace import Workspace


@dataclass(slots=True)
class Application:
    """What commands and doors use; made by `open_application`.

    Attributes:
        loaded: the settings it was made from.
        store: the open database. sessions: the session service over it.
        maker: models and turns. branches: open handles. sandboxes: what runs on them.
        data_dir: where everything is kept.
        mine: threads whose turns this process runs.
    """

    loaded: Loaded
    store: Store
    sessions: SessionService
    maker: SettingsTurnMaker
    branches: Branches
    sandboxes: SandboxHost
    data_dir: Path
    mine: set[str]
    _started: bool = False

    async def drive(self, thread_id: str) -> None:
        """Run the turns of this session in this process from now on.

        A command drives its own sessions only: what other commands left is theirs to resume.
        """
        self.mine.add(thread_id)
        if not self._started:
            self._started = True
            await self.sessions.start()

    async def discard_changes(self, thread_id: str) -> str:
        """Move a session's branch to the trash and give it a fresh one; return the old branch's id.

        Raises:
            BranchBusy: a turn writes the branch. UnknownSession: there is no such session.
        """
        row = await self.store.read(lambda c: get_session(c, thread_id))
        old = await self.branches.of(row)
        policy, hide = old.policy, old.hide
        await self.branches.discard(row)
        fresh = await self.branches.create(row.workspace, name=None, policy=policy, hide=hide)
        await self.store.write(lambda c: update_session(c, thread_id, branch_id=fresh.id))
        return old.id

    async def aclose(self) -> None:
        """Stop turns (they stay resumable), then close everything."""
        try:
            if self._started:
                await self.sessions.stop(0.0)
            else:
                self.sessions.live.close()
                await self.branches.aclose()
            await self.maker.aclose()
        finally:
            await self.store.aclose()

    def workspace(self, path: str | None) -> "Workspace":
        """Open the workspace `path` for its landings; the caller closes it."""
        from bowerbird.workspace import Workspace

        settings = self.loaded.settings
        return Workspace(
            path,
            data_dir=self.data_dir,
            hide=settings.workspace.hide,
            limits=workspace_limits(settings),
            rules=landing_rules(self.loaded, Path(path) if path is not None else None),
        )


@asynccontextmanager
async def open_application(
    loaded: Loaded, *, workspace: Path | None = None, model: str = "", attended: bool = False
) -> AsyncGenerator[Application, None]:
    """Open everything a command needs; it is closed in reverse order.

    Args:
        loaded: valid settings.
        workspace: directory the command works in; settings files in use there are flagged at landing.
        model: what sessions without a model of their own run on, by `choose_model`.
        attended: a person can answer questions here.

    Raises:
        ConfigError, StoreError: nothing stays open.

    Example:
        async with open_application(loaded) as application:
            for session in await application.sessions.list():
                print(session.thread_id)
    """
    settings = loaded.settings
    data_dir = make_data_dir(settings.agent.data_dir)
    news = SandboxNews()
    sandboxes = await asyncio.to_thread(open_sandboxes, settings, data_dir, news)
    branches = Branches(
        data_dir,
        hide=settings.workspace.hide,
        limits=workspace_limits(settings),
        rules=landing_rules(loaded, workspace),
        sandboxes=sandboxes,
    )
    options, times = store_options(settings), session_settings(settings)
    store = await Store.open(loaded.database_url, data_dir=data_dir, options=options)
    maker = SettingsTurnMaker(
        loaded, model=model, attended=attended, blobs=store.blobs.get, sandboxes=sandboxes, news=news
    )
    mine: set[str] = set()
    service = SessionService(
        store, maker, branches=branches, settings=times, attended=attended, drives=mine.__contains__
    )
    news.connect(service.live)
    application = Application(loaded, store, service, maker, branches, sandboxes, data_dir, mine)
    try:
        yield application
    finally:
        # Shielded: a command that is interrupted twice still commits and ends its processes.
        await asyncio.shield(application.aclose())


def make_data_dir(path: str) -> Path:
    """Return the data directory, made private (0700) when it was missing.

    Raises:
        StoreError: it cannot be made or written; the message names it and the free space.
    """
    directory = Path(path)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the data directory {directory} cannot be made: {error.strerror}; "
            "choose another with --data-dir or agent.data_dir"
        ) from error
    return directory
