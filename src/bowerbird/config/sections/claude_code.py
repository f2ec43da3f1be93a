"""Keys of Claude Code from a chat (CF-61).

Not here: running it (`gateway/claude_code.py`), the mode of a chat (`channels/claude/mode.py`).
"""

from typing import Literal

from pydantic import model_validator

from bowerbird.config.fields import Flag, Float, Secret, Section, Text, Url, key

DEFAULT_TIMEOUT_S = 1_800.0
BYPASS = "bypassPermissions"


class ClaudeCodeSection(Section):
    """Claude Code in private chats of owners: `/cc` chooses a project and a conversation."""

    enabled: Flag = key(False, "Whether chats have the command /cc.")
    bridge_url: Url | None = key(
        None, "Address of the gateway with the bridge claude-code; unset = gateway.url.",
        allowed="http(s) URL, or unix:/path",
    )  # fmt: skip
    bridge_token: Secret | None = key(
        None, "Token of that bridge; unset = that of gateway.bridges.claude-code."
    )
    projects_dir: Text = key("~/.claude/projects", "Where Claude Code keeps its conversations.", base="file")
    permission_mode: Literal["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"] | None = key(
        None, "Its --permission-mode; unset = not passed."
    )
    timeout: Float = key(0, "Longest run; 0 = 1,800.", unit="s", ge=0, le=86_400)
    claude_path: Text = key("claude", "The program, by the name that the bridge allows.")
    state_file: Text = key(
        "data/cc_user_states.json", "States of an earlier program; read once, never written.", base="file",
        applies="S",
    )  # fmt: skip
    allow_bypass: Flag = key(False, f"Whether permission_mode may be {BYPASS}.")

    @model_validator(mode="after")
    def _bypass_is_allowed(self) -> "ClaudeCodeSection":
        if self.permission_mode == BYPASS and not self.allow_bypass:
            raise ValueError(f"permission_mode {BYPASS} needs allow_bypass: true")
        return self

    @property
    def timeout_s(self) -> float:
        """Longest run in seconds."""
        return self.timeout or DEFAULT_TIMEOUT_S
