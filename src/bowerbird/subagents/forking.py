"""Forks of a branch for children and for checks (DE-1, DE-22).

Here: making them, and running one check in a throw-away one. Not here: which are wanted, what a check's
outcome means.
"""

import time
from typing import TYPE_CHECKING

from bowerbird.core.threads import to_thread
from bowerbird.subagents.checks import CHECK_S, TAIL_CHARS, Check

if TYPE_CHECKING:
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.workspace import Branch


async def check_on(host: "SandboxHost", fork: "Branch", command: str) -> Check:
    """Run one check in a throw-away fork of a branch, so that its own files are no change (DE-22)."""
    apart = await to_thread(fork.fork, "check")
    try:
        started = time.monotonic()
        found = await (await host.sandbox(apart)).run(command, timeout=CHECK_S, configured_timeout=CHECK_S)
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
