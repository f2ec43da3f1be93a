"""The sandbox of one branch: its view mounted, its commands run, their changes captured (SB-7 … SB-20).

Here: when to start, mount anew and capture, and in which order. Not here: how (`run/warm_sandbox`,
`run/running`, `bowerbird.workspace.process_view`), nor what is shared between branches (`host`).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.errors import InvalidArgument, PathEscape, SandboxUnavailable
from bowerbird.core.ids import new_id
from bowerbird.core.processes import descriptors
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.inside.bridge import PORT, PROXY_SOCKET
from bowerbird.sandbox.network.network import BranchNetwork
from bowerbird.sandbox.projection import Projection, projection_of
from bowerbird.sandbox.run.command import (
    DEFAULT_TIMEOUT_S,
    CommandRequest,
    CommandResult,
    check_command,
    check_environment,
    check_timeout,
)
from bowerbird.sandbox.run.doors import open_doors
from bowerbird.sandbox.run.gauges import room_again
from bowerbird.sandbox.run.profile import HostFacts, environment
from bowerbird.sandbox.run.spill_files import prune_spills, spill_name
from bowerbird.sandbox.run.status import Tier
from bowerbird.workspace import BeforeCall, ProcessView

if TYPE_CHECKING:
    from bowerbird.sandbox.background import BackgroundRuns
    from bowerbird.sandbox.background_record import BackgroundRun
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sandbox.persistent_python import PersistentPython
    from bowerbird.sandbox.run.causes import Causes
    from bowerbird.sandbox.run.running import Finished, RunningCommand
    from bowerbird.workspace import Captured

_SLOW_CLOSE_S = 1.0
BACKGROUND_FILE = "background.json"


class BranchSandbox:
    """Runs commands on one branch; belongs to one event loop.

    Attributes:
        last_used: `time.monotonic()` of the last command's end.
        network: what its commands can reach.
    """

    def __init__(
        self, host: "SandboxHost", view: ProcessView, tier: Tier, network: BranchNetwork, facts: HostFacts
    ) -> None:
        self._host = host
        self._view = view
        self._facts = facts
        self._projection: Projection = projection_of(tier)(host, view)
        self.last_used = time.monotonic()
        self._preparing = asyncio.Lock()
        self._slots = asyncio.Semaphore(host.settings.commands)
        self._running: set[RunningCommand] = set()
        self._background: BackgroundRuns | None = None
        self._python: PersistentPython | None = None
        self.network = network
        self._before: BeforeCall | None = None  # while all commands that ended were over the disk limit
        self._idle = asyncio.Event()
        self._idle.set()

    @cached_property
    def _causes(self) -> "Causes":
        from bowerbird.sandbox.run.causes import Causes

        return Causes(self._host.settings.limits, self._facts.shows, self._view, self.root)

    @property
    def root(self) -> str:
        """The branch's path for commands."""
        return self._projection.root

    @property
    def tier(self) -> Tier:
        """What its commands run in."""
        return self._projection.tier

    @property
    def home(self) -> str:
        """The home of its commands, as they see it."""
        return self._projection.stands.home

    @property
    def warm(self) -> bool:
        """Whether its processes are up."""
        return self._projection.alive

    @property
    def busy(self) -> bool:
        """Whether a command runs."""
        return bool(self._running)

    # ------------------------------------------------------------ commands

    async def run(
        self,
        command: str | Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = DEFAULT_TIMEOUT_S,
        configured_timeout: float | None = None,
        max_output_bytes: int = 100_000,
        network: str | None = None,
        separate: bool = False,
        on_output: Callable[[bytes], None] | None = None,
        cancel: asyncio.Event | None = None,
        turn: str | None = None,
        call: str | None = None,
    ) -> CommandResult:
        """Run a command on the branch and return its record once its changes are captured.

        Args:
            command: a string for bash, or a list that runs as it is.
            cwd: virtual path of a directory of the branch.
            env: further variables.
            timeout: seconds; then SIGTERM, and SIGKILL one second later.
            network: what the command counts on: `closed` or `allowlist`; None = what the session has.
            separate: also give stdout and stderr apart.
            on_output: gets live chunks at most every 50 ms.
            cancel: setting it ends the command, whose record then says `cancelled`.
            turn, call: whose changes these are, for the branch's journal.

        Raises:
            InvalidArgument: a bad command or timeout, or another network than the session's.
            PathEscape: `cwd` leaves the branch.
            SandboxUnavailable: no sandbox could be had; nothing ran.

        Example:
            result = await sandbox.run("pytest -q", timeout=120)
        """
        if network is not None and network != self.network.mode:
            raise InvalidArgument(
                f"network is {network!r}, the session has {self.network.mode!r}; only a person changes it"
            )
        request = self.request(
            command, cwd=cwd, env=env, stdin=stdin, timeout=timeout, configured_timeout=configured_timeout,
            max_output_bytes=max_output_bytes, separate=separate,
        )  # fmt: skip
        async with self._slots:
            from bowerbird.sandbox.run.running import stop_when

            running = await self.begin(request, call=call, on_output=on_output)
            stopping = asyncio.create_task(stop_when(cancel, running)) if cancel is not None else None
            try:
                finished = await running.wait()
            finally:
                if stopping is not None:
                    stopping.cancel()
                captured = await self.end(running, turn=turn, call=call)
        return self._record(request, finished, captured)

    def request(
        self,
        command: str | Sequence[str],
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout: float = DEFAULT_TIMEOUT_S,
        configured_timeout: float | None = None,
        max_output_bytes: int = 100_000,
        separate: bool = False,
        keep_output: bool = False,
        stdin_fd: int | None = None,
    ) -> CommandRequest:
        """Return a checked request for `begin`; arguments and errors as for `run`."""
        if max_output_bytes < 1:
            raise InvalidArgument(f"max_output_bytes is {max_output_bytes}; it must be positive")
        limit, note = check_timeout(timeout, self._host.settings.max_timeout_s, configured_timeout)
        return CommandRequest(
            argv=check_command(command),
            cwd=self._inside(cwd),
            root=self.root,
            env=self._environment(check_environment(env or {})),
            stdin=stdin,
            stdin_fd=stdin_fd,
            timeout_s=limit,
            max_output_bytes=max_output_bytes,
            separate=separate,
            keep_output=keep_output,
            note=note,
        )

    @property
    def longest_s(self) -> float:
        """The longest time that any command may be given, in seconds."""
        return self._host.settings.max_timeout_s

    def spill_path(self, call: str) -> Path:
        """Return the host path of a call's whole output."""
        return self._projection.spills / spill_name(call)

    @contextlib.contextmanager
    def shown_file(self, name: str, text: str) -> Generator[str]:
        """Show commands a file for a while, read-only and outside of the branch; gives its path inside."""
        # Where commands cannot write: no link of theirs can redirect what this process writes.
        file = self._projection.spills / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
        try:
            yield f"{self._projection.spill_prefix}/{name}"
        finally:
            file.unlink(missing_ok=True)

    @property
    def python(self) -> "PersistentPython":
        """The branch's CPython whose names persist; only for hosts without Monty."""
        if self._python is None:
            from bowerbird.sandbox.persistent_python import PersistentPython

            self._python = PersistentPython(self)
        return self._python

    def is_free(self) -> bool:
        """Whether no other process has the branch, so that none of its commands can be running."""
        return self._view.is_free()

    async def turn_ended(self) -> None:
        """End what must not hold the branch beyond a turn."""
        if self._python is not None:
            await self._python.close()

    @property
    def background(self) -> "BackgroundRuns":
        """The branch's background commands."""
        if self._background is None:
            from bowerbird.sandbox.background import BackgroundRuns

            self._background = BackgroundRuns(
                self, self._view.directory / BACKGROUND_FILE,
                most=self._host.settings.background, on_end=self._tell_background,
            )  # fmt: skip
        return self._background

    def _inside(self, cwd: str) -> str:
        if "\0" in cwd:
            raise InvalidArgument("cwd holds a NUL character")
        if cwd == self.root or cwd.startswith(self.root + "/"):
            cwd = cwd[len(self.root) :]
        parts: list[str] = []
        for part in cwd.split("/"):
            if part == "..":
                if not parts:
                    raise PathEscape(f"{cwd} leaves the workspace", cwd)
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return "/".join([self.root, *parts])

    def _environment(self, extra: Mapping[str, str]) -> Mapping[str, str]:
        chosen = self._host.settings
        given = environment(
            self._facts,
            self._projection.stands,
            extra=chosen.env,
            secrets=chosen.env_secrets,
            proxy=self.network.proxy_url,
        )
        return {**given, **extra}

    async def begin(
        self,
        request: CommandRequest,
        *,
        call: str | None = None,
        on_output: Callable[[bytes], None] | None = None,
    ) -> "RunningCommand":
        """Start a command; what it is given back to is `end`."""
        name = spill_name(call or new_id("c"))
        async with self._preparing:
            from bowerbird.sandbox.run.running import RunningCommand
            from bowerbird.sandbox.run.watch import DiskPlace

            first = not self._running
            mark = await to_thread(self._view.mark) if first else None
            try:
                warm = await self._projection.ready(first=first)
            except SandboxUnavailable as error:
                if descriptors.ran_out(error) is None:  # which says nothing about what the host can
                    await self._host.start_failed()
                raise
            if first:
                self._before = self._view.before_call(mark) if mark is not None else None
            if await self.network.open(self._projection.net):
                await warm.open_bridge(PORT, PROXY_SOCKET)
            await open_doors(request.doors, self._projection.net, warm)
            running = RunningCommand(
                warm,
                request,
                self._host.settings.limits,
                spill=self._projection.spills / name,
                spill_name=f"{self._projection.spill_prefix}/{name}",
                on_output=on_output,
                disk=DiskPlace(self._view.disk_used, self._view.directory),
            )
            self._running.add(running)
            self._idle.clear()
        return running

    async def end(
        self, running: "RunningCommand", *, turn: str | None = None, call: str | None = None
    ) -> "Captured":
        """Capture what was changed; the last command to end lets file tools write directly again."""
        self._running.discard(running)
        self.last_used = time.monotonic()
        if not self._running:
            self._idle.set()
        if running.stopped_by != "disk":
            self._before = None  # what this one changed is kept, so nothing can be taken back any more
        async with self._preparing:
            from bowerbird.sandbox.run.branch_record import NOTHING_KEPT

            # Shielded: what a cancelled command changed is in the branch all the same.
            last = not self._running
            captured = await asyncio.shield(
                to_thread(self._finish, turn, call, last=last, spilled=running.spilled)
            )
            if captured is NOTHING_KEPT:
                self._projection.close()  # its mount would keep the bytes of files that are deleted
                await room_again(self._view.directory)
            return captured

    async def capture(self, *, turn: str | None = None, call: str | None = None) -> "Captured":
        """Take what a command that goes on has changed so far into the branch's records."""
        self._before = None
        async with self._preparing:
            taken = to_thread(self._projection.capture, turn, call, last=False)
            return await asyncio.shield(taken)

    def _finish(self, turn: str | None, call: str | None, *, last: bool, spilled: bool) -> "Captured":
        if spilled:
            prune_spills(self._projection.spills, keep=[running.spill_name for running in self._running])
        before, self._before = self._before, self._before if not last else None
        if last and before is not None and self._projection.undo(before):
            from bowerbird.sandbox.run.branch_record import NOTHING_KEPT

            return NOTHING_KEPT
        return self._projection.capture(turn, call, last=last)

    def _tell_background(self, run: "BackgroundRun") -> None:
        if self._host.on_background is not None:
            self._host.on_background(self._view.directory.name, run)

    def _record(self, request: CommandRequest, finished: "Finished", captured: "Captured") -> CommandResult:
        from bowerbird.sandbox.run.branch_record import told_record

        return told_record(
            request, finished, captured, tier=self._projection.tier, network=self.network.mode,
            background=self._background.running if self._background is not None else (),
            places=(self._view.workspace, self.root), causes=self._causes,
        )  # fmt: skip

    async def new_turn(self) -> None:
        """Show the next command what the user edited meanwhile; a view in use stays as it is."""
        async with self._preparing:
            if not self._running:
                self._projection.renew()

    async def cool_down(self) -> None:
        """End the processes; the branch and the next command lose nothing."""
        async with self._preparing:
            if not self._running:
                await self.network.close()
                self._projection.close()

    async def close(self) -> None:
        """End everything that runs, keep what it changed."""
        await self.turn_ended()
        if self._background is not None:
            await self._background.close()
        for running in list(self._running):
            running.stop("cancel")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _SLOW_CLOSE_S)
        await self.cool_down()
