"""From settings to the sandboxes of a process, and from their events to sessions that watch.

Here: the map of `sandbox.*` and `tools.*` to values, the host's making, events by branch. Not here: what a
sandbox does, what tools run in it.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.config import Settings
from bowerbird.core.events import BackgroundResult, Egress, SandboxTier
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.running import RunLimits
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.sessions.live import Published
from bowerbird.tools import Tool
from bowerbird.tools.background_notices import BackgroundNotices
from bowerbird.tools.processes import (
    PROCESS_TOOLS,
    ProcessSettings,
    process_tools,
    processes_unavailable,
    sandbox_line,
)

if TYPE_CHECKING:
    from bowerbird.sandbox.background_record import BackgroundRun
    from bowerbird.sessions.live import Live
    from bowerbird.workspace import Branch

_GIT_S = 5.0
_IDENTITY = ("user.name", "user.email")


def sandbox_settings(settings: Settings) -> SandboxSettings:
    """Return what `sandbox` needs (CF-69). Reads the user's Git identity. Blocks."""
    section = settings.sandbox
    network = section.network
    return SandboxSettings(
        tier=section.tier,
        minimum=section.minimum,
        limits=RunLimits(
            memory_bytes=section.memory_bytes,
            pids=section.pids,
            cpu_seconds=section.cpu_seconds,
            disk_bytes=section.disk_bytes,
        ),
        max_timeout_s=section.max_timeout,
        allow=network.allow if network.mode == "allowlist" else (),
        max_bytes=network.max_bytes,
        toolchains=section.toolchains == "auto",
        read_only=section.read_only,
        env={name: value.reveal() for name, value in section.env.items()},
        env_secrets=section.env_secrets,
        git_identity=git_identity(),
        copy_max_files=section.copying.max_files,
        copy_max_bytes=section.copying.max_bytes,
    )


def process_settings(settings: Settings) -> ProcessSettings:
    """Return what the process tools need (CF-38 … CF-40)."""
    tools = settings.tools
    return ProcessSettings(
        bash_timeout_s=tools.bash_timeout,
        background_timeout_s=tools.background_timeout,
        allowed_commands=tools.allowed_commands,
    )


def git_identity() -> dict[str, str]:
    """Return the user's own `user.name` and `user.email`, as far as set; nothing without Git. Blocks."""
    try:
        done = subprocess.run(
            ["git", "config", "--global", "--null", "--get-regexp", r"^user\.(name|email)$"],
            capture_output=True, text=True, timeout=_GIT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (entry.partition("\n") for entry in done.stdout.split("\0"))
    return {key: value for key, _, value in pairs if key in _IDENTITY and value}


@dataclass(frozen=True, slots=True)
class Processes:
    """What one turn can do with processes.

    Attributes:
        tools: that run commands. absent: why those that are missing are. line: for the system prompt.
        notices: ends of background commands.
    """

    tools: tuple[Tool, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    line: str = ""
    notices: BackgroundNotices | None = None


async def session_processes(
    host: SandboxHost, settings: Settings, branch: "Branch", network: str | None = None
) -> Processes:
    """Return what a turn on `branch` is offered.

    Args:
        network: the mode that a person chose for this session, None = that of the settings. A session
            cannot allow more than the settings list.
    """
    status = await host.status()
    reason = processes_unavailable(status)
    if reason is not None:
        return Processes((), dict.fromkeys(PROCESS_TOOLS, reason), sandbox_line(status))
    sandbox = await host.sandbox(branch)
    wanted = settings.sandbox.network.allow if (network or status.network) == "allowlist" else ()
    if status.tier == "overlay" and sandbox.network.allow != wanted:
        await sandbox.network.change(await host.network_rules(wanted))
    mode, allow = sandbox.network.mode, sandbox.network.allow
    return Processes(
        tuple(process_tools(host, process_settings(settings), network=mode)),
        {},
        sandbox_line(status, mode, allow),
        BackgroundNotices(host, branch),
    )


class SandboxNews:
    """Shows the events of sandboxes in the sessions whose branches they are."""

    def __init__(self) -> None:
        self._threads: dict[str, str] = {}  # branch → thread
        self._live: Live | None = None

    def connect(self, live: "Live") -> None:
        """Publish to `live` from now on."""
        self._live = live

    def belongs(self, branch_id: str, thread_id: str) -> None:
        """Say whose branch it is."""
        self._threads[branch_id] = thread_id

    def on_event(self, branch_id: str, event: Egress | SandboxTier) -> None:
        """Publish a request into the network, or to all sessions another tier."""
        self._publish(branch_id, event)

    def on_background(self, branch_id: str, run: "BackgroundRun") -> None:
        """Publish that a background command ended (DE-29)."""
        self._publish(branch_id, BackgroundResult((run.notification(),)))

    def _publish(self, branch_id: str, event: Egress | SandboxTier | BackgroundResult) -> None:
        if self._live is None:
            return
        known = self._threads
        for thread in set(known.values()) if not branch_id else {known.get(branch_id)} - {None}:
            self._live.publish(Published(str(thread), None, None, event))


def open_sandboxes(settings: Settings, data_dir: Path, news: SandboxNews | None = None) -> SandboxHost:
    """Return the one host of a process; nothing is started or probed yet. Blocks."""
    return SandboxHost(
        data_dir,
        sandbox_settings(settings),
        on_event=news.on_event if news is not None else None,
        on_background=news.on_background if news is not None else None,
    )
