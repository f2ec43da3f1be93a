"""All sandboxes of one process: the probe, the warden, warm sandboxes and when they end (SB-4, SB-9).

Here: what is shared between branches. Not here: one branch's commands (`branch_sandbox`).
"""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import BranchBusy, NotFound, SandboxUnavailable
from bowerbird.core.events import Egress, Notice, SandboxTier
from bowerbird.core.threads import to_thread
from bowerbird.core.timestamps import now_iso
from bowerbird.sandbox.branch_sandbox import BACKGROUND_FILE, BranchSandbox
from bowerbird.sandbox.network.network import BranchNetwork, NetworkRules, rules_of
from bowerbird.sandbox.network.resolving import Resolver, system_resolver
from bowerbird.sandbox.probe import Bubblewrap, find_bubblewrap, probe_copy, probe_overlay, write_accounts
from bowerbird.sandbox.python.engine import installed_version
from bowerbird.sandbox.remembered import Remembered
from bowerbird.sandbox.run.caches import BranchCaches, find_caches
from bowerbird.sandbox.run.profile import HostFacts, host_facts
from bowerbird.sandbox.run.shown_trees import Workspaces, is_below
from bowerbird.sandbox.run.status import (
    COPY_ISOLATION,
    COPY_REST,
    NO_ALLOW_LIST,
    OVERLAY_ISOLATION,
    SandboxStatus,
    Tier,
    choose_tier,
)
from bowerbird.sandbox.run.warden import Warden
from bowerbird.sandbox.settings import SandboxSettings

if TYPE_CHECKING:
    from bowerbird.sandbox.background_record import BackgroundRun
    from bowerbird.workspace import Branch, ProcessView

_SWEEP_S = 5.0
REPEAT_S = 20.0
PROGRAMS = "agents"
"""Below the data directory: programs that Bowerbird installed; commands see them, read-only."""


