"""One provider's answers: opened in time, refused as our errors, read raw.

Here: how long an answer may take, what statuses mean, the bytes of an answer. Not here: HTTP itself
(`transport`), what is sent or what an answer means (the wire modules), retries (`wrappers/retry`).
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from bowerbird.core.errors import ModelError
from bowerbird.core.threads import to_thread
from bowerbird.models.failures import FieldRefused, error_from_status, refused_field
from bowerbird.models.providers.endpoint import Endpoint
from bowerbird.models.providers.sse import Clock, LineParser, SseParser, chunks_in_time
from bowerbird.models.redact import Redactor

if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from bowerbird.models.providers.transport import Transport

LARGEST_ANSWER = 64 * 1024 * 1024
_COMMON_HEADERS = {
    "accept": "application/json",
    "content-type": "application/json",
    "user-agent": "bowerbird",
}
LONGEST_ERROR_S = 10.0  # for the rest of an answer whose status says already that it is none


def merged(*layers: Mapping[str, str]) -> dict[str, str]:
    """Return headers of which later ones replace earlier ones, however their names are written.

    Example:
        >>> merged({"Accept": "a", "X": "1"}, {"accept": "b"})
        {'X': '1', 'accept': 'b'}
    """
    found: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer.items():
            found.pop(name.lower(), None)
            found[name.lower()] = (name, value)
    return dict(found.values())


class Connection:
    """Sends bodies to one endpoint; opens its transport on first use, off the event loop.

    Args:
        endpoint: where.
        path: of the requests, below the base URL.
        headers: how this wire proves who asks, and what else it wants; the endpoint's own replace them.
        redactor: for what errors quote.
    """

    def __init__(self, endpoint: Endpoint, path: str, headers: Mapping[str, str], redactor: Redactor) -> None:
        self.endpoint = endpoint
        self._path = path
        self._headers = merged(_COMMON_HEADERS, headers, endpoint.headers)
        self._redactor = redactor
        self._transport: Transport | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock | None = None

    @asynccontextmanager
    async def answer(
        self,
        content: bytes,
        deadline_s: float | None,
        optional: Collection[str],
        longest: int = LARGEST_ANSWER,
    ) -> "AsyncGenerator[RawAnswer, None]":
        """Send `content` and give its answer; leaving the block closes the HTTP stream.

        Args:
            content: JSON body.
            deadline_s: seconds for the whole call, or None.
            optional: fields of the body that may be left out when the server refuses them.
            longest: bytes of an answer; one that goes on is not read further.

        Raises:
            FieldRefused: the server refused one of `optional`.
            ModelError: anything else that went wrong before the answer began.
        """
        transport = await self._opened()
        times = self.endpoint.timeouts
        clock = Clock(times.first_event_s, times.silence_s, deadline_s)
        try:
            async with asyncio.timeout_at(clock.next_limit()):
                response = await transport.post(content)
        except TimeoutError as error:
            raise self.late(clock) from error
        try:
            if not 200 <= response.status < 300:
                raise await self._refusal(response, optional)
            yield RawAnswer(response, clock, self, longest)
        finally:
            response.close()  # one that was read to its end has given its connection back already

    async def aclose(self) -> None:
        """Close the connections; a later request opens new ones."""
        transport, self._transport = self._transport, None
        if transport is not None and self._loop is asyncio.get_running_loop():
            await transport.aclose()

    async def _opened(self) -> "Transport":
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections belong to the loop they were opened in; `run_sync` makes a new loop each time.
            self._transport, self._loop, self._opening = None, loop, asyncio.Lock()
        if self._transport is None and self._opening is not None:
            async with self._opening:
                if self._transport is None:
                    # Importing aiohttp takes long enough to stall others.
                    made = await to_thread(_transport_class)
                    self._transport = made(self.endpoint, self._path, self._headers, self._redactor)
        if self._transport is None:
            raise RuntimeError("the connection was used in two event loops at once")
        return self._transport

    async def _refusal(self, response: "ClientResponse", optional: Collection[str]) -> ModelError:
        """Return the error that an answer's status means."""
        from bowerbird.models.providers.transport import error_text

        said = ""
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_ERROR_S):
                said = await error_text(response)
        headers = {name.lower(): value for name, value in response.headers.items()}
        error = error_from_status(self.endpoint.asked, response.status, headers, said, self._redactor)
        name = None
        if error.kind in ("bad_request", "not_found"):
            name = refused_field(error.status, said, optional)
        return FieldRefused(error, name) if name else error

    def page(self) -> ModelError:
        """Return the error of a web page where an answer should be: a sign-in, a proxy, a wrong address."""
        asked = self.endpoint.asked
        text = (
            f"{asked.provider} at {self.endpoint.base_url} answers with a page (text/html), "
            "not as a model does; is the base URL right, and may this machine reach it without signing in?"
        )
        return asked.error("server", text, retryable=False)

    def cut(self, reason: str) -> ModelError:
        """Return the error of an answer that ended too early."""
        asked = self.endpoint.asked
        return asked.error("stream_cut", f"the answer of {asked.provider} was cut: {reason}", retryable=True)

    def too_long(self, longest: int) -> ModelError:
        """Return the error of an answer that goes on and on; a second one would do the same."""
        asked = self.endpoint.asked
        text = f"the answer of {asked.provider} was not read to its end: it is longer than {longest:,} bytes"
        return asked.error("server", text, retryable=False)

    def late(self, clock: Clock) -> ModelError:
        """Return the error of an answer that did not come in time."""
        asked = self.endpoint.asked
        return asked.error("timeout", f"{asked.provider} {clock.describe()}", retryable=not clock.expired)


