"""Forks of a branch for children and for checks (DE-1, DE-22).

Here: making them, and running one check in a throw-away one. Not here: which are wanted, what a check's
outcome means.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.threads import to_thread
from bowerbird.sandbox.host import SandboxHost
from bowerbird.subagents.checks import CHECK_S, TAIL_CHARS, Check

if TYPE_CHECKING:
    from pathlib import Path

    from bowerbird.sandbox.run.status import SandboxStatus
    from bowerbird.sandbox.settings import SandboxSettings
    from bowerbird.subagents.runner import RunCheck
    from bowerbird.workspace import Branch


@asynccontextmanager
async def checks_like(host: SandboxHost) -> "AsyncGenerator[RunCheck, None]":
    """Give what runs checks as `host` runs commands; see `checks_in`."""
    async with checks_in(host.data_dir, host.settings, await host.status()) as run:
        yield run


@asynccontextmanager
async def checks_in(
    data_dir: "Path", settings: "SandboxSettings", status: "SandboxStatus | None", limit_s: float = CHECK_S
) -> "AsyncGenerator[RunCheck, None]":
    """Give what runs checks on a host of its own: without network, whatever a person opened.

    Args:
        status: of this machine; None = it is found out. limit_s: of each check.

    Raises:
        SandboxUnavailable: no command can run on this machine.
    """
    host = SandboxHost(data_dir, msgspec.structs.replace(settings, allow=()), status=status)
    try:
        (await host.status()).require()

        async def check(fork: "Branch", command: str) -> Check:
            return await _check_on(host, fork, command, limit_s)

        yield check
    finally:
        await host.close()


async def _check_on(host: SandboxHost, fork: "Branch", command: str, limit_s: float) -> Check:
    """Run one check in a throw-away fork of a branch, so that its own files are no change."""
    apart = await to_thread(partial(fork.fork, "check", throwaway=True))
    try:
        started = time.monotonic()
        found = await (await host.sandbox(apart)).run(command, timeout=limit_s, configured_timeout=limit_s)
        seconds = round(time.monotonic() - started, 3)
    finally:
        await host.release(apart.id)
        await to_thread(apart.discard, keep=False)
    return Check(command, found.exit_code, seconds, found.output[-TAIL_CHARS:])


def forks_of(branch: "Branch", names: list[str]) -> "list[Branch]":
    """Return forks of a branch, all of one frozen state. Blocks."""
    made: list[Branch] = []
    snapshot: str | None = None
    for name in names:
        fork = branch.fork(name, snapshot=snapshot)
        fork.set_policy("review")  # only its caller's merge takes anything from it
        snapshot = (fork.parent or {}).get("snapshot")
        made.append(fork)
    return made
