"""The two ways to talk to a program: headless, its output read line by line, and ACP (PR-24).

Here: what both need, the headless way with its retries, and the door to the other. Not here: the protocol
(`acp_run`), one process (`program`).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bowerbird.core.extras import install_command
from bowerbird.providers.catalogue import CatalogueEntry
from bowerbird.providers.contract.types import AgentEvent
from bowerbird.providers.programs.launching import launch
from bowerbird.providers.programs.outcome import Outcome
from bowerbird.providers.programs.program import Ended, Program, RunLimits
from bowerbird.providers.programs.vendors import Vendor

if TYPE_CHECKING:
    from bowerbird.providers.programs.relay.relay import Relay
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.sandbox.run.doors import Door
    from bowerbird.workspace import Branch


HANDSHAKE_S, PATIENT_S = 10.0, 60.0
"""Longest handshake over ACP: where headless takes its place then, and where nothing does."""
NOT_THE_VENDORS = ("read_only", "read-only", "deny")
"""Values of `permission_mode` that are ours: the vendor's default, and nothing else is permitted."""
READS_ONLY = ("plan", *NOT_THE_VENDORS)
"""Values of `permission_mode` under which what a program asks to change over ACP is refused."""


class Fallback(Exception):
    """ACP could not be begun; nothing was asked yet, so another transport may be."""


@dataclass(frozen=True, slots=True)
class McpAddress:
    """Where a program finds the tools of an MCP server that it is lent, inside its sandbox."""

    name: str
    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a transport needs to run one prompt; `may_change`: what it asks over ACP is permitted.

    `mcp_servers`: what it is lent, over ACP.
    """

    entry: CatalogueEntry
    vendor: Vendor
    sandbox: "BranchSandbox"
    branch: "Branch"
    values: Mapping[str, str | None]
    env: Mapping[str, str]
    prompt: str
    limits: RunLimits
    relay: "Relay | None"
    doors: tuple["Door", ...]
    emit: Callable[[AgentEvent], None]
    may_change: bool = True
    mcp_servers: tuple[McpAddress, ...] = ()
    handshake_s: float = HANDSHAKE_S


async def run_headless(attempt: Attempt, program: tuple[str, ...]) -> tuple[Outcome, Ended]:
    """Run the prompt and read what the program prints; Jules alone is tried again, when it did not start."""
    for pause_s in (*range(1, attempt.vendor.tries), None):
        outcome, ended = await _once(attempt, program)
        if pause_s is None or not _start_timed_out(outcome, ended):
            return outcome, ended
        await asyncio.sleep(pause_s)
    raise AssertionError  # the last round returns


async def _once(attempt: Attempt, program: tuple[str, ...]) -> tuple[Outcome, Ended]:
    started = launch(attempt.vendor, program, attempt.prompt, attempt.values, attempt.env)
    running = await Program.start(
        attempt.sandbox, started, attempt.limits, relay=attempt.relay, doors=attempt.doors
    )
    reader = attempt.vendor.reader()
    try:
        async for line in running.lines():
            for event in reader.feed(line):
                attempt.emit(event)
    except BaseException:
        running.kill()
        await asyncio.shield(asyncio.ensure_future(running.finish()))
        raise
    ended = await running.finish()
    return reader.outcome(), ended


def _start_timed_out(outcome: Outcome, ended: Ended) -> bool:
    said = f"{outcome.text}\n{ended.stderr}".lower()
    return ended.stopped is None and ended.code != 0 and ("timed out" in said or "timeout" in said)


async def over_acp(attempt: Attempt, program: tuple[str, ...]) -> tuple[Outcome, Ended]:
    """Run the prompt over ACP.

    Raises:
        Fallback: the handshake failed; nothing was asked.
    """
    try:
        from bowerbird.providers.programs.acp_run import run_acp
    except ImportError as error:
        raise Fallback(
            f"the library of the extra `agents` is not installed: {install_command('agents')}"
        ) from error
    return await run_acp(attempt, program)
