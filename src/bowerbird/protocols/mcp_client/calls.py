"""One call of a server's tool: its clock, its questions, what is done when the connection breaks (PT-22).

Here: from arguments to a result, once. Not here: what makes the call a `Tool` (`tools.py`), permission.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

from mcp.client import InputRequiredRoundsExceededError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    SamplingMessage,
    TextContent,
)
from pydantic import ValidationError

from bowerbird.core.errors import ToolError
from bowerbird.core.messages import Message, TextBlock
from bowerbird.core.requests import ModelRequest
from bowerbird.protocols.mcp_client.connection import ConnectionLost
from bowerbird.protocols.mcp_client.elicitation import answer_of, question_text
from bowerbird.protocols.mcp_client.results import failed, to_tool_result
from bowerbird.tools.context import ToolContext
from bowerbird.tools.result import ToolResult

if TYPE_CHECKING:
    from bowerbird.protocols.mcp_client.connection import Connection
    from bowerbird.protocols.mcp_client.sandboxed import BranchHome
    from bowerbird.protocols.mcp_client.spec import ServerSpec

UNKNOWN_EFFECT = (
    "the connection to the MCP server {server} was lost during this call ({why}); whether it took effect is "
    "unknown. Check before doing it again."
)


class Called(Protocol):
    """A server, as far as a call of its tools knows it."""

    spec: "ServerSpec"
    home: "BranchHome | None"

    def redact(self, text: str) -> str:
        """Take secrets out of a message."""
        ...

    async def connected(self) -> "Connection":
        """Return the connection, opened where there is none."""
        ...


class Call:
    """A running call; the server's requests during it come here."""

    def __init__(self, server: Called, tool: str, context: ToolContext) -> None:
        self._server, self._tool, self._context = server, tool, context
        self._clock = asyncio.timeout(None)
        self._left = server.spec.call_timeout_s
        self._paused = 0

    async def run(self, arguments: dict[str, Any], *, repeatable: bool) -> ToolResult:
        """Return the result; every failure is one, save cancellation.

        Args:
            repeatable: a second call does no harm, so a lost connection is tried once more.
        """
        home = self._server.home if self._server.spec.sandbox else None
        if home is None:
            return await self._result(arguments, repeatable=repeatable)
        try:
            return await self._result(arguments, repeatable=repeatable)
        finally:  # what a cancelled call changed is in the branch all the same
            await home.taken(self._context.turn, self._context.call)

    async def _result(self, arguments: dict[str, Any], *, repeatable: bool) -> ToolResult:
        spec = self._server.spec
        try:
            async with self._clock:
                self._resume()
                answer = await self._answered(arguments, repeatable=repeatable)
        except TimeoutError:
            if not self._clock.expired():
                raise
            return failed(
                f"{self._tool} did not finish within {spec.call_timeout_s:g} s and was cancelled; whether it "
                "took effect is unknown", spec.masked,
            )  # fmt: skip
        except ConnectionLost as lost:
            if not lost.sent:
                return failed(f"the MCP server {spec.name} cannot be reached: {lost}", self._server.redact)
            text = UNKNOWN_EFFECT.format(server=spec.name, why=lost)
            return failed(text, self._server.redact)
        except MCPError as error:
            return failed(f"the MCP server {spec.name} refused: {error}", self._server.redact)
        except InputRequiredRoundsExceededError:
            return failed(f"the MCP server {spec.name} asked back more often than is allowed", spec.masked)
        except (RuntimeError, ValidationError) as error:
            first = str(error).strip().splitlines()[0]
            text = f"the MCP server {spec.name} gave an answer that breaks the protocol: {first}"
            return failed(text, self._server.redact)
        source = f"mcp://{spec.name}/{self._tool}"
        return await to_tool_result(answer, source, self._context.store_blob, spec.masked)

    async def _answered(self, arguments: dict[str, Any], *, repeatable: bool) -> CallToolResult:
        again = True
        while True:
            connection = await self._server.connected()
            try:
                return await connection.call(self._tool, arguments, self, self._progress)
            except ConnectionLost as lost:
                # Not sent, as when the server forgot the session, is safe to repeat for any tool.
                if not again or (lost.sent and not repeatable):
                    raise
                again = False

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        self._context.progress(self._server.spec.masked(f"{message} ({share})" if message else share))

    # ------------------------------------------------------------ what the server asks

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult:
        """See `connection.Caller`; the clock of the call stands still while a person thinks."""
        ask = self._context.ask
        if ask is None:
            return ElicitResult(action="decline")
        text, options = question_text(self._server.spec.name, params)
        async with self._standing():
            said = await ask(self._server.spec.masked(text), options)
        return answer_of(params, said)

    async def sample(self, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        """See `connection.Caller`."""
        sample = self._context.sample
        if sample is None or params.tools:
            return ErrorData(code=INVALID_REQUEST, message="sampling with tools is not offered")
        messages = _messages(params.messages)
        if messages is None:
            return ErrorData(code=INVALID_REQUEST, message="only text can be sampled")
        request = ModelRequest(
            messages=messages,
            system=(params.system_prompt,) if params.system_prompt else (),
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            purpose="subagent",
        )
        try:
            end = await sample(request)
        except ToolError as refused:
            return ErrorData(code=INVALID_REQUEST, message=str(refused))
        stop = "maxTokens" if end.stop_reason == "max_tokens" else "endTurn"
        text = TextContent(type="text", text=end.message.text)
        return CreateMessageResult(role="assistant", content=text, model=end.model, stop_reason=stop)

    def _resume(self) -> None:
        now = asyncio.get_running_loop().time()
        self._clock.reschedule(now + max(self._left, 0.0))

    @asynccontextmanager
    async def _standing(self) -> AsyncGenerator[None, None]:
        loop = asyncio.get_running_loop()
        if self._paused == 0:
            self._left = (self._clock.when() or loop.time()) - loop.time()
            self._clock.reschedule(None)
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1
            if self._paused == 0 and not self._clock.expired():
                self._resume()


def _messages(given: list[SamplingMessage]) -> tuple[Message, ...] | None:
    """Return the messages of a sampling request; None when one of them is more than text."""
    messages: list[Message] = []
    for message in given:
        parts = message.content if isinstance(message.content, list) else [message.content]
        texts = [part.text for part in parts if isinstance(part, TextContent)]
        if len(texts) < len(parts):
            return None
        messages.append(Message(message.role, (TextBlock("\n".join(texts)),)))
    return tuple(messages)
