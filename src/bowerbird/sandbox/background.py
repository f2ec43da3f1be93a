"""Commands that go on beside the conversation: started, looked at, stopped (SB-37, DE-27 … DE-31).

Here: the background runs of one branch, from start to their record. Not here: how a command runs
(`branch_sandbox`), who may start one, telling a model (`agent`).
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.core.errors import BowerbirdError, BranchBusy, InvalidArgument, LimitExceeded
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import now_iso
from bowerbird.sandbox.background_record import (
    OUTPUT_BYTES,
    BackgroundFile,
    BackgroundRun,
    RunState,
    lost,
)
from bowerbird.sandbox.run.command import Ending, check_command, exit_code
from bowerbird.sandbox.run.running import Finished, RunningCommand

if TYPE_CHECKING:
    from bowerbird.sandbox.branch_sandbox import BranchSandbox

DEFAULT_TIMEOUT_S = 300.0
Ended = Callable[[BackgroundRun], None]


class BackgroundRuns:
    """Background commands of one branch. While one runs the sandbox stays warm and the branch's open layer
    in place, over the ends of turns.

    Args:
        sandbox: where they run. record: file they are remembered in.
        most: how many may run at once.
        on_end: hears of each that ended, at once.

    Example:
        task = await runs.start("npm run dev", timeout=3600)
        runs.poll(task)["tail"]
    """

    def __init__(
        self, sandbox: "BranchSandbox", record: Path, *, most: int = 8, on_end: Ended | None = None
    ) -> None:
        self._sandbox = sandbox
        self._file = BackgroundFile(record)
        self._most = most
        self._on_end = on_end
        self._commands: dict[str, RunningCommand] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopped: set[str] = set()
        self._closing = False
        self._ours: set[str] = set()  # from their start until their end is in the file
        self._runs: dict[str, BackgroundRun] = {}
        self.catch_up()

    def catch_up(self) -> None:
        """Read what other processes ran on this branch since the last look; cheap when they did nothing.

        What another process had running when it died is `lost` from now on.
        """
        if self._file.changed():
            ours = {task_id: self._runs[task_id] for task_id in self._ours}
            self._runs = {run.task_id: run for run in self._file.load()} | ours
        foreign = [run for run in self._runs.values() if not run.ended and run.task_id not in self._ours]
        if foreign and self._sandbox.is_free():
            self._lose(foreign)

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of those that run, here or in another process."""
        self.catch_up()
        return tuple(run.task_id for run in self._runs.values() if not run.ended)

    async def start(
        self,
        command: str | Sequence[str],
        *,
        timeout: float = DEFAULT_TIMEOUT_S,
        configured_timeout: float | None = None,
        notify: bool = False,
        turn: str | None = None,
    ) -> str:
        """Start a command and return its task id at once.

        Args:
            command: a string for bash, or a list that runs as it is.
            timeout: seconds, then its whole tree is killed. notify: see `BackgroundRun`.
            turn: whose changes these are.

        Raises:
            LimitExceeded: as many run as may. InvalidArgument: a bad command or timeout.
            SandboxUnavailable: no sandbox could be had; nothing runs.
        """
        check_command(command)
        running = self.running
        if len(running) >= self._most:
            raise LimitExceeded(
                f"{len(running)} background commands run already ({', '.join(running)}), at most "
                f"{self._most} may; cancel one, or wait for one to end"
            )
        task_id = new_id("bg")
        shown = command if isinstance(command, str) else " ".join(command)
        run = BackgroundRun(task_id, shown, "running", now_iso(), timeout, notify)
        self._ours.add(task_id)
        self._runs[task_id] = run  # counts from now on, so that no two starts pass the limit together
        try:
            request = self._sandbox.request(
                command,
                timeout=timeout,
                configured_timeout=configured_timeout,
                max_output_bytes=OUTPUT_BYTES,
                keep_output=True,
            )
            live = await self._sandbox.begin(request, call=task_id)
        except BaseException:
            self._ours.discard(task_id)
            del self._runs[task_id]
            raise
        self._commands[task_id] = live
        self._put(msgspec.structs.replace(run, timeout_s=request.timeout_s, spill=live.output.name))
        following = self._follow(task_id, live, turn)
        self._tasks[task_id] = asyncio.create_task(following, name=f"background {task_id}")
        return task_id

    def poll(self, task_id: str) -> dict[str, Any]:
        """Return status, tail, output so far and spill of one run.

        Raises:
            InvalidArgument: there is no such run; those there are, are named.
        """
        return self._now(self._known(task_id)).to_data()

    def poll_all(self) -> list[dict[str, Any]]:
        """Return `poll` of every run, oldest first."""
        self.catch_up()
        return [self._now(run).to_data() for run in self._runs.values()]

    async def stop(self, task_id: str) -> dict[str, Any]:
        """Kill a run's whole tree and return its `poll`; one that ended stays as it is.

        Raises:
            InvalidArgument: there is no such run. BranchBusy: it runs in another process.
        """
        run = self._known(task_id)
        live = self._commands.get(task_id)
        if live is None and not run.ended and task_id not in self._ours:
            raise BranchBusy(f"{task_id} runs in another process; cancel it there")
        if live is not None:
            self._stopped.add(task_id)
            live.stop("cancel")
            await asyncio.shield(self._tasks[task_id])
        return self.poll(task_id)

    async def finished(self) -> None:
        """Return when none runs any more."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    def untold(self) -> list[BackgroundRun]:
        """Return those that ended and of whose end nobody was told yet."""
        self.catch_up()
        return [run for run in self._runs.values() if run.ended and not run.told]

    def mark_told(self, task_ids: Sequence[str]) -> None:
        """Remember that model and user know of these ends."""
        self.catch_up()
        for task_id in task_ids:
            if task_id in self._runs:
                self._runs[task_id] = msgspec.structs.replace(self._runs[task_id], told=True)
        if task_ids:
            self._file.save(self._runs.values())

    async def close(self) -> None:
        """Kill what runs: the server stops. The next one finds them `lost`, with what they printed."""
        self._closing = True
        for live in self._commands.values():
            live.stop("cancel")
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _follow(self, task_id: str, live: RunningCommand, turn: str | None) -> None:
        finished: Finished | None = None
        failed = ""
        try:
            finished = await live.wait()
        except (BowerbirdError, OSError):
            pass  # the sandbox died under it, or could not be looked at; what it printed is in its spill
        finally:
            del self._commands[task_id]
            try:
                await self._sandbox.end(live, turn=turn, call=task_id)
            except (OSError, BowerbirdError) as error:  # a full disk, say: it ended all the same
                failed = f"[what it changed could not be taken into the branch: {error}]\n"
            finally:
                self._tasks.pop(task_id, None)
        run = self._runs[task_id]
        if finished is None or self._closing:
            live.output.close()
            self._lose([run])
            self._ours.discard(task_id)
            return
        output = finished.output
        self._put(
            msgspec.structs.replace(
                run,
                state="error" if failed else _state(finished.ending),
                exit_code=exit_code(finished.ending),
                duration_ms=finished.duration_ms,
                output=_with_note(output.text, failed),
                total_bytes=output.total_bytes,
                truncated=output.truncated,
                spill=output.spill,
                told=task_id in self._stopped,  # whoever stops it knows of its end
            )
        )
        self._ours.discard(task_id)
        if self._on_end is not None:
            self._on_end(self._runs[task_id])

    def _lose(self, runs: Sequence[BackgroundRun]) -> None:
        for run in runs:
            self._runs[run.task_id] = lost(run, self._sandbox.spill_path(run.task_id))
        if runs:
            self._file.save(self._runs.values())

    def _put(self, run: BackgroundRun) -> None:
        self.catch_up()
        self._runs[run.task_id] = run
        self._file.save(self._runs.values())

    def _known(self, task_id: str) -> BackgroundRun:
        self.catch_up()
        found = self._runs.get(task_id)
        if found is None:
            known = ", ".join(self._runs) or "none"
            raise InvalidArgument(f"there is no background command {task_id!r}; there are: {known}")
        return found

    def _now(self, run: BackgroundRun) -> BackgroundRun:
        live = self._commands.get(run.task_id)
        if live is None:
            return run
        collected = live.output
        return msgspec.structs.replace(
            run,
            output=collected.so_far(),
            total_bytes=collected.total_bytes,
            truncated=collected.total_bytes > OUTPUT_BYTES,
            duration_ms=live.running_ms,
        )


def _with_note(output: str, note: str) -> str:
    return f"{output}{'' if output.endswith(chr(10)) or not output else chr(10)}{note}" if note else output


def _state(ending: Ending) -> RunState:
    if ending.stop == "timeout":
        return "timeout"
    if ending.stop == "cancel":
        return "killed"
    return "completed" if ending.stop is None and ending.code == 0 else "error"
