"""One server over the life of the process: started late, tried again, connected again (PT-18, PT-22).

Here: when a connection is opened and which tools it gives. Not here: a connection's inside
(`connection.py`), several servers (`client.py`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import Tool as ServerTool
from pydantic import ValidationError

from bowerbird.core.errors import ToolDefinitionError
from bowerbird.core.tasks import Tasks
from bowerbird.protocols.mcp_client.asked import BROKEN
from bowerbird.protocols.mcp_client.child import Ring
from bowerbird.protocols.mcp_client.connection import MAX_TOOLS, Connection, ConnectionLost, Hooks
from bowerbird.protocols.mcp_client.patterns import pattern_problems
from bowerbird.protocols.mcp_client.schemas import schema_problem
from bowerbird.protocols.mcp_client.spec import ServerSpec
from bowerbird.protocols.mcp_client.tools import make_tool
from bowerbird.tools.names import mcp_name
from bowerbird.tools.tool import Tool

if TYPE_CHECKING:
    from bowerbird.protocols.mcp_client.sandboxed import BranchHome

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0
REFRESH_WAIT_S = 2.0

_log = logging.getLogger(__name__)


class Server:
    """A configured server; `aclose` ends it and what was started for it.

    Args:
        spec: from settings.
        redact: takes secrets out of messages for people and models.
        home: where a server of `sandbox: true` runs; None = nowhere.
    """

    def __init__(
        self, spec: ServerSpec, redact: Callable[[str], str], home: "BranchHome | None" = None
    ) -> None:
        self.spec = spec
        self.home = home
        self.ring = Ring()
        self.absent: dict[str, str] = {}
        self.warnings: tuple[str, ...] = ()
        self._redact = redact
        self._tools: tuple[Tool, ...] | None = None
        self._connection: Connection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._retrying: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._stale = False
        self._read: tuple[list[dict[str, Any]], list[str | None]] = ([], [])
        self._waited = False
        self._background = Tasks(f"mcp {spec.name} end")
        self._closed = False
        self.failure = ""

    def redact(self, text: str) -> str:
        """Return `text` without configured secrets."""
        return self._redact(self.spec.masked(text))

    @property
    def known(self) -> tuple[Tool, ...]:
        """Its tools as last heard; empty before the first start."""
        return self._tools or ()

    async def offered(self) -> tuple[Tool, ...] | None:
        """Return the tools of a turn that begins now; None when the server is left out (`failure`).

        Waits for the first start, at most `start_timeout_s`, and for nothing that failed before.
        """
        if self._tools is None and self._retrying is None:
            await self._first_start()
        if self._stale and self._connection is not None and self._connection.alive:
            self._refresh()
        if self._refreshing is not None and not self._waited:
            _, hanging = await asyncio.wait({self._refreshing}, timeout=REFRESH_WAIT_S)
            self._waited = bool(hanging)  # one that hangs is waited for once
        return self._tools

    async def connected(self) -> Connection:
        """Return the open connection, opened again if it was lost.

        Raises:
            ConnectionLost: it cannot be opened.
        """
        if self._connection is None or not self._connection.alive:
            await asyncio.shield(self._open())
        assert self._connection is not None, "an opening that returned has a connection"
        return self._connection

    async def aclose(self) -> None:
        """End everything; may be called more than once."""
        self._closed = True
        tasks = [t for t in (self._retrying, self._opening, self._refreshing) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._connection is not None:
            await self._connection.aclose()
        await self._background.finish()

    # ------------------------------------------------------------ opening

    async def _first_start(self) -> None:
        with contextlib.suppress(ConnectionLost):
            # Shielded: a cancelled turn must not end the start that another turn waits for.
            await asyncio.shield(self._open())
            return
        if self._retrying is None and not self._closed:
            self._retrying = asyncio.create_task(self._retry(), name=f"mcp {self.spec.name} retry")

    def _open(self) -> "asyncio.Task[None]":
        """Return the one running attempt to open a connection, begun if there is none."""
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._attempt(), name=f"mcp {self.spec.name} start")
            self._opening.add_done_callback(_seen)
        return self._opening

    async def _attempt(self) -> None:
        if self._closed:
            raise ConnectionLost("it is shut down", sent=False)
        if self.spec.sandbox and self.home is None:
            # Law 6: better no server than one outside the sandbox that was asked for.
            self.failure = "it runs in the sandbox of a branch, and there is none here"
            raise ConnectionLost(self.failure, sent=False)
        await self._end_old()
        home = self.home if self.spec.sandbox else None
        hooks = Hooks(self._changed) if home is None else Hooks(self._changed, home.start, home.root)
        connection = Connection(self.spec, self.ring, hooks)
        try:
            async with asyncio.timeout(self.spec.start_timeout_s):
                await connection.ready()
                await self._take(*await connection.list_tools())
        except (TimeoutError, ConnectionLost, MCPError, ValidationError, RuntimeError) as error:
            self.failure = self.redact(self._why(error))
            self._background.spawn(connection.aclose())
            raise ConnectionLost(self.failure, sent=False) from error
        except BaseException:
            self._background.spawn(connection.aclose())
            raise
        self.failure, self._stale = "", False
        self._connection = connection

    async def _end_old(self) -> None:
        old, self._connection = self._connection, None
        if old is not None:
            self._background.spawn(old.aclose())

    async def _retry(self) -> None:
        delay = FIRST_RETRY_S
        while not self._closed:
            await asyncio.sleep(delay)
            try:
                await asyncio.shield(self._open())
            except ConnectionLost as error:
                _log.info("MCP server %s: %s; next try in %g s", self.spec.name, error, delay)
                delay = min(2 * delay, LONGEST_RETRY_S)
            else:
                break
        self._retrying = None

    def _why(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            why = f"it did not start within {self.spec.start_timeout_s:g} s"
        else:
            why = str(error).strip().partition("\n")[0] or type(error).__name__
        last = self.ring.last_line[:300]
        return f"{why}; it said last: {last}" if last else why

    # ------------------------------------------------------------ tools

    def _changed(self) -> None:
        """The server's list changed: it counts from the next turn."""
        self._stale = True
        self._refresh()

    def _refresh(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._waited = False
            self._refreshing = asyncio.create_task(self._again(), name=f"mcp {self.spec.name} tools")

    async def _again(self) -> None:
        connection = self._connection
        while self._stale and connection is not None and connection.alive:
            self._stale = False
            try:
                async with asyncio.timeout(self.spec.start_timeout_s):
                    await self._take(*await connection.list_tools())
            except (TimeoutError, ConnectionLost, MCPError, ValidationError) as error:
                _log.warning("MCP server %s: its tools cannot be listed: %s", self.spec.name, error)
                return

    async def _take(self, listed: list[ServerTool], is_cut: bool) -> None:
        tools: dict[str, Tool] = {}
        warnings: list[str] = []
        if is_cut:
            those, of = f"its first {MAX_TOOLS} tools", f"mcp_servers.{self.spec.name}.allow"
            warnings.append(f"MCP server {self.spec.name}: only {those} are offered; choose others with {of}")
        absent: dict[str, str] = {}
        patterns = await self._patterns(listed)
        for each in sorted(listed, key=lambda tool: tool.name):
            await asyncio.sleep(0)  # five hundred large schemas: others have their turn between two
            name = mcp_name(self.spec.name, each.name)
            if self.spec.approval_of(each.name) == "deny":
                absent[name] = f"denied by mcp_servers.{self.spec.name}.approval"
                continue
            problem = (each.meta or {}).get(BROKEN)
            if problem is None:
                problem = "its name is used twice" if name in tools else schema_problem(each.input_schema)
            problem = problem or patterns.get(each.name)
            if problem is None:
                try:
                    tools[name] = make_tool(self, each)
                except ToolDefinitionError as error:
                    problem = str(error)
            if problem is not None:
                shown = self.redact(f"{each.name[:80]}: {problem}")
                warnings.append(f"MCP server {self.spec.name}: a tool is left out: {shown}")
        self._tools, self.warnings, self.absent = tuple(tools.values()), tuple(warnings), absent

    async def _patterns(self, listed: list[ServerTool]) -> dict[str, str | None]:
        """Return what is wrong with the patterns of each tool."""
        schemas = [each.input_schema for each in listed]
        known, problems = self._read
        if schemas != known:  # a list that is heard again and again is read once
            problems = await pattern_problems(schemas)
            self._read = schemas, problems
        return {each.name: found for each, found in zip(listed, problems, strict=True)}


def _seen(task: "asyncio.Task[None]") -> None:
    """Take note of a failure that whoever waited has left behind."""
    if not task.cancelled():
        task.exception()
