"""One open session with one server, over the SDK's client (PT-18, PT-22, PT-23).

Here: the task that owns the session, calls with prompt cancellation, requests of the server routed to
the call they belong to. Not here: when it is opened and opened again (`server.py`), what a result means
to a model (`results.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    Implementation,
    ListRootsResult,
    Root,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import FileUrl

from bowerbird.models.answers.bounded_fitting import violations_within
from bowerbird.protocols.mcp_client.child import Child, Ring
from bowerbird.protocols.mcp_client.logins import LoginNeeded
from bowerbird.protocols.mcp_client.spec import ServerSpec
from bowerbird.protocols.mcp_client.transport import Start, open_streams

MAX_TOOLS = 500
MAX_ROUNDS = 10
LONGEST_BYE_S = 1.5  # that a server over HTTP has for the end of the session, which it only is told
LONGEST_END_S = 8.0  # a started server has 2 s after its stdin closes, 2 s after SIGTERM, then SIGKILL
_MAX_PAGES = 100
_CANCEL_S = 0.05  # of the 100 ms in which a cancelled call ends
_SESSION_GONE = "Session terminated"  # these two are the SDK's own words
_ALL_CLOSED = "Connection closed"

T = TypeVar("T")


class ConnectionLost(Exception):
    """The connection ended. `sent` tells whether the server may have acted on the request."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Caller(Protocol):
    """What a running call lets its server ask for."""

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """Ask the person whose turn it is."""
        ...

    async def sample(self, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        """Ask the model of the turn."""
        ...


@dataclass(frozen=True, slots=True)
class Hooks:
    """What a connection is given by its owner.

    Attributes:
        tools_changed: called when the server's list of tools changed.
        start: starts a server of the stdio transport.
        root: the branch's root as the server sees it; None = the server is told no root.
    """

    tools_changed: Callable[[], None]
    start: Start = Child.start
    root: Callable[[], Awaitable[str]] | None = None


_caller: ContextVar[Caller | None] = ContextVar("mcp_caller", default=None)


class Connection:
    """A session with a server. Made by `start`, ended by `aclose`; ends by itself when the server does."""

    def __init__(self, spec: ServerSpec, ring: Ring, hooks: Hooks) -> None:
        self.spec = spec
        self._ring, self._hooks = ring, hooks
        self._client: Client | None = None
        self._callers: list[Caller] = []
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()  # wanted by us, or done by the server
        self._ended = asyncio.Event()
        self._failure = ""
        self._promised: dict[str, dict[str, Any]] = {}  # tool → schema of its structured results
        self._owner = asyncio.create_task(self._own(), name=f"mcp {spec.name}")

    @property
    def alive(self) -> bool:
        """Whether calls can be sent."""
        return self._ready.is_set() and not self._ended.is_set() and not self._closing.is_set()

    @property
    def protocol_version(self) -> str:
        """The version both sides speak."""
        return self._open_client.protocol_version

    @property
    def title(self) -> str:
        """Name and version that the server gives of itself, "" when it gives none."""
        info = self._open_client.server_info
        return f"{info.name} {info.version}".strip() if info is not None else ""

    async def ready(self) -> None:
        """Wait until the session is open.

        Raises:
            ConnectionLost: it could not be opened; the text says why.
        """
        await _first(self._ready, self._ended)
        if not self._ready.is_set():
            raise ConnectionLost(self._failure, sent=False)

    async def list_tools(self) -> tuple[list[Tool], bool]:
        """Return the tools that settings let be offered, at most 500, and whether there are more."""
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._guarded(self._open_client.list_tools(cursor=cursor, cache_mode="refresh"))
            tools += [tool for tool in page.tools if self.spec.offers(tool.name)]
            cursor = page.next_cursor
            if cursor is None or len(tools) > MAX_TOOLS:
                break
        self._promised = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}
        return tools[:MAX_TOOLS], cursor is not None or len(tools) > MAX_TOOLS

    async def call(
        self, tool: str, arguments: dict[str, Any], caller: Caller, progress: ProgressFnT
    ) -> CallToolResult:
        """Call a tool. Cancelling this tells the server and ends within 100 ms.

        Raises:
            ConnectionLost: the server ended, or knows the session no more.
            MCPError: the server refused the request. RuntimeError: its answer breaks its own promise.
        """
        with self._calling(caller):
            sending = self._open_client.call_tool(tool, arguments, progress_callback=progress)
            answer = await self._guarded(sending)
        schema = self._promised.get(tool)
        if schema is not None and not answer.is_error:
            await _hold_to(schema, answer)
        return answer

    async def aclose(self) -> None:
        """End the session and what was started for it; may be called more than once."""
        self._closing.set()
        if not self._ready.is_set():
            self._owner.cancel()  # it hangs at the start
        longest = LONGEST_END_S if self.spec.transport == "stdio" else LONGEST_BYE_S
        await asyncio.wait({self._owner}, timeout=longest)
        self._owner.cancel()
        await asyncio.gather(self._owner, return_exceptions=True)

    @property
    def _open_client(self) -> Client:
        if self._client is None:
            raise ConnectionLost(self._failure or "the session is not open", sent=False)
        return self._client

    async def _guarded(self, awaitable: Awaitable[T]) -> T:
        """Await a request; when the session ends meanwhile, so does this."""
        request = asyncio.ensure_future(awaitable)
        ended = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait({request, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                raise ConnectionLost(self._failure or "the connection ended", sent=True)
            return request.result()
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                # Over HTTP a request has a stream of its own, which can end alone.
                if self.spec.transport != "streamable_http" or error.message == _ALL_CLOSED:
                    self._closing.set()
                raise ConnectionLost(str(error), sent=True) from error
            if error.code == INVALID_REQUEST and _SESSION_GONE in str(error):
                self._closing.set()
                raise ConnectionLost("the server has forgotten the session", sent=False) from error
            raise
        finally:
            ended.cancel()
            if not request.done():
                request.cancel()
                # The notice of cancellation goes out within this time, or not at all.
                await asyncio.wait({request}, timeout=_CANCEL_S)

    # ------------------------------------------------------------ the owner's task

    async def _own(self) -> None:
        try:
            async with self._made_client() as client:
                # The SDK evaluates the server's schema here, on the event loop, and for ever if it likes.
                vars(client.session)["validate_tool_result"] = _checked_by_us
                self._client = client
                self._ready.set()
                watching = asyncio.create_task(self._watch(client), name=f"mcp {self.spec.name} changes")
                try:
                    await self._closing.wait()
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
        except Exception as error:  # noqa: BLE001 - whatever a transport raises ends this session only
            self._failure = self._failure or _reason(error)
        finally:
            self._client = None
            self._failure = self._failure or "the connection ended"
            self._ended.set()

    def _made_client(self) -> Client:
        return Client(
            open_streams(self.spec, self._ring, self._closing, self._hooks.start),
            client_info=Implementation(name="bowerbird", version=_own_version()),
            elicitation_callback=self._elicit,
            sampling_callback=self._sample if self.spec.sampling else None,
            list_roots_callback=self._roots if self._hooks.root is not None else None,
            message_handler=self._hear,
            input_required_max_rounds=MAX_ROUNDS,
        )

    async def _watch(self, client: Client) -> None:
        """Hear of changed tools where the protocol has a stream for that."""
        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools and tools.list_changed):
            return
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._hooks.tools_changed()
        except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            return  # the list is then that of the start, or of the next one

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._hooks.tools_changed()

    # ------------------------------------------------------------ what the server asks

    @contextmanager
    def _calling(self, caller: Caller) -> Generator[None]:
        self._callers.append(caller)
        token = _caller.set(caller)
        try:
            yield
        finally:
            _caller.reset(token)
            self._callers.remove(caller)

    def _asked_in(self) -> Caller | None:
        """Return the call that a request of the server belongs to, None when that cannot be known.

        Over HTTP, and where the server answers a call with its questions, the request comes in the
        call's own context. Over stdio nothing names the call: a person must not see another's question.
        """
        known = _caller.get()
        if known is not None:
            return known
        return self._callers[0] if len(self._callers) == 1 else None

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        caller = self._asked_in()
        return ElicitResult(action="decline") if caller is None else await caller.elicit(params)

    async def _sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | ErrorData:
        caller = self._asked_in()
        if caller is None:
            return ErrorData(code=INVALID_REQUEST, message="no call of a tool to sample for")
        return await caller.sample(params)

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:
        assert self._hooks.root is not None, "roots are announced only where there is one"
        path = await self._hooks.root()
        return ListRootsResult(roots=[Root(uri=FileUrl(Path(path).as_uri()), name="branch")])


async def _first(*events: asyncio.Event) -> None:
    """Wait until one of `events` is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _checked_by_us(name: str, result: CallToolResult) -> None:
    """Leave a result to `_hold_to`."""


async def _hold_to(schema: dict[str, Any], answer: CallToolResult) -> None:
    """Raise RuntimeError when a structured result is not what the server says its tool gives."""
    if answer.structured_content is None:
        raise RuntimeError("the tool has an output schema but gave no structured content")
    wrong = await violations_within(answer.structured_content, schema)
    if wrong:
        raise RuntimeError(f"its structured content {wrong[0]}")


def _own_version() -> str:
    try:
        return version("bowerbird")
    except PackageNotFoundError:
        return "0"  # run from its sources


def _reason(error: BaseException) -> str:
    """Return what went wrong first, without the groups that task groups wrap it in."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
        return "the connection ended"
    if isinstance(error, LoginNeeded):
        return str(error)
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
