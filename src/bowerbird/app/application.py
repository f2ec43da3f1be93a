"""An application of one process: store, branches, models and sessions, opened and closed together.

Here: the order of opening and closing. Not here: doors, what any part does.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.app.features.memory import stored_memory
from bowerbird.app.ground import Ground
from bowerbird.app.maker import SettingsTurnMaker
from bowerbird.app.mapping import (
    git_rules,
    landing_rules,
    session_settings,
    store_options,
    workspace_limits,
)
from bowerbird.app.named_hosts import NamedHosts
from bowerbird.app.own import make_data_dir
from bowerbird.app.parts import session_parts
from bowerbird.app.sandboxes import Runtimes, SandboxNews, open_sandboxes
from bowerbird.config import Loaded
from bowerbird.core.threads import to_thread
from bowerbird.models.prices import keep_rates_in
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sessions.branches.branches import Branches
from bowerbird.sessions.branches.open_work import has_open_work
from bowerbird.sessions.live.hub import Live
from bowerbird.sessions.service import SessionService
from bowerbird.store.store import Store
from bowerbird.subagents.forking import checks_like

if TYPE_CHECKING:
    from bowerbird.sessions.upkeep.trash import Trash


class Application(msgspec.Struct):
    """What commands and doors use; made by `open_application`.

    Attributes:
        loaded: the settings it was made from, or that were loaded again since.
        store: the open database. sessions: the session service over it.
        maker: models and turns. branches: open handles. sandboxes: what runs on them.
        data_dir: where everything is kept.
        mine: threads whose turns this process runs. drives_all: it runs those of every session.
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
    _started: bool = False

    def use(self, loaded: Loaded) -> None:
        """Say that other settings are in force; whoever loaded them has told each part."""
        self.loaded = loaded

    async def start(self) -> None:
        """Take the turns that this process runs, now and from now on; a second call does nothing."""
        if not self._started:
            self._started = True
            if self.drives_all:  # before anybody looks at files, or listens
                await self.branches.finish_landings()
            await self.sessions.start()

    async def drive(self, thread_id: str) -> None:
        """Run the turns of this session in this process from now on.

        A command drives its own sessions only: what other commands left is theirs to resume.
        """
        self.mine.add(thread_id)
        await self.start()
        for part in self.sessions.parts:
            await part.adopt()

    @property
    def trash(self) -> "Trash":
        """What was thrown away and can still be had back."""
        from bowerbird.sessions.upkeep.trash import Trash

        return Trash(self.sessions, self.branches)

    async def aclose(self) -> None:
        """Stop turns (they stay resumable), then close everything."""
        await self.sessions.review.aclose()
        try:
            if self._started:
                await self.sessions.stop(0.0)
            else:
                self.sessions.live.close()
                await self.branches.aclose()
            for part in reversed(self.sessions.parts):
                await part.aclose()
            await self.maker.aclose()
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
    keep_rates_in(data_dir)
    live = Live()
    news = SandboxNews(live)
    # A server finds out itself what its host gives; a command may rely on what the one before it found.
    sandboxes = await to_thread(
        open_sandboxes, settings, data_dir, news, files=loaded.files, remember=not drives_all
    )
    options, times = store_options(settings), session_settings(settings)
    store = await Store.open(loaded.database_url, data_dir=data_dir, options=options)
    branches = Branches(
        data_dir,
        hide=settings.workspace.hidden,
        limits=workspace_limits(settings),
        rules=landing_rules(loaded, workspace),
        git=git_rules(settings),
        sandboxes=sandboxes,
        has_work=lambda thread_id: store.read(lambda c: has_open_work(c, thread_id)),
    )
    runtimes = Runtimes(sandboxes, data_dir / "python")
    maker = SettingsTurnMaker(
        loaded,
        model=model,
        attended=attended,
        blobs=store.blobs.get,
        sandboxes=sandboxes,
        runtimes=runtimes,
        news=news,
        remembered=stored_memory(store),
        named_hosts=NamedHosts(store).of,
    )
    mine: set[str] = set()
    drives = None if drives_all else mine.__contains__
    ground = Ground(
        loaded, store, branches, sandboxes, runtimes, maker, news, data_dir,
        runs=lambda thread_id: drives_all or thread_id in mine,
    )  # fmt: skip
    service = SessionService(
        store,
        maker,
        branches=branches,
        settings=times,
        attended=attended,
        drives=drives,
        checking=lambda _: checks_like(sandboxes),
        live=live,
        parts=lambda service: session_parts(ground, service),
    )
    application = Application(loaded, store, service, maker, branches, sandboxes, data_dir, mine, drives_all)
    try:
        yield application
    finally:
        # Shielded: a command that is interrupted twice still commits and ends its processes.
        await asyncio.shield(application.aclose())
