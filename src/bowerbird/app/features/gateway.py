"""The host gateway, bound to settings: the tool of agents, and what `bowerbird gateway` serves (AS-57).

Here: that binding. Not here: what a bridge allows (`gateway/bridges.py`), the tool (`tools/host.py`).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import ConfigError
from bowerbird.sessions.parts import SessionPart
from bowerbird.tools.toolset import Toolset

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.config import Settings
    from bowerbird.config.sections.gateway import GatewaySection
    from bowerbird.gateway.service import Gateway
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.rows.sessions import SessionRow
    from bowerbird.tools import Tool
    from bowerbird.tools.host import HostBridges


DEFAULT_TIMEOUT_S = 30.0


class HostCommands(SessionPart):
    """Offers turns the tool `host_execute` where a gateway is configured.

    Args:
        settings: returns those in force.
    """

    def __init__(self, settings: "Callable[[], Settings]") -> None:
        self._settings = settings

    def tools(self, session: "SessionRow | None") -> "Sequence[Tool]":
        """Return the tool, if agents may use any bridge."""
        del session
        section = self._settings().gateway
        if not section.enabled:
            return ()
        bridges = bridges_for_agents(section)
        if not bridges.usable:
            return ()
        from bowerbird.tools.host import host_tools

        return host_tools(bridges)

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Add the tool to a turn."""
        if not (own := self.tools(context.session)):
            return run
        return msgspec.structs.replace(run, tools=Toolset((*run.tools, *own), absent=run.tools.absent))


def bridges_for_agents(section: "GatewaySection") -> "HostBridges":
    """Return the bridges of the settings as the tool takes them."""
    from bowerbird.gateway.client import GatewayClient
    from bowerbird.tools.host import HostBridges

    usable = {
        name: GatewayClient(section.address, name, token)
        for name in section.bridges
        if section.for_agents(name) and (token := section.token_of(name))
    }
    closed = frozenset(name for name in section.bridges if not section.for_agents(name))
    return HostBridges(usable, closed, section.default_timeout or DEFAULT_TIMEOUT_S)


def gateway_of(section: "GatewaySection") -> "Gateway":
    """Return what a gateway with these settings serves; commands are looked up now.

    Raises:
        ConfigError: no bridge, or one without a token, or with the token of another.
    """
    from bowerbird.gateway.bridges import check_bridges, make_bridge
    from bowerbird.gateway.service import Gateway

    bridges = [
        make_bridge(
            name,
            token=_token(section, name),
            allowed_commands=entry.allowed_commands,
            allowed_cwd=entry.allowed_cwd,
            env=entry.env,
            max_timeout_s=entry.max_timeout,
        )
        for name, entry in sorted(section.bridges.items())
    ]
    check_bridges(bridges)
    return Gateway(bridges, section.default_timeout or DEFAULT_TIMEOUT_S)


def _token(section: "GatewaySection", name: str) -> str:
    if token := section.token_of(name):
        return token
    raise ConfigError(f"gateway.bridges.{name}.token is missing; every bridge needs a token of its own")
