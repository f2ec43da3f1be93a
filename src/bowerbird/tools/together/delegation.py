"""What the tools of subagents ask of whoever runs them.

Here: the protocol. Not here: the tools (`subagents.py`), running subagents (`bowerbird.subagents`).
"""

from collections.abc import Sequence
from typing import Any, Protocol


class Subagents(Protocol):
    """Subagents on behalf of one tool call; results are the records of the delegation chapter."""

    async def spawn(self, tasks: Sequence[Any]) -> dict[str, Any]:
        """Run all tasks and return `{"subagents": […]}`."""
        ...

    async def merge(
        self, handle: str, paths: Sequence[str] | None = None, force: bool = False
    ) -> dict[str, Any]:
        """Merge a subagent's changes into the caller's branch."""
        ...

    async def discard(self, handle: str) -> dict[str, Any]:
        """Drop a subagent and its fork."""
        ...

    async def read(self, handle: str, path: str = "") -> dict[str, Any]:
        """Return a subagent's changes, or its version of a file; `text` is the readable form."""
        ...

    async def task(self, description: str, prompt: str, agent_type: str) -> dict[str, Any]:
        """Run one subagent of a type; `text` is what its caller is told."""
        ...

    async def tournament(
        self,
        task: str,
        attempts: int | None,
        checks: Sequence[str],
        models: Sequence[str],
        merge: str,
        agents: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Let several attempts compete and return their ranking."""
        ...
