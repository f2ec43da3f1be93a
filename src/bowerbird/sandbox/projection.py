"""How a branch becomes files that processes see: mounted (`overlay`) or copied (`copy`).

Here: the contract, and the projection through the kernel's overlay. Not here: commands (`branch_sandbox`),
the copy (`copy_projection`).
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bowerbird.core.errors import SandboxUnavailable
from bowerbird.core.threads import in_thread, to_thread
from bowerbird.sandbox.run.caches import BranchCaches
from bowerbird.sandbox.run.profile import (
    BRANCH_OF_NOTHING,
    GIT,
    SPILLS,
    HostFacts,
    Places,
    Standing,
    bubblewrap,
)
from bowerbird.sandbox.run.status import Tier
from bowerbird.sandbox.run.warden import PACKAGE, Mounted, Overlay
from bowerbird.workspace import BeforeCall, OverlayDirs, ProcessView, ViewChanged

if TYPE_CHECKING:
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sandbox.run.warm_sandbox import WarmSandbox
    from bowerbird.workspace import Captured


FRESH_S = 1.0
"""How long one mount serves command after command; making one costs more than a short command."""
_log = logging.getLogger(__name__)


class Projection(Protocol):
    """One branch as processes see it; used by one `BranchSandbox`, which orders the calls.

    Attributes:
        tier: how it is done. root: the branch's path for processes. stands: that, with their homes.
        spill_prefix: directory under which commands and file tools find whole outputs.
        net: directory that the sandbox now running shows as its proxy's.
    """

    tier: Tier
    root: str
    spill_prefix: str
    net: Path

    @property
    def stands(self) -> Standing:
        """Where the branch stands for commands. Blocks for a look at a directory."""
        ...

    @property
    def alive(self) -> bool:
        """Whether its helper processes are up."""
        ...

    @property
    def spills(self) -> Path:
        """Where whole outputs are stored, as a host path."""
        ...

    async def ready(self, *, first: bool) -> "WarmSandbox":
        """Return a running sandbox that shows the branch as it is now.

        Args:
            first: no command runs, so the view may be made anew.
        """
        ...

    def capture(self, turn: str | None, call: str | None, *, last: bool) -> "Captured":
        """Take what processes changed into the branch; `last`: none runs any more. Blocks."""
        ...

    def undo(self, before: BeforeCall) -> bool:
        """Take back all that changed since `before`; none runs any more. False = it cannot be. Blocks."""
        ...

    def renew(self) -> None:
        """Forget what the view shows of the workspace; nothing runs, and the next `ready` looks anew."""
        ...

    def close(self) -> None:
        """End the helper processes and give the view up; nothing runs."""
        ...


def make_home(home: Path, facts: HostFacts) -> None:
    """Make the home of a branch's commands, with the packages of each Python that are the user's. Blocks."""
    try:
        home.mkdir(mode=0o700)
    except FileExistsError:
        return  # commands can write it: a link of theirs would lead anywhere
    for python, packages in facts.tools.user_sites.items():
        site = home / ".local/lib" / python / "site-packages"
        site.mkdir(parents=True)
        (site / "of-the-user.pth").write_text(f"{packages}\n")


class OverlayProjection:
    """The branch's layers mounted by the kernel at the workspace's own path."""

    tier: Tier = "overlay"
    spill_prefix = SPILLS

    def __init__(self, host: "SandboxHost", view: ProcessView) -> None:
        self._host = host
        self._view = view
        self.root = str(view.workspace) if view.workspace is not None else BRANCH_OF_NOTHING
        self._warm: WarmSandbox | None = None
        self._mounted: Mounted | None = None
        self._dirs: OverlayDirs | None = None
        self._mounted_at = 0.0
        self._tmp: Path | None = None
        self.net = view.directory / "net"
        self._live = contextlib.ExitStack()
        self.stands = Standing(self.root, view.workspace)

    @property
    def alive(self) -> bool:
        """Whether its helper processes are up."""
        return self._warm is not None and self._warm.alive

    @property
    def spills(self) -> Path:
        """Where whole outputs are stored."""
        return self._view.directory / "out"

    async def ready(self, *, first: bool) -> "WarmSandbox":
        """See `Projection.ready`; mounts anew when the branch's layers are others than before."""
        if self._warm is None or not self._warm.alive:
            self._drop_mount()
            self._warm = await self._start()
        if first:
            await to_thread(self._view.show_git)
        while first:
            dirs = await to_thread(self._view.dirs)
            # An older one may go on showing what it once read of files that were saved since.
            is_old = time.monotonic() - self._mounted_at > FRESH_S
            if dirs != self._dirs or self._mounted is None or is_old:
                self._mounted = await self._mount(self._warm, dirs)
                self._dirs = dirs
            view_fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._mounted.look)
            self._live.callback(os.close, view_fd)
            try:
                await self._go_live(view_fd)
            except ViewChanged:
                self._live.close()
                continue
            break
        return self._warm

    async def _go_live(self, view_fd: int) -> None:
        """Write through the mount from now on; a caller that is cancelled meanwhile leaves nothing held."""
        work = asyncio.ensure_future(to_thread(self._live.enter_context, self._view.live(view_fd)))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait([work])  # a thread cannot be stopped: it would hold the branch for ever
            work.exception()  # who is cancelled has no use for it
            self._live.close()
            raise

    async def _start(self) -> "WarmSandbox":
        from bowerbird.sandbox.run.git_config import write_git_config
        from bowerbird.sandbox.run.seccomp import filter_program
        from bowerbird.sandbox.run.warm_sandbox import WarmSandbox

        host = self._host
        if self._view.unavailable is not None:
            raise SandboxUnavailable(f"this branch cannot be mounted: {self._view.unavailable}")
        home = self._view.directory / "home"
        facts = await host.facts_for(self._view.workspace)
        caches = await host.caches_of(self._view)
        await to_thread(make_home, home, facts)
        self.spills.mkdir(mode=0o700, exist_ok=True)
        git = self._view.directory / "git"
        await to_thread(write_git_config, git, GIT, self._view.workspace)
        objects = await to_thread(self._view.git_objects)
        self._tmp = tmp = await to_thread(self._view.empty_tmp)
        self.net = self._view.own_place("net")
        self.net.mkdir(mode=0o700, parents=True)
        places = Places(
            self.root, str(home), str(self.spills), str(host.accounts), str(PACKAGE / "inside"),
            str(self.net), tmp=str(tmp), git=((str(git), GIT), *((path, path) for path in objects)),
            caches=tuple(await to_thread(caches.make, home)),
        )  # fmt: skip
        limits = host.settings.limits
        words = bubblewrap(host.bubblewrap, facts, places, limits.memory_bytes // 2)
        warm = await WarmSandbox.start(host.warden, words, facts.interpreter, filter_program(), limits.pids)
        try:
            await self._show(warm, caches)
        except BaseException:
            warm.close()
            raise
        return warm

    async def _show(self, warm: "WarmSandbox", caches: BranchCaches) -> None:
        """Mount the caches, for as long as the sandbox lives."""
        wanted = await to_thread(caches.overlays, self._view.own_place("masks"))
        mounted = await in_thread(lambda: list(self._mounted_caches([cache for _, cache in wanted])))
        try:
            there = [(inside, each) for (inside, _), each in zip(wanted, mounted, strict=True) if each]
            if there:
                await warm.attach([inside for inside, _ in there], [each for _, each in there], stays=True)
        finally:
            for each in mounted:
                if each is not None:
                    each.close()

    def _mounted_caches(self, overlays: Sequence[Overlay]) -> Iterator[Mounted | None]:
        """Yield a mount for each; None for one that the kernel refuses. Blocks."""
        try:
            yield from self._host.warden.mount(overlays)
        except SandboxUnavailable as error:
            if len(overlays) > 1:
                for each in overlays:
                    yield from self._mounted_caches([each])
                return
            # Then commands find there what they put there.
            _log.warning("the cache %s is not shown to commands: %s", overlays[0].lower[-1], error)
            yield None

    async def _mount(self, warm: "WarmSandbox", dirs: OverlayDirs) -> Mounted:
        lower, ground = tuple(str(path) for path in dirs.lower), str(dirs.ground or "")
        self._drop_mount()
        self._mounted_at = time.monotonic()
        overlay = Overlay(lower, str(dirs.upper), str(dirs.work), ground, str(dirs.scratch))
        made: list[Mounted] = []
        try:
            await to_thread(self._view.mounting)
            await in_thread(lambda: made.extend(self._host.warden.mount([overlay])))
            await warm.attach([self.root], made)
        except BaseException:
            for mounted in made:
                mounted.close()
            raise
        return made[0]

    def capture(self, turn: str | None, call: str | None, *, last: bool) -> "Captured":
        """See `Projection.capture`; reads the upper directory only."""
        try:
            return self._view.capture(turn=turn, call=call)
        finally:
            if last:  # after an error too, or the branch would be held for ever
                self._live.close()

    def undo(self, before: BeforeCall) -> bool:
        """See `Projection.undo`; the next `ready` mounts the layers that are left."""
        self._live.close()
        done = self._view.go_back(before)
        if done:
            self._drop_mount()
        return done

    def renew(self) -> None:
        """See `Projection.renew`: a mount may keep what it knew of files that were edited below it."""
        self._drop_mount()

    def _drop_mount(self) -> None:
        mounted, self._mounted, self._dirs = self._mounted, None, None  # first: of two threads one closes it
        if mounted is not None:
            mounted.close()

    def close(self) -> None:
        """See `Projection.close`."""
        self._live.close()
        if self._warm is not None:
            self._warm.close()
        if self._tmp is not None:
            asyncio.get_running_loop().run_in_executor(None, self._view.remove_tmp, self._tmp)
        self._warm = self._tmp = None
        self._drop_mount()


def projection_of(tier: Tier) -> "Callable[[SandboxHost, ProcessView], Projection]":
    """Return what makes the projection of a tier."""
    if tier == "overlay":
        return OverlayProjection
    from bowerbird.sandbox.copy_projection import CopyProjection

    return CopyProjection
