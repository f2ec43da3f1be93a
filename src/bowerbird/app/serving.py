"""The server of one process: settings in, a listening server out (SV, SE-34).

Here: the values the server takes from settings, the context, the order of starting and ending. Not here:
routes and sockets (`server/`), the sessions below (`application.py`).
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version as installed_version
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn

from bowerbird.app.application import Application, open_application
from bowerbird.app.door import door_limits, listening_config
from bowerbird.app.features.boards import SessionRecords
from bowerbird.app.features.mcp_server import McpMount
from bowerbird.app.hangups import Hangups
from bowerbird.app.mapping import session_defaults
from bowerbird.app.offers import SettingsOffers
from bowerbird.app.own import make_data_dir, make_workspace
from bowerbird.app.reloading import Load, Reloader, model_name
from bowerbird.app.settings.desk import LoadFrom, SettingsDesk
from bowerbird.config import Loaded, Settings
from bowerbird.config.database import driver_of
from bowerbird.core.errors import BowerbirdError, ConfigError
from bowerbird.core.extras import require
from bowerbird.core.threads import to_thread
from bowerbird.server.application import create_server
from bowerbird.server.common.context import InForce, Life, ServerContext, ServerSettings
from bowerbird.server.common.metrics import ServerMetrics
from bowerbird.server.common.presence import Presence
from bowerbird.server.conversations.cleanup import Cleaner
from bowerbird.server.conversations.uploads import remove_stale
from bowerbird.sessions.subagents.for_doors import DoorSubagents
from bowerbird.sessions.subagents.runner import Children
from bowerbird.sessions.subagents.tournaments import Tournaments
from bowerbird.sessions.upkeep.memory_rewriting import Remembering
from bowerbird.store.rows.traces import forget_traces
from bowerbird.workspace.registry.lock import introduced

if TYPE_CHECKING:
    from fastapi import FastAPI
    from sqlalchemy import Connection

_log = logging.getLogger(__name__)

LEAVE_S = 1.0  # viewers are told that the server ends, and close
LAST_S = 2.0  # beyond the grace of running turns: then the process ends, whatever hangs (SE-34)
HOUR_S = 3600.0
# Fields of `ServerSettings` that only a new process can have otherwise.
UNTIL_RESTART = (
    "host", "port", "root_path", "auth", "oidc_issuer", "google_client_id", "insecure", "workspace",
    "registered", "hide", "parallel_turns", "trusted_proxies", "door",
)  # fmt: skip


def server_settings(settings: Settings) -> ServerSettings:
    """Return what `server` needs."""
    section, agent, limits, budgets = settings.server, settings.agent, settings.limits, settings.budgets
    token = section.metrics_token
    return ServerSettings(
        host=section.host,
        port=section.port,
        root_path=section.root_path,
        # The client id alone turns sign-in with Google on.
        auth="oidc" if section.auth == "none" and section.google_client_id else section.auth,
        oidc_issuer=section.oidc_issuer.reveal(),
        google_client_id=section.google_client_id,
        insecure=section.insecure,
        origins=section.origins,
        hosts=section.hosts,
        allowed_emails=section.allowed_emails,
        allowed_domains=section.allowed_domains,
        denied_users=section.denied_users,
        trusted_proxies=section.trusted_proxies,
        door=door_limits(section),
        metrics_token=token.reveal() if token is not None else None,
        max_rss_mb=section.max_rss_mb,
        on_disconnect=section.on_disconnect,
        workspace=str(Path(agent.workspace).resolve()),
        registered=dict(settings.workspace.registered),
        max_turns=agent.max_turns,
        landing=settings.workspace.landing,
        cleanup=settings.workspace.cleanup,
        cleanup_delay_s=settings.workspace.cleanup_delay,
        hide=settings.workspace.hidden,
        upload_bytes=int(limits.upload_mb * (1 << 20)),
        parallel_turns=limits.parallel_turns,
        queue_total=limits.queue_total,
        traces_days=settings.retention.traces_days,
        budgets={
            "session": budgets.session_usd,
            "user": budgets.user_day_usd,
            "schedule": budgets.schedule_day_usd,
            "deployment": budgets.deployment_day_usd,
        },
        defaults=session_defaults(settings),
    )


class Serving(msgspec.Struct, frozen=True):
    """An open server: its ASGI application and what it stands on."""

    app: "FastAPI"
    context: ServerContext
    application: Application


@asynccontextmanager
async def open_server(
    loaded: Loaded,
    adjust: Callable[[ServerSettings], ServerSettings] = lambda settings: settings,
    *,
    version: str = "",
    load: Load | None = None,
    load_from: LoadFrom | None = None,
    on_loaded: Callable[[Loaded], None] = lambda _: None,
) -> AsyncGenerator[Serving, None]:
    """Open everything a server needs and start its sessions; it does not listen yet.

    Args:
        adjust: changes what the settings tree has no key for, say rates.
        version: of the program, shown to clients; "" is the installed one.
        load: reads the settings again as they were read; None = they cannot be loaded again.
        load_from: so, with another file in the settings file's place; None = no page may change them.
        on_loaded: told of what it read.

    Raises:
        ConfigError, StoreError: nothing stays open.

    Example:
        async with open_server(loaded) as serving:
            await listen(serving)
    """
    settings = loaded.settings
    in_force = InForce(adjust(server_settings(settings)))
    if in_force.settings.auth == "oidc":
        require("oidc", "Sign-ins at a provider (server.auth)")
    workspace = Path(settings.agent.workspace)
    data_dir = await to_thread(make_data_dir, settings.agent.data_dir)
    await to_thread(make_workspace, workspace, data_dir)
    name = model_name(loaded)
    async with open_application(
        loaded, workspace=workspace, model=name, attended=True, drives_all=True
    ) as application:
        sessions = application.sessions
        cleaner = Cleaner(
            application.sessions, application.branches, application.sandboxes,
            lambda: in_force.settings.cleanup,
        )  # fmt: skip
        offers = SettingsOffers(application, name)
        presence = Presence(in_force.settings.cleanup_delay_s, cleaner.release)

        def follow(loaded: Loaded) -> None:
            fresh = adjust(server_settings(loaded.settings))
            kept = {name: getattr(in_force.settings, name) for name in UNTIL_RESTART}
            in_force.follow(replace(fresh, **kept))
            presence.wait(fresh.cleanup_delay_s)
            on_loaded(loaded)

        reload = None if load is None else Reloader(application, offers, load, follow).reload
        desk = None if reload is None or load_from is None else SettingsDesk(application, load_from, reload)
        context = ServerContext(
            in_force=in_force,
            sessions=sessions,
            store=application.store,
            branches=application.branches,
            offers=offers,
            subagents=DoorSubagents(application.store, sessions.part(Children)),
            tournaments=sessions.part(Tournaments),
            boards=sessions.part(SessionRecords).boards,
            sandboxes=application.sandboxes,
            sandbox_status=application.sandboxes.status,
            data_dir=application.data_dir,
            version=version or installed_version("bowerbird"),
            store_kind=driver_of(loaded.database_url),
            presence=presence,
            metrics=ServerMetrics(),
            reload=reload,
            desk=desk,
            life=Life(),
        )
        sessions.part(Remembering).watch(lambda thread_id: presence.viewers(thread_id) > 0)
        context.metrics.gauge("open_viewers", "Viewers of conversations.", presence.total)
        await to_thread(remove_stale, application.data_dir)
        keepers = [
            asyncio.create_task(_probe(application), name="probe of the sandbox"),
            asyncio.create_task(_forget_old(context), name="retention"),
            asyncio.create_task(_prepare(presence, application), name="models"),
        ]
        mcp = McpMount(application, context)
        mounts = {"/mcp": mcp} if settings.protocols.mcp.enabled else {}
        try:
            await application.start()
            context.life.ready.set()
            yield Serving(create_server(context, mounts), context, application)
        finally:
            context.life.draining.set()
            await mcp.aclose()
            if desk is not None:
                await desk.stop_fetch()
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
            await presence.aclose()


async def _probe(application: Application) -> None:
    """Find out what isolation the host gives while nobody waits for it; keep what cannot be met named."""
    try:
        (await application.sandboxes.status()).require()
    except BowerbirdError as error:
        _log.warning("%s", error)


async def _prepare(presence: Presence, application: Application) -> None:
    """Load what models need when somebody comes, who will soon say something; an idle server does without."""
    await presence.somebody()
    with contextlib.suppress(ConfigError):  # the turn says so
        await application.maker.prepare()


async def _forget_old(context: ServerContext) -> None:
    """Drop traces beyond their days and bytes, now and then."""

    def forget(connection: "Connection") -> int:
        days = context.settings.traces_days
        return forget_traces(connection, _days_ago(days) if days else None)

    while True:
        await asyncio.sleep(HOUR_S)
        with contextlib.suppress(BowerbirdError):
            await context.store.write(forget, flush=False)


def _days_ago(days: float) -> str:
    from datetime import UTC, datetime, timedelta

    from bowerbird.core.timestamps import to_iso

    return to_iso(datetime.now(UTC) - timedelta(days=days))


# ---------------------------------------------------------------- listening


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises OSError when the address is taken or not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


async def listen(
    serving: Serving,
    sock: socket.socket | None = None,
    on_ready: "Callable[[str, Listening], None] | None" = None,
) -> None:
    """Serve until the process is told to stop; ends within the grace of running turns and a moment.

    Args:
        sock: listening already; None binds `server.host` and `server.port`.
        on_ready: called with the address, and with the server, whose `should_exit` ends it.
    """
    settings = serving.context.settings
    bound = sock if sock is not None else bind(settings.host, settings.port)
    address = _url(bound)
    config = listening_config(
        serving.app, serving.context, grace_s=serving.application.sessions.settings.grace_s
    )
    server = Listening(config, serving)
    with introduced("bowerbird serve", address):
        if on_ready is not None:
            on_ready(address, server)
        await server.serve([bound])


def _url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Listening(uvicorn.Server):
    """A server that tells its viewers and turns before it ends."""

    def __init__(self, config: uvicorn.Config, serving: Serving) -> None:
        super().__init__(config)
        self._serving = serving

    def end(self) -> None:
        """End in order, as at a signal."""
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order at SIGTERM and SIGINT; uvicorn would raise them again before anything is closed."""
        del frame
        self.force_exit = self.should_exit and sig == signal.SIGINT
        if not self.should_exit:
            grace_s = self._serving.application.sessions.settings.grace_s
            threading.Thread(target=_end_after, args=(grace_s + LAST_S,), daemon=True).start()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse new work, send viewers away, stop turns at a step's end, then close."""
        context = self._serving.context
        context.life.draining.set()
        for listener in self.servers:
            listener.close()
        stopping = asyncio.create_task(self._serving.application.sessions.stop())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await context.presence.deserted()
        await super().shutdown(sockets)
        await stopping


