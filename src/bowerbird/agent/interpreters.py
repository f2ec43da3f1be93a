"""The Python interpreters of an agent's runs: names persist from run to run (TO-24, SB-44).

Here: who keeps the dumps between runs, when workers end, when names are forgotten. Not here: the
interpreter, its limits.
A run has its own workers, because a worker belongs to one event loop and runs may have different ones.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bowerbird.tools.processes.python_tools import PythonLimits, PythonSessions

if TYPE_CHECKING:
    from bowerbird.workspace import Branch


class KeptNames:
    """Dumps of interpreters by branch, in memory: they live as long as the agent."""

    def __init__(self) -> None:
        self._dumps: dict[str, bytes] = {}
        self._rollbacks: dict[str, int] = {}

    async def save(self, branch: str, dump: bytes) -> None:
        """Keep `dump` in place of an earlier one."""
        self._dumps[branch] = dump

    async def load(self, branch: str) -> bytes | None:
        """Return what was kept, None when there is nothing."""
        return self._dumps.get(branch)

    @asynccontextmanager
    async def of_run(self, branch: "Branch", timeout_s: float) -> AsyncGenerator[PythonSessions, None]:
        """Give a run its interpreters; at its end the names are kept and the workers closed.

        Names of a state that the branch was taken back from since the last run are forgotten.
        """
        sessions = PythonSessions(PythonLimits(timeout_s=timeout_s), dumps=self)
        try:
            if branch.rollbacks != self._rollbacks.get(branch.id, branch.rollbacks):
                await sessions.rolled_back(branch.id)
            yield sessions
        finally:
            # Also when the run is closed: whoever has seen `done` asks for no further event.
            self._rollbacks[branch.id] = branch.rollbacks
            try:
                await sessions.end_turn(branch.id)
            finally:
                await sessions.aclose()
