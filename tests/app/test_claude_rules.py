"""Which settings let a chat talk with Claude Code, and what is said where they do not (AS-62, CF-61)."""

import pytest

from bowerbird.app.features.claude_code import claude_rules
from bowerbird.config import Settings

TOKEN = "a-token-of-the-claude-bridge"
ON = {"enabled": True, "bridge_url": "http://127.0.0.1:9", "bridge_token": TOKEN}


def rules(**tree: object):
    return claude_rules(lambda: Settings.model_validate(tree))()


def test_it_is_off_until_it_is_asked_for() -> None:
    found = rules()
    assert found.claude is None and "claude_code.enabled" in found.why


def test_without_a_gateway_the_missing_settings_are_named() -> None:
    found = rules(claude_code={"enabled": True})
    assert found.claude is None and "claude_code.bridge_token" in found.why


def test_the_bridge_of_the_gateways_own_settings_is_used() -> None:
    """CF-61: bridge_* default to gateway.*; the time is half an hour where none is said."""
    bridge = {"claude-code": {"allowed_commands": ["claude"], "token": TOKEN}}
    found = rules(claude_code={"enabled": True}, gateway={"enabled": True, "bridges": bridge})
    assert found.claude is not None and found.timeout_s == 1800 and found.why == ""


def test_one_client_knows_what_runs() -> None:
    """AS-61: one run at a time of a conversation holds over all messages."""
    ask = claude_rules(lambda: Settings.model_validate({"claude_code": ON}))
    assert ask().claude is ask().claude is not None


def test_doing_everything_unasked_needs_a_word_and_is_said() -> None:
    """AS-62."""
    with pytest.raises(ValueError, match="needs allow_bypass"):
        rules(claude_code={**ON, "permission_mode": "bypassPermissions"})
    found = rules(claude_code={**ON, "permission_mode": "bypassPermissions", "allow_bypass": True})
    assert "without being permitted" in found.warning and found.permission_mode == "bypassPermissions"
