"""From settings to MCP servers (PT-17, CF-50).

Here: the map of `mcp_servers` to values, and what takes secrets out of their messages. Not here: starting
or calling them (`protocols/mcp_client`), files of servers (`cli/admin/mcp/servers.py` edits those).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.agent.turn import Found, MoreTools
from bowerbird.config import Settings
from bowerbird.core.extras import missing
from bowerbird.protocols.mcp_client import McpClient, ServerSpec
from bowerbird.protocols.mcp_client.spec import OAuthSpec
from bowerbird.sessions.parts import SessionPart

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.config.sections.doors import McpServer
    from bowerbird.models.redact import Redactor
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.tools import Tool
    from bowerbird.workspace import Branch

_log = logging.getLogger(__name__)


class McpServers:
    """The MCP servers of a process: one client of each for all sessions, save those of `sandbox: true`.

    These run on the branch of a turn, so each branch has its own, and they end with the turn.

    Args:
        settings: whose enabled servers these are; nothing is started by this.
        sandboxes: run those of `sandbox: true`; None = they are left out.

    Raises:
        ConfigError: an entry has neither command nor url, or both; server and key are named.
    """

    def __init__(self, settings: Settings, sandboxes: "SandboxHost | None" = None) -> None:
        self.specs = tuple(server_specs(settings))
        self._redact = masking(settings)
        self._apart = tuple(spec for spec in self.specs if spec.sandbox) if sandboxes is not None else ()
        self._sandboxes = sandboxes
        self.shared = McpClient([spec for spec in self.specs if spec not in self._apart], self._redact)
        self._of_branch: dict[str, McpClient] = {}

    def for_turn(self, branch: "Branch") -> MoreTools | None:
        """Return what gives a turn on `branch` the servers' tools; None when no server is configured."""
        if not self.specs:
            return None
        if not self._apart or self._sandboxes is None:
            return self.shared
        own = self._of_branch.get(branch.id)
        if own is None:
            from bowerbird.protocols.mcp_client.sandboxed import BranchHome

            own = McpClient(self._apart, self._redact, BranchHome(self._sandboxes, branch))
            self._of_branch[branch.id] = own
        return _Both(self.shared, own)

    async def turn_ended(self, branch_id: str) -> None:
        """End the servers that ran on the branch, so that it can be frozen."""
        own = self._of_branch.pop(branch_id, None)
        if own is not None:
            await own.aclose()

    async def aclose(self) -> None:
        """End all servers; may be called more than once."""
        clients = [self.shared, *self._of_branch.values()]
        self._of_branch.clear()
        await asyncio.gather(*(client.aclose() for client in clients))


class SessionMcp(SessionPart):
    """The servers that turns may use; the first turn that may starts them.

    Attributes:
        servers: those of the settings in force.

    Raises:
        ConfigError: see `McpServers`.
    """

    def __init__(self, settings: Settings, sandboxes: "SandboxHost") -> None:
        self._sandboxes = sandboxes
        self.servers = McpServers(settings, sandboxes)
        self._left: list[McpServers] = []  # of earlier settings; turns may still use them

    async def start(self, *, drives_all: bool) -> None:
        """Say it in a server's log when the library of its servers is missing; its turns say so, too."""
        lack = missing("mcp", "MCP servers (mcp_servers)") if drives_all and self.servers.specs else None
        if lack is not None:
            _log.warning("%s", lack)

    def made(self, settings: Settings) -> McpServers:
        """Return the servers of other settings for `use`; raises ConfigError, and nothing has changed."""
        return McpServers(settings, self._sandboxes)

    def use(self, servers: McpServers) -> None:
        """Offer these to turns that begin from now on; those that run keep theirs."""
        if servers.specs != self.servers.specs:
            self._left.append(self.servers)
            self.servers = servers

    def tools(self, session: "SessionRow | None") -> "Sequence[Tool]":
        """Return what the shared servers that were started before have; starts none."""
        return self.servers.shared.known()

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Let a turn find the servers' tools when it begins."""
        return msgspec.structs.replace(run, more_tools=self.servers.for_turn(context.branch))

    async def turn_ended(self, branch_id: str) -> None:
        """End the servers that ran on the branch, so that it can be frozen."""
        for servers in (self.servers, *self._left):
            await servers.turn_ended(branch_id)

    async def aclose(self) -> None:
        """End all servers."""
        for servers in (self.servers, *self._left):
            await servers.aclose()


class _Both(msgspec.Struct, frozen=True):
    """Two clients as one, waited for together."""

    first: McpClient
    second: McpClient

    async def gather(self) -> Found:
        """See `agent.turn.MoreTools`."""
        first, second = await asyncio.gather(self.first.gather(), self.second.gather())
        tools = sorted((*first.tools, *second.tools), key=lambda tool: tool.name)
        return Found(tuple(tools), {**first.absent, **second.absent}, (*first.warnings, *second.warnings))


def server_specs(settings: Settings) -> list[ServerSpec]:
    """Return the enabled servers, by name.

    Raises:
        ConfigError: an entry has neither command nor url, or both; server and key are named.
    """
    entries = sorted(settings.mcp_servers.items())
    logins = logins_in(settings)
    return [server_spec(name, entry, logins) for name, entry in entries if entry.enabled]


def logins_in(settings: Settings) -> Path:
    """Return where sign-ins at MCP servers are kept."""
    return Path(settings.agent.data_dir) / "mcp_logins"


def server_spec(name: str, entry: "McpServer", logins: Path) -> ServerSpec:
    """Return the server that `entry` describes, enabled or not; `logins`: where sign-ins are kept."""
    headers = {key: value.reveal() for key, value in entry.headers.items()}
    if entry.authorization_token:
        headers["Authorization"] = f"Bearer {entry.authorization_token.reveal()}"
    transport = entry.transport or ("stdio" if entry.command else "streamable_http")
    has_token = any(key.lower() == "authorization" for key in headers)
    signs_in = transport in ("streamable_http", "http") and not has_token
    secret = entry.oauth.client_secret
    return ServerSpec(
        name=name,
        transport="streamable_http" if transport == "http" else transport,
        command=entry.command or "",
        args=entry.args,
        env={key: value.reveal() for key, value in entry.env.items()},
        cwd=entry.cwd,
        url=entry.url.reveal() if entry.url else "",
        headers=headers,
        start_timeout_s=entry.start_timeout,
        call_timeout_s=entry.call_timeout,
        allow=entry.tools.allow,
        deny=entry.tools.deny,
        approval=entry.approval,
        trusted=entry.trusted,
        sampling=entry.sampling,
        sandbox=entry.sandbox,
        oauth=OAuthSpec(
            directory=logins,
            client_id=entry.oauth.client_id or "",
            client_secret=secret.reveal() if secret else "",
        )
        if signs_in
        else None,
    )


def masking(settings: Settings) -> Callable[[str], str]:
    """Return what takes every configured secret out of a text; its patterns are made at the first use."""

    @cache
    def redactor() -> "Redactor":
        from bowerbird.models.redact import Redactor

        return Redactor(settings.secrets())

    return lambda text: redactor().text(text)
