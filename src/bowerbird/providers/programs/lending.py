"""The tools of MCP servers that a run over ACP is lent: which servers, the door that leads to them (PR-25).

Here: that, and what is said of servers that are not lent. Not here: the servers (whoever gave the ground its
`lender`), the session that is told of them (`acp_run`).
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from bowerbird.core.extras import missing
from bowerbird.providers.programs.transports import McpAddress
from bowerbird.sandbox.run.doors import Door

if TYPE_CHECKING:
    from bowerbird.config.sections.agent import ProviderEntry
    from bowerbird.providers.programs.ground import ProgramGround

HEADLESS = "tools of MCP servers are lent over ACP, which this run does not use"
NO_LOOPBACK = "the sandbox has no loopback of its own that could lead to them (tier {tier})"
NOWHERE = "no MCP servers are at hand here"


@asynccontextmanager
async def lent_tools(
    ground: "ProgramGround",
    settings: "ProviderEntry",
    agent: str,
    metadata: dict[str, Any],
    port: int,
    *,
    tier: str,
    acp: bool,
    may_change: bool,
) -> AsyncGenerator[tuple[tuple[Door, ...], tuple[McpAddress, ...]]]:
    """Lend what `providers.NAME.mcp_servers` lists; `metadata["mcp_servers"]` says what became of each.

    Args:
        port: of the sandbox's loopback, for the door. acp: whether the run is over ACP.
    """
    names = settings.mcp_servers
    why = HEADLESS if not acp else NO_LOOPBACK.format(tier=tier) if tier != "overlay" else ""
    if names and not why and ground.lender is None:
        why = NOWHERE
    if names and not why and (lack := missing("mcp", "Tools of MCP servers")) is not None:
        why = str(lack)
    if not names or why or ground.lender is None:
        if names:
            metadata["mcp_servers"] = {"lent": [], "left_out": dict.fromkeys(names, why)}
        yield (), ()
        return
    lent = await ground.lender(names, agent, may_change=may_change)
    metadata["mcp_servers"] = {"lent": list(lent.names), "left_out": dict(lent.left_out)}
    try:
        at = f"http://127.0.0.1:{port}"
        addresses = tuple(McpAddress(name, f"{at}/{name}", lent.token) for name in lent.names)
        yield ((Door(port, lent.serve),) if addresses else ()), addresses
    finally:
        metadata["mcp_servers"]["listed"] = sorted(lent.listed)
        await lent.close()