class SandboxHost:
    """Sandboxes for branches; one per process, used from one event loop, closed at its end.

    Args:
        data_dir: where branches live; the probe works on its file system.
        settings: see `SandboxSettings`.
        on_event: hears of requests into the network and of another tier, with the branch's id ("" for
            the tier). on_background: hears of background commands that ended, likewise.
        resolve: finds addresses for the allow-list. status: of this host, known from before; None = probe.
        remember: use what an earlier process found out since this machine started, and keep it for the next.

    Example:
        host = SandboxHost(data_dir, SandboxSettings())
        result = await (await host.sandbox(branch)).run("pytest -q")
    """

    def __init__(
        self,
        data_dir: Path,
        settings: SandboxSettings | None = None,
        *,
        on_event: Callable[[str, Egress | Notice | SandboxTier], None] | None = None,
        on_background: "Callable[[str, BackgroundRun], None] | None" = None,
        resolve: Resolver = system_resolver,
        status: SandboxStatus | None = None,
        remember: bool = False,
    ) -> None:
        self.data_dir = data_dir
        self.on_background = on_background
        self._on_event = on_event
        self._resolve = resolve
        self._packages: tuple[str, ...] | None = None
        self.settings = settings or SandboxSettings()
        self.warden = Warden()
        self._facts: HostFacts | None = None
        self._workspaces = Workspaces(data_dir)
        self._bwrap: Bubblewrap | None = None
        self._status = status
        self._remembered = Remembered(data_dir, self.settings) if remember else None
        self._probing = asyncio.Lock()
        self._probed_at = float("-inf")
        self._sandboxes: OrderedDict[str, BranchSandbox] = OrderedDict()
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def facts(self) -> HostFacts:
        """Facts about this host, read once."""
        if self._facts is None:
            chosen = self.settings
            self._facts = host_facts(toolchains=chosen.toolchains, read_only=chosen.read_only)
        return self._facts

    async def facts_for(self, workspace: Path | None) -> HostFacts:
        """Return the facts for a sandbox, without trees that hold what no command may see.

        Args:
            workspace: the branch's own; commands see the branch in its place.
        """

        def apart() -> HostFacts:
            kept = (self.data_dir, *map(Path, self.settings.kept_out))
            others = self._workspaces.all()
            every = others if workspace is None else (*others, workspace)
            facts = self.facts.apart_from(kept, every, workspace)
            programs = self.data_dir / PROGRAMS  # vendors' own, without anything of a user's
            return facts.with_tree(str(programs)) if programs.is_dir() else facts

        return await to_thread(apart)

    async def hidden(self, program: str) -> Sequence[str]:
        """Return the places of a program that no command sees: its own, or that of what it links to."""
        facts = await self.facts_for(None)

        def find() -> list[str]:
            shown = (*map(str, self._workspaces.all()), *(link for link, _ in facts.tree_links))
            places = dict.fromkeys((program, os.path.realpath(program)))
            return [
                place for place in places
                if not (facts.shows(place) or any(is_below(place, top) for top in shown))
            ]  # fmt: skip

        return await to_thread(find)

    async def caches_of(self, view: "ProcessView") -> BranchCaches:
        """Return a branch's caches: those of this user, less what would show what no command may see."""

        def find() -> BranchCaches:
            is_on = self.settings.caches != "off"
            found = find_caches(os.environ, Path.home()) if is_on else {}
            kept = (self.data_dir, *map(Path, self.settings.kept_out), *self._workspaces.all())
            own = () if view.workspace is None else (view.workspace,)
            return BranchCaches(view.directory, found, (*kept, *own))

        return await to_thread(find)

    @property
    def bubblewrap(self) -> str:
        """The bubblewrap program; asked for only where the overlay tier works."""
        if self._bwrap is None:
            self._bwrap = find_bubblewrap()
        return self._bwrap.path or "bwrap"

    @property
    def accounts(self) -> Path:
        """Directory with the synthetic passwd and group."""
        return self.data_dir / "sandbox" / "accounts"

    async def status(self, *, again: bool = False) -> SandboxStatus:
        """Return what this host gives, probed once; `again` probes anew.

        A probe that did not end in time is repeated when somebody asks later, and is not remembered: else
        a machine that was busy for a minute would refuse commands for as long as the server runs.
        """
        async with self._probing:
            if self._status is None or again or self._is_due():
                before, self._status = self._status, await self._found_out(again=again)
                if before is not None and before.tier != self._status.tier:
                    now = self._status
                    self._tell("", SandboxTier(now.tier, now.minimum, now.reasons))
            return self._status

    def _is_due(self) -> bool:
        undecided = self._status is not None and self._status.is_undecided(self.settings.tier)
        return undecided and time.monotonic() >= self._probed_at + REPEAT_S

    async def start_failed(self) -> None:
        """Find out anew at the next `status`: what worked before does not work now."""
        self._status = None
        if self._remembered is not None:
            await to_thread(self._remembered.forget)

    async def _found_out(self, *, again: bool) -> SandboxStatus:
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        await to_thread(write_accounts, self.accounts)
        self._bwrap = await to_thread(find_bubblewrap)
        if self._remembered is None:
            return await self._probe(self._bwrap)
        known = None if again else await to_thread(self._remembered.load, self._bwrap)
        if known is None:
            known = await self._probe(self._bwrap)
            if not known.is_undecided(self.settings.tier):
                await to_thread(self._remembered.save, known, self._bwrap)
        return known

    async def _probe(self, bwrap: Bubblewrap) -> SandboxStatus:
        facts = await self.facts_for(None)
        closed = self.settings.kept_out
        overlay, copy = await asyncio.gather(
            probe_overlay(self.warden, facts, bwrap, self.data_dir, closed),
            probe_copy(facts, self.data_dir, closed),
        )
        reasons: dict[str, str | None] = {"overlay": overlay, "copy": copy}
        self._probed_at = time.monotonic()
        tier = choose_tier(self.settings.tier, reasons)
        return self._describe(tier, reasons, facts.left_out)

    def _describe(
        self, tier: Tier, reasons: dict[str, str | None], left_out: tuple[str, ...]
    ) -> SandboxStatus:
        minimum: Tier = "overlay" if self.settings.minimum == "overlay" else "copy"
        return SandboxStatus(
            tier=tier,
            minimum=minimum,
            reasons={**reasons, "copy": COPY_REST} if tier == "copy" else reasons,
            isolation={"overlay": OVERLAY_ISOLATION, "copy": COPY_ISOLATION, "none": ()}[tier],
            network="allowlist" if self.settings.allow and tier == "overlay" else "closed",
            network_reason=NO_ALLOW_LIST if self.settings.allow and tier == "copy" else None,
            limits={"memory": "rlimit+watch", "pids": "rlimit", "disk": "watch"},
            python=_pythons(),
            search="ripgrep",
            probed_at=now_iso(),
            left_out=left_out,
        )

    async def sandbox(self, branch: "Branch") -> BranchSandbox:
        """Return the branch's sandbox; it starts with its first command.

        Raises:
            SandboxUnavailable: the tier does not meet the minimum; says why and what to do.
        """
        status = await self.status()
        status.require()
        found = self._sandboxes.get(branch.id)
        if found is None:
            made = await self._make(branch, status.tier)
            found = self._sandboxes.setdefault(branch.id, made)
        self._sandboxes.move_to_end(branch.id)
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.create_task(self._sweep())
        return found

    async def _make(self, branch: "Branch", tier: Tier) -> BranchSandbox:
        view = branch.processes()
        if tier == "overlay" and view.unavailable is not None:
            tier = await self._instead(view.unavailable)
        allow = self.settings.allow if tier == "overlay" else ()
        network = BranchNetwork(
            await self.network_rules(allow),
            lambda event: self._tell(branch.id, event),
            resolve=self._resolve,
        )
        missing = await to_thread(view.git_not_shown, asked=False)
        if missing:
            self._tell(branch.id, Notice("git", missing))
        return BranchSandbox(self, view, tier, network, await self.facts_for(view.workspace))

    async def _instead(self, reason: str) -> Tier:
        """Return the tier for a branch that cannot be mounted; its records name it."""
        status = await self.status()
        if status.minimum == "overlay" or status.reasons["copy"] is not None:
            why = status.reasons["copy"] or "below sandbox.minimum"
            raise SandboxUnavailable(f"this branch cannot be mounted: {reason}; tier 'copy': {why}")
        return "copy"

    async def network_rules(self, allow: Sequence[str]) -> NetworkRules:
        """Return the rules that a list of entries stands for; `packages` asks the package tools, once."""
        chosen = self.settings
        packages = chosen.packages
        if "packages" in allow and not packages:
            if self._packages is None:
                from bowerbird.sandbox.network.registries import package_hosts

                self._packages = await to_thread(package_hosts)
            packages = self._packages
        return rules_of(
            allow, packages=packages, max_bytes=chosen.max_bytes, private_hosts=chosen.private_hosts
        )

    def _tell(self, branch_id: str, event: Egress | Notice | SandboxTier) -> None:
        if self._on_event is not None:
            self._on_event(branch_id, event)

    async def _sweep(self) -> None:
        """End sandboxes that idle too long, and the least used ones when there are too many."""
        while self._sandboxes:
            await asyncio.sleep(_SWEEP_S)
            now = time.monotonic()
            idle = [s for s in self._sandboxes.values() if s.warm and not s.busy]
            surplus = len(idle) - self.settings.warm_most
            for number, sandbox in enumerate(idle):
                if number < surplus or now - sandbox.last_used > self.settings.warm_s:
                    await sandbox.cool_down()

    async def new_turn(self, branch_id: str) -> None:
        """Let the next command of a branch see what the user edited meanwhile."""
        sandbox = self._sandboxes.get(branch_id)
        if sandbox is not None:
            await sandbox.new_turn()

    async def turn_ended(self, branch_id: str) -> None:
        """End what must not hold a branch beyond its turn; background runs go on."""
        sandbox = self._sandboxes.get(branch_id)
        if sandbox is not None:
            await sandbox.turn_ended()

    @staticmethod
    def had_background(branch: "Branch") -> bool:
        """Whether background commands of this branch are on record; starts nothing.

        One look at the data directory, which is on a disk of this machine.
        """
        return (branch.processes().directory / BACKGROUND_FILE).exists()

    async def background_over(self, branch_id: str, *, wait: bool = False) -> None:
        """Make sure that no background command writes a branch, before it is landed or deleted.

        Args:
            wait: wait for their ends; otherwise it is refused while one runs.

        Raises:
            BranchBusy: one runs; it is named.
        """
        sandbox = self._sandboxes.get(branch_id)
        if sandbox is None or not sandbox.background.running:
            return
        if not wait:
            raise BranchBusy(
                f"background commands still write this branch ({', '.join(sandbox.background.running)}); "
                "wait for them, or cancel them (POST to background/{task_id}/cancel of the conversation)"
            )
        await sandbox.background.finished()

    def background_runs(self, branch_id: str) -> list[dict[str, Any]]:
        """Return every background command of a branch on record, oldest first; starts nothing. Blocks."""
        from bowerbird.sandbox.background_record import BackgroundFile

        sandbox = self._sandboxes.get(branch_id)
        if sandbox is not None:
            return sandbox.background.poll_all()
        return [run.to_data() for run in BackgroundFile(self._background_file(branch_id)).load()]

    async def cancel_background(self, branch_id: str, task_id: str | None = None) -> list[dict[str, Any]]:
        """Kill a background command's whole tree, or all of a branch, and return what `poll` says of each.

        Raises:
            NotFound: there is no such command. BranchBusy: it runs in another process.
        """
        runs = await to_thread(self.background_runs, branch_id)
        wanted = [run for run in runs if run["task_id"] == task_id or task_id is None]
        if task_id is not None and not wanted:
            raise NotFound(f"there is no background command {task_id!r}")
        sandbox = self._sandboxes.get(branch_id)
        ended: list[dict[str, Any]] = []
        for run in wanted:
            if run["status"] == "running" and sandbox is None:
                raise BranchBusy(f"{run['task_id']} runs in another process; cancel it there")
            ended.append(await sandbox.background.stop(run["task_id"]) if sandbox is not None else run)
        return ended

    def _background_file(self, branch_id: str) -> Path:
        return self.data_dir / "branches" / branch_id / BACKGROUND_FILE

    def ends_told(self, branch_id: str, task_ids: Sequence[str]) -> None:
        """Remember that the ends of these background commands are on record; writes a small file."""
        sandbox = self._sandboxes.get(branch_id)
        if sandbox is not None:
            sandbox.background.mark_told(task_ids)

    def is_busy(self, branch_id: str) -> bool:
        """Whether a command, a background one too, runs on a branch."""
        sandbox = self._sandboxes.get(branch_id)
        return sandbox is not None and sandbox.busy

    async def release(self, branch_id: str) -> None:
        """End a branch's sandbox and everything in it."""
        sandbox = self._sandboxes.pop(branch_id, None)
        if sandbox is not None:
            await sandbox.close()

    async def close(self) -> None:
        """End every sandbox and the helper process."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for branch_id in list(self._sandboxes):
            await self.release(branch_id)
        self.warden.close()


def _pythons() -> dict[str, str | None]:
    import platform

    return {"monty": installed_version(), "cpython": platform.python_version()}
