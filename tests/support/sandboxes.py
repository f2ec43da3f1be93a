"""A branch with a real sandbox, for tests of what stands on it.

Here: opening one, waiting for what happens in it. Not here: what tests expect; hostile hosts (`abuse`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.trees import write_tree

from bowerbird.core.events import Egress, Notice, SandboxTier
from bowerbird.sandbox.background_record import BackgroundRun
from bowerbird.sandbox.branch_sandbox import BranchSandbox
from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.network.resolving import Resolver, system_resolver
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Branch, Workspace

_WAIT_S = 20.0


@dataclass
class Bench:
    """A branch of `root` with its sandbox; `events` and `ended` are what the host was told, in order."""

    root: Path
    branch: Branch
    host: SandboxHost
    events: list[Egress | Notice | SandboxTier] = field(default_factory=list[Egress | Notice | SandboxTier])
    ended: list[BackgroundRun] = field(default_factory=list[BackgroundRun])
    opened: BranchSandbox | None = None

    @property
    def sandbox(self) -> BranchSandbox:
        """The branch's sandbox."""
        assert self.opened is not None, "this bench was opened without a sandbox"
        return self.opened

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(_WAIT_S):
            while not true():
                await asyncio.sleep(0.005)

    async def shows(self, path: str) -> None:
        """Wait until the branch has a file."""
        async with asyncio.timeout(_WAIT_S):
            while await self.branch.stat(path) is None:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def bench_of(
    tmp_path: Path,
    files: Mapping[str, str | bytes] | None = None,
    *,
    settings: SandboxSettings | None = None,
    resolve: Resolver = system_resolver,
    needs: str | None = "overlay",
    hide: tuple[str, ...] = (),
) -> AsyncIterator[Bench]:
    """Give a branch of `tmp_path/ws` that holds `files`; the data directory is `tmp_path/data`.

    Args:
        resolve: finds addresses for the allow-list.
        needs: the tier without which the test is skipped; None = no sandbox is opened.
        hide: `workspace.hide`.
    """
    root = write_tree(tmp_path / "ws", files or {})
    events: list[Egress | Notice | SandboxTier] = []
    ended: list[BackgroundRun] = []
    with Workspace(root, data_dir=tmp_path / "data") as workspace:
        host = SandboxHost(
            tmp_path / "data",
            settings,
            on_event=lambda _branch, event: events.append(event),
            on_background=lambda _branch, run: ended.append(run),
            resolve=resolve,
        )
        branch = workspace.branch(hide=hide)
        try:
            opened = None
            if needs is not None:
                status = await host.status()
                if status.tier != needs:
                    pytest.skip(f"this host gives the tier {status.tier}: {status.reasons}")
                opened = await host.sandbox(branch)
            yield Bench(root, branch, host, events, ended, opened)
        finally:
            await host.close()
