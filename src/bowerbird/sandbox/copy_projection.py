"""The branch as a real copy, its commands under Landlock: for hosts without user namespaces (SB-2, SB-12).

Here: the projection and the rules of what a command may reach. Not here: making and comparing the copy
(`bowerbird.workspace.processes.mirror`), the calls themselves (`inside/confined`).
"""

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import LimitExceeded, SandboxUnavailable
from bowerbird.core.threads import to_thread
from bowerbird.sandbox.projection import make_home
from bowerbird.sandbox.run.git_config import write_git_config
from bowerbird.sandbox.run.own_packages import own_packages
from bowerbird.sandbox.run.profile import OWN_ETC, HostFacts, Standing, in_branch
from bowerbird.sandbox.run.seccomp import filter_program
from bowerbird.sandbox.run.shown_trees import is_below
from bowerbird.sandbox.run.status import Tier
from bowerbird.sandbox.run.toolchains import first_line_program
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
_MOST_SHIMS = 1_000
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def landlock_rules(facts: HostFacts, *, write: list[str], read: list[str]) -> dict[str, list[str]]:
    """Return what commands may reach: their own trees, the system and toolchains, harmless devices."""
    etc = [f"/etc/{name}" for name in (*facts.etc, *OWN_ETC, *_PUBLIC)]
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
        self.spill_prefix = str(view.directory / "out")
        self.net = view.directory / "net"
        self._shims = view.directory / "shims"
        self._shimmed: dict[str, int] = {}  # directory of programs → when it was changed last
        places = (in_branch(entry, view.workspace, self.root) for entry in host.facts.tools.path)
        self._programs = tuple(place for place in places if place is not None)
        self._stands = Standing(
            self.root, view.workspace, str(view.directory / "home"), str(view.directory / "tmp"),
            first=(str(self._shims),) if self._programs else (), git=str(view.directory / "git"),
        )  # fmt: skip
        self._warm: WarmSandbox | None = None
        self._live = contextlib.ExitStack()

    @property
    def alive(self) -> bool:
        """Whether its helper process is up."""
        return self._warm is not None and self._warm.alive

    @property
    def stands(self) -> Standing:
        """Where the branch stands, with the packages that environments have from the workspace itself."""
        workspace = self._view.workspace
        if workspace is None:
            return self._stands
        active = [Path(place).parent.relative_to(self.root) for place in self._programs if place != self.root]
        environments = dict.fromkeys((*active, Path(".venv"), Path("venv")))
        found = own_packages([workspace / each for each in environments], workspace)
        packages = tuple(self.root + path[len(str(workspace)) :] for path in found)
        return msgspec.structs.replace(self._stands, packages=packages)

    @property
    def spills(self) -> Path:
        """Where whole outputs are stored."""
        return Path(self.spill_prefix)

    async def ready(self, *, first: bool) -> WarmSandbox:
        """See `Projection.ready`; brings what the branch and the user changed into the copy."""
        if first:
            try:
                await to_thread(self._bring_in, await self._host.facts_for(self._view.workspace))
            except LimitExceeded as error:
                raise SandboxUnavailable(str(error)) from error
        if self._warm is None or not self._warm.alive:
            self._warm = await self._start()
        if first:
            await to_thread(self._live.enter_context, self._view.live_copy(self._mirror))
        return self._warm

    def _bring_in(self, facts: HostFacts) -> None:
        make_home(Path(self._stands.home), facts)
        for directory in (self._stands.tmp, self.spill_prefix):
            Path(directory).mkdir(mode=0o700, exist_ok=True)
        limits = self._host.settings
        self._view.show_git()
        self._view.bring_in(self._mirror, limits.copy_max_files, limits.copy_max_bytes)
        if self._programs:
            self._make_shims()

    def _make_shims(self) -> None:
        """Write a starter for each script on PATH whose first line names an interpreter of the workspace.

        That path is the original's, which is not there for commands; the copy's interpreter runs the copy.
        """
        self._shims.mkdir(mode=0o700, exist_ok=True)
        workspace = str(self._view.workspace)
        for directory in reversed(self._programs):  # the first on PATH has the last word
            try:
                changed, scripts = Path(directory).stat().st_mtime_ns, sorted(Path(directory).iterdir())
            except OSError:
                continue  # the branch has none, or a command closed it
            if self._shimmed.get(directory) == changed:
                continue
            self._shimmed[directory] = changed
            for script in scripts[:_MOST_SHIMS]:
                program = first_line_program(str(script))
                if program is None or not is_below(program, workspace):
                    continue
                words = (self.root + program[len(workspace) :], str(script))
                shim = self._shims / script.name
                shim.write_text(f'#!/bin/sh\nexec {" ".join(map(shlex.quote, words))} "$@"\n')
                shim.chmod(0o755)

    async def _start(self) -> WarmSandbox:
        # The workspace itself is not among them: commands would read and run what the branch has
        # changed since, and could lock what its user locks.
        facts = await self._host.facts_for(self._view.workspace)
        await to_thread(write_git_config, Path(self._stands.git), self._stands.git, self._view.workspace)
        write = [self.root, self._stands.home, self._stands.tmp]
        caches = await self._host.caches_of(self._view)
        cached = await to_thread(caches.read_where_they_are, Path(self._stands.home))
        read = [self.spill_prefix, self._stands.git, *self._stands.first, *cached]
        # Git looks at the top of a package's repository, and reads the objects of one that lies elsewhere.
        read += [str(self._view.directory / "copy/tree"), *await to_thread(self._view.git_objects)]
        rules = landlock_rules(facts, write=write, read=read)
        program = filter_program(copy_tier=True)
        return await WarmSandbox.start_confined(program, rules, self._host.settings.limits.pids)

    def capture(self, turn: str | None, call: str | None, *, last: bool) -> Captured:
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
