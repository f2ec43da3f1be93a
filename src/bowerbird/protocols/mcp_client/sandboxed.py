"""Servers of `sandbox: true`: they run on the branch, in its sandbox, for the length of a turn (PT-23, 24).

Here: a server's process there, its pipes, taking what it changed into the branch. Not here: the protocol,
when a turn ends (`app/features/mcp.py` knows), isolation.

Only these servers are told a root: the branch, by the path it has inside.
"""

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING

from bowerbird.core.ids import new_id
from bowerbird.protocols.mcp_client.child import LARGEST_LINE, STDIN_GRACE_S, Ring
from bowerbird.protocols.mcp_client.spec import ServerSpec

if TYPE_CHECKING:
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.sandbox.run.running import RunningCommand
    from bowerbird.workspace import Branch

# Its stdin is a socket; stdout is put on the same one, so that stderr is all the collector sees.
_BOTH_WAYS = ("sh", "-c", 'exec "$@" >&0', "mcp")
_KEPT_OUTPUT = 4096


class BranchHome:
    """Where sandboxed servers of one branch run."""

    def __init__(self, host: "SandboxHost", branch: "Branch") -> None:
        self._host, self._branch = host, branch

    async def start(self, spec: ServerSpec, ring: Ring) -> "SandboxedChild":
        """Start a server there.

        Raises:
            SandboxUnavailable: this host has no process tier, or not the configured one.
        """
        sandbox = await self._host.sandbox(self._branch)
        ours, theirs = socket.socketpair()
        with theirs:
            request = sandbox.request(
                [*_BOTH_WAYS, spec.command, *spec.args],
                cwd=spec.cwd or "/",
                env=spec.env,
                timeout=sandbox.longest_s,
                max_output_bytes=_KEPT_OUTPUT,
                stdin_fd=theirs.fileno(),
            )
            try:
                command = await sandbox.begin(request, call=new_id("mcp"), on_output=ring.add)
            except BaseException:
                ours.close()
                raise
        reader, writer = await asyncio.open_connection(sock=ours, limit=LARGEST_LINE)
        return SandboxedChild(sandbox, command, reader, writer)

    async def root(self) -> str:
        """Return the path of the branch's root as the server sees it."""
        return (await self._host.sandbox(self._branch)).root

    async def taken(self, turn: str, call: str) -> None:
        """Take what the server changed during a call into the branch, under that call's name."""
        sandbox = await self._host.sandbox(self._branch)
        await sandbox.capture(turn=turn or None, call=call or None)


class SandboxedChild:
    """A started server in a sandbox; `close` ends it and takes the last of its changes."""

    def __init__(
        self,
        sandbox: "BranchSandbox",
        command: "RunningCommand",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.stdout, self.stdin = reader, writer
        self._sandbox, self._command = sandbox, command
        self._end = asyncio.create_task(command.wait(), name="mcp in sandbox")

    async def close(self) -> None:
        """End the server: its stdin ends, 2 s, then its whole tree is killed."""
        try:
            self.stdin.close()
            with contextlib.suppress(OSError):
                await self.stdin.wait_closed()
            await asyncio.wait({self._end}, timeout=STDIN_GRACE_S)
        finally:
            self._command.stop("cancel")
            await asyncio.wait({self._end})
            await self._sandbox.end(self._command)
