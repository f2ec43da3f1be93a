"""What all program agents of one server share: branches, sandboxes, homes, places to run, ports of doors.

Here: that, and the check of whether a branch's sandbox can run one at all (PR-17, PR-18, PR-20). Not here:
one run (`program`), one agent (`agent`).
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bowerbird.core.threads import to_thread
from bowerbird.providers.contract.errors import AgentTimeout, AgentUnavailable
from bowerbird.providers.contract.types import AgentRequest
from bowerbird.providers.programs.homes import Homes, Lent
from bowerbird.providers.programs.leftovers import kill_remains
from bowerbird.sandbox.host import PROGRAMS
from bowerbird.sandbox.projection import make_home

if TYPE_CHECKING:
    from bowerbird.sandbox.branch_sandbox import BranchSandbox
    from bowerbird.sandbox.host import SandboxHost
    from bowerbird.workspace import Branch, Workspace

MOST_RUNS = 4
_FIRST_PORT = 3129
_ACP_PAUSE_S = 600.0
_MOST_REMEMBERED = 1000
BranchOf = Callable[[AgentRequest], Awaitable["Branch"]]


class LentTools(Protocol):
    """Tools of MCP servers for one run: an address inside, a token, and no secret of the servers'.

    Attributes:
        token: what the program sends. names: of the servers that it has tools of; each is at `/NAME`.
        left_out: server, or server and tool → why it is not lent.
        listed: servers whose tools the program has listed.
    """

    token: str
    names: tuple[str, ...]
    left_out: Mapping[str, str]
    listed: set[str]

    async def serve(self, listener: socket.socket) -> None:
        """Answer on a bound Unix socket."""
        ...

    async def close(self) -> None:
        """Cut every connection."""
        ...


class Lender(Protocol):
    """What lends them."""

    async def __call__(self, names: Sequence[str], agent: str, *, may_change: bool) -> LentTools:
        """Return the tools of these servers for a run of `agent`, as far as settings let it call them."""
        ...


_log = logging.getLogger(__name__)


class ProgramGround:
    """Shared by all program agents of one server; belongs to one event loop.

    Args:
        data_dir: where homes and installed programs are.
        sandboxes: of this server.
        branch_of: which branch a request works on; may make one.
        most_runs: how many programs run at once; others wait in order.
        lender: gives runs the tools of MCP servers; None = they get none.
    """

    def __init__(
        self,
        data_dir: Path,
        sandboxes: "SandboxHost",
        branch_of: BranchOf,
        *,
        most_runs: int = MOST_RUNS,
        lender: Lender | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.sandboxes = sandboxes
        self.branch_of = branch_of
        self.lender = lender
        self.homes = Homes(data_dir)
        self._most = most_runs
        self._places = asyncio.Semaphore(most_runs)
        self._ports: dict[str, set[int]] = {}
        self._sessions: dict[tuple[str, str], asyncio.Lock] = {}
        self._cleared: asyncio.Task[None] | None = None
        self._acp_failures: dict[str, float] = {}

    def acp_failed(self, agent: str) -> bool:
        """Whether this agent's ACP handshake failed lately (PR-24)."""
        return time.monotonic() - self._acp_failures.get(agent, -_ACP_PAUSE_S) < _ACP_PAUSE_S

    def remember_acp_failure(self, agent: str) -> None:
        """Use this agent headless for ten minutes."""
        self._acp_failures[agent] = time.monotonic()

    async def clear_remains(self) -> None:
        """Kill what earlier runs left and take their homes back; once, before the first run."""
        if self._cleared is None:
            self._cleared = asyncio.create_task(to_thread(self._clear), name="remains of agents")
        await asyncio.shield(self._cleared)

    def _clear(self) -> None:
        try:
            killed = kill_remains(self.homes.left_over())
            self.homes.forget_old()
        except OSError as error:
            _log.warning("what earlier runs of agents left could not be cleared: %s", error)
            return
        if killed:
            _log.warning("killed %d processes that earlier runs of agents left", killed)

    @asynccontextmanager
    async def place(self, agent: str, session: str | None, deadline: float) -> AsyncGenerator[None]:
        """Wait for a place to run, and for the session to be free; the waiting counts (PR-17).

        Raises:
            AgentTimeout: there was none by `deadline` (`time.monotonic()`).
        """
        lock = self._lock_of(agent, session)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await stack.enter_async_context(lock)
                    await stack.enter_async_context(self._places)
            except TimeoutError as error:
                raise AgentTimeout(
                    f"{agent} did not get a place to run within its time limit; "
                    f"{self._most} agents run at once"
                ) from error
            yield

    def _lock_of(self, agent: str, session: str | None) -> asyncio.Lock:
        if session is None:
            return asyncio.Lock()
        if len(self._sessions) > _MOST_REMEMBERED:
            self._sessions = {key: lock for key, lock in self._sessions.items() if lock.locked()}
        return self._sessions.setdefault((agent, session), asyncio.Lock())

    async def sandbox(self, branch: "Branch", agent: str, *, needs_way_out: bool) -> "BranchSandbox":
        """Return a branch's sandbox if an agent can run in it.

        Raises:
            SandboxUnavailable: no process tier, or one below the minimum; says why.
            AgentUnavailable: this tier cannot lead the agent to its model.
        """
        await to_thread(self._make_programs)
        sandbox = await self.sandboxes.sandbox(branch)
        if needs_way_out and sandbox.tier == "copy":
            raise await self._no_way_out(agent)
        if sandbox.warm and not sandbox.busy:
            await sandbox.cool_down()  # so that it shows what was installed since it started
        return sandbox

    async def require(self, agent: str, *, needs_way_out: bool) -> None:
        """Raise what `sandbox` would raise for any branch here: for a probe, which has none."""
        status = await self.sandboxes.status()
        status.require()
        if needs_way_out and status.tier == "copy":
            raise await self._no_way_out(agent)

    async def _no_way_out(self, agent: str) -> AgentUnavailable:
        status = await self.sandboxes.status()
        why = status.reasons.get("overlay") or "it is not chosen (sandbox.tier)"
        return AgentUnavailable(
            f"{agent} needs the network for its model, and the sandbox of this host (tier copy) has none "
            f"of its own that could lead to the relay; the tier overlay has: {why}"
        )

    def _make_programs(self) -> None:
        (self.data_dir / PROGRAMS).mkdir(mode=0o755, parents=True, exist_ok=True)

    @contextmanager
    def ports(self, branch_id: str, count: int) -> Generator[list[int]]:
        """Lend ports of a sandbox's loopback that no other run on this branch has."""
        used = self._ports.setdefault(branch_id, set())
        free = [port for port in range(_FIRST_PORT, _FIRST_PORT + 256) if port not in used][:count]
        used.update(free)
        try:
            yield free
        finally:
            used.difference_update(free)
            if not used:
                self._ports.pop(branch_id, None)

    @asynccontextmanager
    async def home(
        self, branch: "Branch", agent: str, session: str | None, logins: tuple[Path, ...]
    ) -> AsyncGenerator[Lent]:
        """Lend a private home for a run on a branch, and take it back when no process is left."""
        view = branch.processes()
        where = view.directory / "home"
        facts = await self.sandboxes.facts_for(view.workspace)
        await to_thread(make_home, where, facts)
        lent = await to_thread(self.homes.lend, agent, session, where, logins)
        try:
            yield lent
        finally:
            # Shielded: a run that was cancelled gives its home back all the same.
            await asyncio.shield(to_thread(self.homes.take_back, lent))

    async def close(self) -> None:
        """Wait for the clearing of remains, if it runs."""
        if self._cleared is not None:
            await asyncio.wait({self._cleared})


def branches_of(workspace: "Workspace") -> BranchOf:
    """Return what gives requests branches of one workspace: the one they name, or a new one.

    A snapshot that a request names gets a fork, so that the branch itself stays.
    """

    async def branch_of(request: AgentRequest) -> "Branch":
        ref = request.branch
        if ref is None:
            return await to_thread(lambda: workspace.branch(f"agent {request.trace_id[:8]}"))
        if ref.snapshot_id is None:
            return await to_thread(workspace.open, ref.branch_id)
        return await to_thread(lambda: workspace.open(ref.branch_id).fork(snapshot=ref.snapshot_id))

    return branch_of
