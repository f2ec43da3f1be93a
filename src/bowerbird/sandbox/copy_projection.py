"""The branch as a real copy, its commands under Landlock: for hosts without user namespaces (SB-2, SB-12).

Here: the projection and the rules of what a command may reach. Not here: making and comparing the copy
(`bowerbird.workspace.processes.mirror`), the calls themselves (`inside/confined`).
"""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.errors import LimitExceeded, SandboxUnavailable
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.run.profile import HostFacts
from bowerbird.sandbox.run.seccomp import filter_program
from bowerbird.sandbox.run.status import Tier
from bowerbird.sandbox.run.warm_sandbox import WarmSandbox
from bowerbird.workspace import BeforeCall, Captured, ProcessView

if TYPE_CHECKING:
    from bowerbird.sandbox.host import SandboxHost

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc")
# What the system is called, and two tables. In the overlay tier these do not exist; here they do, and pip,
# for one, does not expect a file that stands there but may not be read.
_PUBLIC = (
    "os-release", "lsb-release", "debian_version", "redhat-release", "fedora-release", "centos-release",
    "alpine-release", "arch-release", "SuSE-release", "gentoo-release", "mime.types", "timezone",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def landlock_rules(facts: HostFacts, *, write: list[str], read: list[str]) -> dict[str, list[str]]:
    """Return what commands may reach: their own trees, the system and toolchains, harmless devices."""
    etc = [f"/etc/{name}" for name in (*facts.etc, "passwd", "group", *_PUBLIC)]
    return {
        "write": write,
        "read": [*facts.system, *_system_directories(), *etc, *facts.read_only, *read],
        "devices": list(_DEVICES),
    }


def _system_directories() -> list[str]:
    # Where they are links, what they lead to is in `facts.system`, perhaps in parts.
    return [path for path in _SYSTEM if not Path(path).is_symlink()]


class CopyProjection:
    """A copy of the branch below its own directory; see `Projection` for the calls."""

    tier: Tier = "copy"

    def __init__(self, host: "SandboxHost", view: ProcessView) -> None:
        self._host = host
        self._view = view
        self._mirror = view.mirror()
        self.root = str(self._mirror.tree)
        self.home = str(view.directory / "home")
        self.tmp = str(view.directory / "tmp")
        self.spill_prefix = str(view.directory / "out")
        self._warm: WarmSandbox | None = None
        self._live = contextlib.ExitStack()

    @property
    def alive(self) -> bool:
        """Whether its helper process is up."""
        return self._warm is not None and self._warm.alive

    @property
    def spills(self) -> Path:
        """Where whole outputs are stored."""
        return Path(self.spill_prefix)

    async def ready(self, *, first: bool) -> WarmSandbox:
        """See `Projection.ready`; brings what the branch and the user changed into the copy."""
        if first:
            try:
                await to_thread(self._bring_in)
            except LimitExceeded as error:
                raise SandboxUnavailable(str(error)) from error
        if self._warm is None or not self._warm.alive:
            self._warm = await self._start()
        if first:
            await to_thread(self._live.enter_context, self._view.live_copy(self._mirror))
        return self._warm

    def _bring_in(self) -> None:
        for directory in (self.home, self.tmp, self.spill_prefix):
            Path(directory).mkdir(mode=0o700, exist_ok=True)
        limits = self._host.settings
        self._view.bring_in(self._mirror, limits.copy_max_files, limits.copy_max_bytes)

    async def _start(self) -> WarmSandbox:
        # The workspace itself is not among them (D-7): commands would read and run what the branch has
        # changed since, and could lock what its user locks.
        facts = await self._host.facts_for(self._view.workspace)
        rules = landlock_rules(facts, write=[self.root, self.home, self.tmp], read=[self.spill_prefix])
        program = filter_program(copy_tier=True)
        return await WarmSandbox.start_confined(program, rules, self._host.settings.limits.pids)

    def capture(self, started_ns: int, turn: str | None, call: str | None, *, last: bool) -> Captured:
        """See `Projection.capture`; compares the copy with what was last seen of it."""
        try:
            return self._view.take_back(self._mirror, turn=turn, call=call)
        finally:
            if last:  # after an error too, or the branch would be held for ever; the copy keeps what it has
                self._live.close()

    def undo(self, before: BeforeCall) -> bool:
        """See `Projection.undo`; the copy is given up, and made anew by the next `ready`."""
        self._live.close()
        done = self._view.go_back(before)
        if done:
            self._mirror.forget()
        return done

    def renew(self) -> None:
        """See `Projection.renew`; each first command compares the copy with the workspace anyway."""

    def close(self) -> None:
        """See `Projection.close`; the copy stays for the next command."""
        self._live.close()
        if self._warm is not None:
            self._warm.close()
        self._warm = None