def _end_after(seconds: float) -> None:
    time.sleep(seconds)
    # SE-34: turns were stopped and can be resumed; nothing that hangs may keep a supervisor waiting.
    _log.warning("something did not end in time; the process ends now, its turns can be resumed")
    os._exit(0)


async def serve(
    loaded: Loaded,
    version: str,
    on_ready: Callable[[str, ServerContext], None] | None = None,
    *,
    load: Load | None = None,
    load_from: LoadFrom | None = None,
    on_loaded: Callable[[Loaded], None] = lambda _: None,
) -> None:
    """Run a server of these settings until a signal ends it.

    Args:
        version: of the program. on_ready: called with the address once it is served.
        load, load_from, on_loaded: see `open_server`; SIGHUP loads again.

    Raises:
        ConfigError, StoreError: it cannot be opened. OSError: the address cannot be listened on.
    """
    section = loaded.settings.server
    bound = bind(section.host, section.port)  # first: nothing is started for an address that is taken
    try:
        async with (
            open_server(
                loaded, version=version, load=load, load_from=load_from, on_loaded=on_loaded
            ) as serving,
            Hangups(serving.context) as hangups,
        ):

            def ready(address: str, server: Listening) -> None:
                hangups.ends(server.end)
                if on_ready is not None:
                    on_ready(address, serving.context)

            await listen(serving, bound, ready)
    finally:
        bound.close()


def run(main: "Callable[[], Any]") -> None:
    """Run a coroutine function on the fast event loop, where it is installed (extra `fast`)."""
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
