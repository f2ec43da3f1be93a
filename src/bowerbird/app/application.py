"""An application of one process: store, branches, models and sessions, opened and closed together.

Here: the order of opening and closing. Not here: doors, what any part does.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.app.background import BackgroundEnds
from bowerbird.app.boards import SessionRecords
from bowerbird.app.maker import SettingsTurnMaker
from bowerbird.app.mapping import (
    landing_rules,
    model_settings,
    session_settings,
    store_options,
    workspace_limits,
)
from bowerbird.app.memory import session_memory
from bowerbird.app.named_hosts import NamedHosts
from bowerbird.app.own import own_workspace
from bowerbird.app.sandboxes import SandboxNews, open_sandboxes
from bowerbird.app.subagents import door_tournaments, session_children
from bowerbird.app.teams import session_teams
from bowerbird.app.tracing import Traces
from bowerbird.config import Loaded
from bowerbird.core.errors import StoreError
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.service import SessionService
from bowerbird.sessions.turn.background_notices import CommandNotices
from bowerbird.sessions.upkeep.trash import Trash
from bowerbird.store.store import Store

if TYPE_CHECKING:
    from bowerbird.sessions.subagents.runner import Children
    from bowerbird.sessions.subagents.tournaments import Tournaments
    from bowerbird.sessions.upkeep.memory_rewriting import Remembering


@dataclass(slots=True)
class Application:
    """What commands and doors use; made by `open_application`.

    Attributes:
        loaded: the settings it was made from, or that were loaded again since (CF-13).
        store: the open database. sessions: the session service over it.
        maker: models and turns. branches: open handles. sandboxes: what runs on them.
        data_dir: where everything is kept.
        mine: threads whose turns this process runs. drives_all: it runs those of every session.
        tournaments: that doors begin.
    """

    loaded: Loaded
    store: Store
    sessions: SessionService
    maker: SettingsTurnMaker
    branches: Branches
    sandboxes: SandboxHost
    data_dir: Path
    mine: set[str]
    drives_all: bool = False
    tournaments: "Tournaments | None" = None
    memory: "Remembering | None" = None
    _started: bool = False

    async def start(self) -> None:
        """Take the turns that this process runs, now and from now on; a second call does nothing."""
        if not self._started:
            self._started = True
            if self.drives_all:  # before anybody looks at files, or listens
                await self.branches.finish_landings()
            await self.sessions.start()
            if self.maker.records is not None:
                self.maker.records.news.start()
            if self.drives_all and self.maker.background is not None:
                await self.maker.background.start()
            if self.sessions.teams is not None:
                await self.sessions.teams.start()
            if self.drives_all and self.tournaments is not None:
                await self.tournaments.resume()
            if self.drives_all and self.memory is not None and self.loaded.settings.memory.enabled:
                self.memory.start()

    async def drive(self, thread_id: str) -> None:
        """Run the turns of this session in this process from now on.

        A command drives its own sessions only: what other commands left is theirs to resume.
        """
        self.mine.add(thread_id)
        await self.start()
        if self.sessions.teams is not None:
            await self.sessions.teams.adopt()

    @property
    def trash(self) -> Trash:
        """What was thrown away and can still be had back."""
        return Trash(self.sessions, self.branches)

    async def aclose(self) -> None:
        """Stop turns (they stay resumable), then close everything."""
        if self.maker.background is not None:
            self.maker.background.quiet()
        await self.sessions.review.aclose()
        if self.tournaments is not None:
            await self.tournaments.aclose()
        if self.memory is not None:
            await self.memory.aclose()
        try:
            if self._started:
                await self.sessions.stop(0.0)
                if self.maker.children is not None:
                    await self.maker.children.aclose()
            else:
                self.sessions.live.close()
                await self.branches.aclose()
            if self.maker.background is not None:
                await self.maker.background.aclose()
            if self.maker.records is not None:
                await self.maker.records.news.aclose()
            await self.maker.aclose()
            if self.maker.traces is not None:
                await self.maker.traces.aclose()
        finally:
            await self.store.aclose()


@asynccontextmanager
async def open_application(
    loaded: Loaded,
    *,
    workspace: Path | None = None,
    model: str = "",
    attended: bool = False,
    drives_all: bool = False,
) -> AsyncGenerator[Application, None]:
    """Open everything a command needs; it is closed in reverse order.

    Args:
        loaded: valid settings.
        workspace: directory the command works in; settings files in use there are flagged at landing.
        model: what sessions without a model of their own run on, by `choose_model`.
        attended: a person can answer questions here.
        drives_all: run the turns of every session, as a server does; the caller starts the service.

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
    # A server finds out itself what its host gives; a command may rely on what the one before it found.
    sandboxes = await to_thread(
        open_sandboxes, settings, data_dir, news, files=loaded.files, remember=not drives_all
    )
    branches = Branches(
        data_dir,
        hide=settings.workspace.hidden,
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
    drives = None if drives_all else mine.__contains__
    service = SessionService(
        store, maker, branches=branches, settings=times, attended=attended, drives=drives,
        checking=lambda branch: _children(maker).checking(branch),
    )  # fmt: skip
    news.connect(service.live)
    maker.traces = Traces(store, model_settings(loaded))
    maker.traces.connect(service.live)
    application = Application(loaded, store, service, maker, branches, sandboxes, data_dir, mine, drives_all)
    _keep_records(application, news)
    maker.named_hosts = NamedHosts(store).of
    maker.children = session_children(application)
    application.tournaments = door_tournaments(application, maker.children)
    service.bury = maker.children.bury
    application.memory = session_memory(application)
    _keep_teams(application)
    try:
        yield application
    finally:
        # Shielded: a command that is interrupted twice still commits and ends its processes.
        await asyncio.shield(application.aclose())


def _children(maker: SettingsTurnMaker) -> "Children":
    assert maker.children is not None, "an open application has what runs subagents"
    return maker.children


def _keep_records(application: Application, news: SandboxNews) -> None:
    """Bind boards, lists and background commands to the sessions that have them."""
    store, service, maker = application.store, application.sessions, application.maker
    maker.records = SessionRecords(store, own_workspace(application.loaded))
    maker.records.connect(service.live)
    desk = CommandNotices(store, service.live, lambda turn: service.resume(turn.turn_id))
    maker.background = BackgroundEnds(store, application.sandboxes, application.branches, desk)
    news.background = maker.background.heard


def _keep_teams(application: Application) -> None:
    """Bind teams to the sessions that have them."""
    service, maker = application.sessions, application.maker
    assert maker.records is not None and maker.children is not None, "both are bound before"
    maker.teams = service.teams = teams = session_teams(application, maker.records.boards)
    bury_children = maker.children.bury

    async def bury(thread_id: str, delete: Callable[[str], Awaitable[None]]) -> None:
        await teams.bury(thread_id, delete)
        await bury_children(thread_id, delete)

    service.bury = bury


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
            "choose another with --data-dir, agent.data_dir or Agent(data_dir=…)"
        ) from error
    return directory
