"""What a model is told of background commands that ended (SB-37, DE-29).

Here: from their records to messages, each given once. Not here: running them (`sandbox/`), when the
loop asks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.events import Injected
from bowerbird.core.messages import user_text
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.sandbox.background import BackgroundRuns
    from bowerbird.sandbox.background_record import BackgroundRun
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.workspace import Branch

_RESULT_CHARS = 500


class BackgroundNotices:
    """Ends of a branch's background commands, for the loop of its agent.

    Args:
        host: whose sandbox they ran in. branch: the agent's.
    """

    def __init__(self, host: "SandboxHost", branch: "Branch") -> None:
        self._host = host
        self._branch = branch
        self._given: list[str] = []

    async def poll(self) -> Sequence[Injected]:
        """Return one message per end nobody was told of yet, oldest first."""
        runs = await self._runs()
        if runs is None:
            return []
        ended = runs.untold()
        self._given = [run.task_id for run in ended]
        return [Injected("background", user_text(end_text(run)), ids=(run.task_id,)) for run in ended]

    async def told(self) -> None:
        """Say that what `poll` gave last is in the record: it is not given again."""
        given, self._given = self._given, []
        runs = await self._runs() if given else None
        if runs is not None:
            await to_thread(runs.mark_told, given)

    async def _runs(self) -> "BackgroundRuns | None":
        if not await to_thread(self._host.had_background, self._branch):
            return None
        try:
            return (await self._host.sandbox(self._branch)).background
        except SandboxUnavailable:
            return None  # it is told with the first turn that can run commands again


def end_text(run: "BackgroundRun") -> str:
    """Return what a model is told of a command that ended."""
    code = "" if run.exit_code is None else f" exit_code={run.exit_code}"
    lost = (
        "\nThe server stopped while it ran; what it printed until then was kept."
        if run.state == "lost"
        else ""
    )
    result = run.output.strip()[-_RESULT_CHARS:] or "(no output)"
    where = f"\nWhole output: {run.spill}" if run.spill and len(run.output) > _RESULT_CHARS else ""
    return (
        f'<background_result task_id="{run.task_id}" status="{run.state}"{code}>\n'
        f"Command: {run.command[:80]}{lost}\n{result}{where}\n</background_result>"
    )
