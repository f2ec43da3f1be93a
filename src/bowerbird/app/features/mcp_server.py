"""The MCP server bound to settings, sessions and agents (PT-7 … PT-13).

Here: what it stands on, over HTTP and on standard input. Not here: tools and transports
(`protocols/mcp_server`), who may come in over HTTP (`server/access`).

The SDK is imported when somebody first speaks MCP, in a thread: it takes half a second.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bowerbird.agent.prompt import list_presets, load_preset
from bowerbird.app.features.mcp import masking
from bowerbird.core.errors import BowerbirdError, InvalidArgument
from bowerbird.core.extras import missing
from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_server.ground import McpCaller, McpGround, McpRules, PresetText
from bowerbird.server.access.admission import Admission
from bowerbird.server.access.identity import withdrawn
from bowerbird.server.common.errors import problem_response
from bowerbird.sessions.provider_agents.part import ProviderAgents
from bowerbird.sessions.values import NewSession

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server
    from starlette.types import Receive, Scope, Send

    from bowerbird.app.application import Application
    from bowerbird.config import Settings
    from bowerbird.protocols.mcp_server.http import HttpDoor, Names
    from bowerbird.protocols.mcp_server.server import Context
    from bowerbird.server.common.context import Caller, ServerContext

CREDENTIALS_S = 15.0  # a token that another process revoked ends what it holds open within this time
LOCAL_OWNER = McpCaller("", "admin")


class LocalPlaces:
    """Sessions of a person at this machine; this process runs their turns.

    Args:
        directory: what sessions work on that name nothing else.
    """

    def __init__(self, application: "Application", directory: Path) -> None:
        self._application = application
        self._directory = directory

    def new_session(self, caller: McpCaller, preset: str | None, workspace: str | None) -> NewSession:
        """See `Places`; a workspace is a registered name or an absolute directory."""
        settings = self._application.loaded.settings
        name = str(self._directory) if workspace is None else workspace
        path = settings.workspace.registered.get(name, name)
        if not Path(path).is_absolute():
            raise InvalidArgument(
                "give a registered workspace (workspace.registered) or an absolute directory"
            )
        flags = {"model": settings.cli.model} if settings.cli.model else {}
        return NewSession(
            kind="cli",
            preset=known_preset(settings, preset or settings.cli.preset),
            flags=flags,
            workspace=str(Path(path).resolve()),
            policy="review",
            hide=settings.workspace.hidden,
        )

    def workspace(self) -> str | None:
        """See `Places`."""
        return str(self._directory)

    def directories(self) -> Sequence[str]:
        """See `Places`."""
        return (str(self._directory),)

    async def drive(self, thread_id: str) -> None:
        """See `Places`."""
        await self._application.drive(thread_id)


class ServerPlaces:
    """Sessions of a server's users; the server runs all turns."""

    def __init__(self, context: "ServerContext", settings: "Callable[[], Settings]") -> None:
        self._context = context
        self._settings = settings

    def new_session(self, caller: McpCaller, preset: str | None, workspace: str | None) -> NewSession:
        """See `Places`; a workspace is a registered name."""
        server = self._context.settings
        path = server.workspace if workspace is None else server.registered.get(workspace)
        if workspace is not None and path is None:
            known = ", ".join(sorted(server.registered)) or "none"
            raise InvalidArgument(f"there is no workspace {workspace!r}; registered: {known}")
        if workspace is None and path is not None:
            Path(path).mkdir(parents=True, exist_ok=True)
        return NewSession(
            kind="web",
            owner=caller.owner,
            preset=known_preset(self._settings(), preset),
            workspace=path,
            policy="review",  # whoever speaks here is usually a model: it lands nothing by the way
            hide=server.hide,
        )

    def workspace(self) -> str | None:
        """See `Places`."""
        return None

    def directories(self) -> Sequence[str]:
        """See `Places`."""
        server = self._context.settings
        return tuple(path for path in (server.workspace, *server.registered.values()) if path is not None)

    async def drive(self, thread_id: str) -> None:
        """See `Places`."""


def known_preset(settings: "Settings", name: str | None) -> str | None:
    """Return the preset if it can be read; raises InvalidArgument naming those that there are."""
    if name is not None:
        known = list_presets(Path(settings.agent.prompts_dir))
        if name not in known:
            raise InvalidArgument(f"there is no preset {name!r}; there are {', '.join(known)}")
    return name


def mcp_rules(settings: "Settings") -> McpRules:
    """Return what settings say of this door."""
    section = settings.protocols.mcp
    return McpRules(expose=section.expose, allow_land=section.allow_land)


