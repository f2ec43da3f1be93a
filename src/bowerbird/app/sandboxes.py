"""From settings to the sandboxes of a process, and from their events to sessions that watch.

Here: the map of `sandbox.*` and `tools.*` to values, the host's making, events by branch. Not here: what a
sandbox does, what tools run in it.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.app.mapping import git_rules, landing_rules, workspace_limits
from bowerbird.config import Loaded, Settings
from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.events import Egress, Notice, SandboxTier
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.python.sessions import DumpFiles, PythonSessions
from bowerbird.sandbox.run.limits import RunLimits
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.sessions.live.hub import Published
from bowerbird.sessions.parts import SessionPart
from bowerbird.tools.processes.family import Processes, processes_of
from bowerbird.tools.processes.process_tools import ProcessSettings

if TYPE_CHECKING:
    from bowerbird.sandbox.background_record import BackgroundRun
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.sessions.live.hub import Live
    from bowerbird.tools import Tool
    from bowerbird.workspace import Branch

_log = logging.getLogger(__name__)


def sandbox_settings(settings: Settings, files: Sequence[Path] = ()) -> SandboxSettings:
    """Return what `sandbox` needs.

    Args:
        files: settings files in use, which no command may see.
    """
    section = settings.sandbox
    network = section.network
    shown = {name: value.reveal() for name, value in section.env.items()}
    return SandboxSettings(
        tier=section.tier,
        minimum=section.minimum,
        limits=RunLimits(
            memory_bytes=section.memory_bytes,
            pids=section.pids,
            cpu_seconds=section.cpu_seconds,
            disk_bytes=section.disk_bytes,
            disk_files=section.disk_files,
        ),
        max_timeout_s=section.max_timeout,
        allow=network.allow if network.mode == "allowlist" else (),
        max_bytes=network.max_bytes,
        toolchains=section.toolchains,
        caches=section.caches,
        read_only=section.read_only,
        env={**_identity(settings.git.agent_identity), **shown},
        env_secrets=section.env_secrets,
        copy_max_files=section.copying.max_files,
        copy_max_bytes=section.copying.max_bytes,
        kept_out=(str(Path.home() / ".bowerbird"), *map(str, files)),
    )


def _identity(said: str) -> dict[str, str]:
    """Return the variables that name an author and committer, `Name <address>`; none where none is said."""
    name, _, address = said.rpartition(" ")
    values = {"NAME": name, "EMAIL": address.strip("<>")} if said else {}
    return {f"GIT_{who}_{part}": value for who in ("AUTHOR", "COMMITTER") for part, value in values.items()}


def process_settings(settings: Settings) -> ProcessSettings:
    """Return what the process tools need."""
    tools = settings.tools
    return ProcessSettings(
        bash_timeout_s=tools.bash_timeout,
        background_timeout_s=tools.background_timeout,
        allowed_commands=tools.allowed_commands,
    )


async def session_processes(
    host: SandboxHost,
    settings: Settings,
    branch: "Branch",
    network: str | None = None,
    made: "Callable[[str], Sequence[Tool]] | None" = None,
) -> Processes:
    """Return what a turn on `branch` is offered.

    Args:
        network: the hosts that a person opened for this session (`network.entries_of`), None = those of the
            settings.
        made: gives the tools for a mode, made before for all turns.
    """
    listed = settings.sandbox.network
    allow = listed.allow if listed.mode == "allowlist" else ()
    if network:
        from bowerbird.sandbox.network.network import entries_of

        allow = entries_of(network)
    return await processes_of(host, process_settings(settings), branch, allow, made)


@asynccontextmanager
async def open_scratch(
    loaded: Loaded, directory: Path, allow: tuple[str, ...]
) -> AsyncGenerator[tuple["BranchSandbox", "Branch"], None]:
    """Give a sandbox on a new branch of `directory`; at the end both are gone.

    Args:
        allow: entries of the allow-list, empty = no network; given by a person.

    Raises:
        SandboxUnavailable: commands cannot run, or not with an allow-list. ConfigError: a bad entry.
    """
    from bowerbird.app.own import make_data_dir
    from bowerbird.workspace import Workspace

    settings = loaded.settings
    data_dir = make_data_dir(settings.agent.data_dir)
    host = await to_thread(open_sandboxes, settings, data_dir, files=loaded.files)
    workspace = await to_thread(
        lambda: Workspace(
            directory,
            data_dir=data_dir,
            hide=settings.workspace.hidden,
            limits=workspace_limits(settings),
            rules=landing_rules(loaded, directory),
            git=git_rules(settings),
        )
    )
    try:
        branch = await to_thread(workspace.branch, "sandbox run")
        try:
            sandbox = await host.sandbox(branch)
            await sandbox.network.change(await host.network_rules(allow))
            status = await host.status()
            if allow and status.tier != "overlay":
                raise SandboxUnavailable(f"an allow-list cannot be enforced in the tier {status.tier}")
            yield sandbox, branch
        finally:
            await host.close()
            await to_thread(branch.discard)
    finally:
        await to_thread(workspace.close)


class SandboxNews:
    """Shows the events of sandboxes in the sessions whose branches they are."""

    def __init__(self, live: "Live") -> None:
        self._threads: dict[str, str] = {}  # branch → thread
        self._live = live
        self._listeners: list[Callable[[str, BackgroundRun], None]] = []

    def listen(self, heard: "Callable[[str, BackgroundRun], None]") -> None:
        """Tell somebody of each background command that ends, and of its branch."""
        self._listeners.append(heard)

    def belongs(self, branch_id: str, thread_id: str) -> None:
        """Say whose branch it is."""
        self._threads[branch_id] = thread_id

    def on_background(self, branch_id: str, run: "BackgroundRun") -> None:
        """Hand on that a background command ended."""
        for heard in self._listeners:
            heard(branch_id, run)

    def on_event(self, branch_id: str, event: Egress | Notice | SandboxTier) -> None:
        """Publish a request into the network, or to all sessions another tier."""
        known = self._threads
        for thread in set(known.values()) if not branch_id else {known.get(branch_id)} - {None}:
            self._live.publish(Published(str(thread), None, None, event))


class Runtimes(SessionPart):
    """What runs programs on the branches of sessions: sandboxes, and interpreters that keep names.

    Args:
        sandboxes: closed by whoever made them. directory: where names are kept over a restart.

    Attributes:
        python: the interpreters.
    """

    def __init__(self, sandboxes: SandboxHost, directory: Path) -> None:
        self._sandboxes = sandboxes
        self.python = PythonSessions(dumps=DumpFiles(directory))

    async def turn_ended(self, branch_id: str) -> None:
        """End what must not hold a branch beyond its turn; keep the names over a restart."""
        await self._sandboxes.turn_ended(branch_id)
        try:
            await self.python.end_turn(branch_id)
        except OSError as error:
            _log.warning("Python names of %s are not kept over a restart: %s", branch_id, error)

    async def rolled_back(self, branch_id: str) -> None:
        """Forget the names of a state that the branch was taken back from."""
        await self.python.rolled_back(branch_id)

    async def aclose(self) -> None:
        """End the interpreters."""
        await self.python.aclose()


def open_sandboxes(
    settings: Settings,
    data_dir: Path,
    news: SandboxNews | None = None,
    *,
    files: Sequence[Path] = (),
    remember: bool = False,
) -> SandboxHost:
    """Return the one host of a process; nothing is probed yet. Blocks.

    Args:
        files: settings in use. remember: see `SandboxHost`.
    """
    return SandboxHost(
        data_dir,
        sandbox_settings(settings, files),
        on_event=news.on_event if news is not None else None,
        on_background=news.on_background if news is not None else None,
        remember=remember,
    )
