"""Claude Code from a chat, bound to settings (AS-61, AS-62).

Here: that binding. Not here: the mode (`channels/claude/mode.py`), running it (`gateway/claude_code.py`).
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.channels.claude.mode import ClaudeRules
from bowerbird.channels.house import CLAUDE_IS_OFF
from bowerbird.config.sections.claude_code import BYPASS
from bowerbird.gateway.claude_code import BRIDGE, ClaudeCode, GatewayClaude
from bowerbird.gateway.client import GatewayClient

if TYPE_CHECKING:
    from bowerbird.config import Settings

NO_GATEWAY = (
    "Claude Code runs through the host gateway, and none is set up: give claude_code.bridge_url and "
    f"claude_code.bridge_token, or the bridge gateway.bridges.{BRIDGE}."
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
            why="" if claude else NO_GATEWAY, warning=UNASKED if is_free else "",
        )  # fmt: skip

    return rules