def mcp_ground(application: "Application", places: LocalPlaces | ServerPlaces, version: str) -> McpGround:
    """Return what the server stands on."""

    def presets() -> list[PresetText]:
        prompts = Path(application.loaded.settings.agent.prompts_dir)
        found: list[PresetText] = []
        for name in list_presets(prompts):
            with contextlib.suppress(InvalidArgument):  # said when a session asks for it
                preset = load_preset(name, prompts)
                found.append(PresetText(name, preset.description, preset.text))
        return found

    def redact(text: str) -> str:
        if masks[0] is not application.loaded.settings:  # loaded anew
            masks[:] = [application.loaded.settings, masking(application.loaded.settings)]
        return masks[1](text)

    async def agent_thread(session_id: str, caller: McpCaller) -> str | None:
        from bowerbird.providers.sessions import ProviderSessions

        found = await ProviderSessions(application.store).session(session_id, caller.user_id)
        return None if found is None else found.thread_id

    masks: list[Any] = [None, None]
    return McpGround(
        sessions=application.sessions,
        places=places,
        agents=lambda: application.sessions.part(ProviderAgents).registry,
        agent_thread=agent_thread,
        rules=lambda: mcp_rules(application.loaded.settings),
        redact=redact,
        presets=presets,
        version=version,
    )


async def serve_stdio(
    application: "Application", directory: Path, version: str, fds: tuple[int, int]
) -> None:
    """Serve one client on two descriptors as the local owner, until its input ends."""
    from bowerbird.protocols.mcp_server.server import make_server
    from bowerbird.protocols.mcp_server.stdio import serve_lines

    ground = mcp_ground(application, LocalPlaces(application, directory), version)
    await serve_lines(make_server(ground, lambda _: LOCAL_OWNER), *fds)


class McpMount:
    """ASGI: `/mcp` of the HTTP server; the door behind it is made at the first request."""

    def __init__(self, application: "Application", context: "ServerContext") -> None:
        self._application, self._context = application, context
        self._making: asyncio.Task[HttpDoor] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._rules = (context.settings, context.in_force.revoked)
        self._checked = time.monotonic()

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        lack = missing("mcp", "Clients of MCP")
        if lack is not None:
            await problem_response(501, lack.code, str(lack))(scope, receive, send)
            return
        if self._making is None:
            self._making = asyncio.create_task(self._made(), name="mcp door")
            self._ending = asyncio.create_task(self._end_with_server(), name="mcp end")
        door = await asyncio.shield(self._making)
        await door(scope, receive, send)

    async def aclose(self) -> None:
        """End what runs."""
        if self._ending is not None:
            self._ending.cancel()
        if self._making is not None:
            await (await self._making).aclose()

    async def _end_with_server(self) -> None:
        await self._context.life.draining.wait()
        if self._making is not None:
            await (await self._making).aclose()

    async def _made(self) -> "HttpDoor":
        await to_thread(_import_door)
        from bowerbird.protocols.mcp_server.http import HttpDoor

        door = HttpDoor(
            self.served(),
            user_of=lambda scope: _known(scope).user_id,
            names=self._names,
            stay=self._stay,
            **self.streams(),
        )
        await door.open()
        return door

    def served(self) -> "Server[Any]":
        """Return what is served behind the door."""
        from bowerbird.protocols.mcp_server.server import make_server

        places = ServerPlaces(self._context, lambda: self._application.loaded.settings)
        return make_server(mcp_ground(self._application, places, self._context.version), _caller_of)

    def streams(self) -> dict[str, Any]:
        """Return how streams are taken up again: an answer that nobody waits for is not kept."""
        return {}

    def _names(self) -> "Names":
        from bowerbird.protocols.mcp_server.http import Names
        from bowerbird.server.access.origins import DEV_PORTS

        settings = self._context.settings
        hosts = ("127.0.0.1", "localhost", "::1", settings.host, *settings.hosts)
        pages = tuple(f"http://{host}:{port}" for host in ("localhost", "127.0.0.1") for port in DEV_PORTS)
        return Names(hosts, (*settings.origins, *pages))

    async def _stay(self, scopes: "Sequence[Scope]") -> Sequence[bool]:
        """Return for requests under way whether their callers may still be here (D-31)."""
        now, callers = time.time(), [_known(scope) for scope in scopes]
        over = [_is_over(scope, now) for scope in scopes]
        rules = (self._context.settings, self._context.in_force.revoked)
        if rules == self._rules and time.monotonic() - self._checked < CREDENTIALS_S:
            return [not ended for ended in over]
        try:
            gone = await withdrawn(self._context, {one.credential for one in callers if one.credential})
        except BowerbirdError:  # the store is busy: looked at again in a second
            return [not ended for ended in over]
        self._rules, self._checked = rules, time.monotonic()
        admission = Admission.of(self._context.settings)
        return [
            not ended and caller.credential not in gone and admission.stays(caller)
            for ended, caller in zip(over, callers, strict=True)
        ]


def _import_door() -> None:
    for name in ("http", "server"):
        import_module(f"bowerbird.protocols.mcp_server.{name}")


def _known(scope: "Scope") -> "Caller":
    return cast("Caller", scope["state"]["caller"])


def _is_over(scope: "Scope", now: float) -> bool:
    until = scope["state"].get("expires_at")
    return until is not None and until <= now


def _caller_of(context: "Context") -> McpCaller:
    caller = _known(context.request.scope)  # pyright: ignore[reportOptionalMemberAccess] - HTTP has one
    return McpCaller(caller.user_id, caller.role)
