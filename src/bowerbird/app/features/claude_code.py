"""Claude Code from a chat, bound to settings (AS-61, AS-62).

Here: that binding: through the gateway where there is one, else on a branch. Not here: the mode
(`channels/claude/mode.py`), running it (`gateway/claude_code.py`, `channels/claude/on_branch.py`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.channels.claude.mode import ClaudeRules
from bowerbird.channels.claude.on_branch import AGENT, BranchClaude
from bowerbird.channels.house import CLAUDE_IS_OFF
from bowerbird.config.sections.claude_code import BYPASS
from bowerbird.gateway.claude_code import BRIDGE, ClaudeCode, GatewayClaude
from bowerbird.gateway.client import GatewayClient
from bowerbird.providers.choosing import offered

if TYPE_CHECKING:
    from bowerbird.config import Settings
    from bowerbird.sessions.provider_agents.part import ProviderAgents
    from bowerbird.store.store import Store

NOT_OFFERED = (
    f"Claude Code runs on a branch, but providers.enabled does not list {AGENT}; or through the host "
    "gateway, and none is set up: give claude_code.bridge_url and claude_code.bridge_token, or the bridge "
    f"gateway.bridges.{BRIDGE}."
)

UNASKED = f"⚠ It does everything without being permitted to: claude_code.permission_mode is {BYPASS}."


def claude_rules(
    settings: "Callable[[], Settings]", on_branch: "Callable[[Settings], ClaudeCode | None]" = lambda _: None
) -> Callable[[], ClaudeRules]:
    """Return what gives the rules in force.

    Args:
        on_branch: gives what runs Claude Code on a branch, where there is no gateway.
    """
    # One client for as long as its address is the same: it knows which conversations run.
    kept: dict[tuple[str, str, str], ClaudeCode] = {}

    def through_gateway(now: "Settings") -> ClaudeCode | None:
        section, gateway = now.claude_code, now.gateway
        url = section.bridge_url.reveal() if section.bridge_url is not None else ""
        token = section.bridge_token.reveal() if section.bridge_token is not None else ""
        if not token and BRIDGE in gateway.bridges:
            token = gateway.token_of(BRIDGE) or ""
        if not token or not (url or gateway.enabled):
            return None
        place = (url or gateway.address, token, section.claude_path)
        if place not in kept:
            kept[place] = GatewayClaude(GatewayClient(place[0], BRIDGE, token), section.claude_path)
        return kept[place]

    def rules() -> ClaudeRules:
        now = settings()
        section = now.claude_code
        directory = Path(section.projects_dir).expanduser()
        if not section.enabled:
            return ClaudeRules(None, directory, why=CLAUDE_IS_OFF)
        claude = through_gateway(now) or on_branch(now)
        is_free = section.allow_bypass and section.permission_mode == BYPASS
        return ClaudeRules(
            claude, directory, section.permission_mode, section.timeout_s,
            why="" if claude else NOT_OFFERED, warning=UNASKED if is_free else "",
        )  # fmt: skip

    return rules


def on_branches(agents: "ProviderAgents", store: "Store") -> "Callable[[Settings], ClaudeCode | None]":
    """Return what gives Claude Code on a branch, None where settings do not offer that agent."""
    made = BranchClaude(agents, store)
    return lambda now: made if any(one.name == AGENT for one in offered(now.providers)) else None
