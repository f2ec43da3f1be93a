"""Fake programs of vendors on a real ground: scripts that lie where Bowerbird installs agents.

Here: the ground, writing a script, an agent over it. Not here: what a script prints.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.trees import write_tree

from bowerbird.config.sections.agent import ProviderEntry
from bowerbird.providers.catalogue import CATALOGUE
from bowerbird.providers.contract.types import AgentRequest, AgentResponse
from bowerbird.providers.programs.agent import ProgramAgent, program_agent
from bowerbird.providers.programs.finding import installed_bin
from bowerbird.providers.programs.ground import ProgramGround, branches_of
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

KEY = "sk-SECRET-Qz7xW2mKp9"
FILES = {"kept.txt": "kept\n", "old.txt": "one\ntwo\n"}
_HEAD = f"#!{Path(sys.executable).resolve()} -IS\nimport json, os, sys, time, subprocess\n"
RESULT = """
def result(text, **more):
    print(json.dumps({"type": "result", "is_error": False, "result": text, "session_id": "s-1", **more}), flush=True)
"""


@dataclass
class Stage:
    """A workspace, its sandboxes, and the directory of fake programs."""

    place: Path
    workspace: Workspace
    host: SandboxHost
    ground: ProgramGround

    @property
    def root(self) -> Path:
        """The workspace's directory."""
        return self.place / "ws"

    def program(self, name: str, body: str) -> Path:
        """Write a Python program that commands see."""
        path = installed_bin(self.ground.data_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_HEAD + RESULT + body)
        path.chmod(0o755)
        return path

    def agent(self, name: str = "claude_code", **settings: Any) -> ProgramAgent:
        """Return an agent; one with a key has it at an address where nobody is, unless told otherwise."""
        given = {"transport": "headless", "api_key": KEY, "base_url": "http://127.0.0.1:9", **settings}
        return program_agent(CATALOGUE[name], ProviderEntry.model_validate(given), self.ground)

    async def ask(self, body: str, prompt: str = "go", *, request: dict[str, Any] | None = None,
                  **settings: Any) -> AgentResponse:  # fmt: skip
        """Run Claude Code with a program in its place."""
        self.program("claude", body)
        return await self.agent(**settings).execute(AgentRequest(prompt, **(request or {})))


@asynccontextmanager
async def stage(place: Path, tier: str = "overlay") -> AsyncIterator[Stage]:
    """Give a stage in `place`; skips where this host has not the tier."""
    write_tree(place / "ws", FILES)
    with Workspace(place / "ws", data_dir=place / "data") as workspace:
        host = SandboxHost(place / "data", SandboxSettings(tier=tier))
        status = await host.status()
        if status.tier != tier:
            pytest.skip(f"this host gives the tier {status.tier}: {status.reasons}")
        ground = ProgramGround(place / "data", host, branches_of(workspace))
        try:
            yield Stage(place, workspace, host, ground)
        finally:
            await ground.close()
            await host.close()