def _transport_class() -> "type[Transport]":
    from bowerbird.models.providers.transport import Transport

    return Transport


class RawAnswer:
    """An opened answer, unread."""

    def __init__(
        self, response: "ClientResponse", clock: Clock, connection: Connection, longest: int
    ) -> None:
        self._response = response
        self._clock = clock
        self._connection = connection
        self._longest = longest
        self.is_page = "html" in self._content_type  # until an event shows that it only calls itself one
        self.in_last_event = False  # whether the payload that is read now was ended by nothing but the end

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request."""
        headers = self._response.headers
        return headers.get("request-id") or headers.get("x-request-id")

    @property
    def is_stream(self) -> bool:
        """Whether the answer is an event stream; some servers answer whole whatever is asked."""
        return "json" not in self._content_type or self._is_lines

    @property
    def _content_type(self) -> str:
        return self._response.headers.get("content-type", "")

    @property
    def _is_lines(self) -> bool:
        return "ndjson" in self._content_type

    async def payloads(self) -> AsyncGenerator[list[bytes], None]:
        """Yield the payloads of each read, several at a time when they came together.

        Raises:
            ModelError: `stream_cut` when the connection breaks, `timeout` on silence, `server` when it
                is too long.
        """
        parser = LineParser() if self._is_lines else SseParser()
        async with aclosing(self._chunks()) as chunks:
            async for chunk in chunks:
                payloads = parser.feed(chunk)
                if payloads:
                    self.is_page = False
                    yield payloads
        rest = parser.finish()
        if rest:
            self.in_last_event = True
            yield rest

    async def whole(self) -> bytes:
        """Return the whole body."""
        body = bytearray()
        async with aclosing(self._chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
        return bytes(body)

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        from bowerbird.models.providers.transport import BROKEN

        left = self._longest
        try:
            async with aclosing(chunks_in_time(self._response.content.iter_any(), self._clock)) as chunks:
                async for chunk in chunks:
                    left -= len(chunk)
                    if left < 0:
                        raise self._connection.too_long(self._longest)
                    yield chunk
        except TimeoutError as error:
            raise self._connection.late(self._clock) from error
        except BROKEN as error:
            # The library's own words ("TransferEncodingError: 400 …") stay in the cause, for logs.
            raise self._connection.cut("the connection was lost before its end") from error
