"""One provider's HTTP: the SDK's client, its errors made ours, its answers read raw.

Here: opening an answer through an SDK and reading it in time; the only module that knows SDK
exceptions. Not here: what is sent or what an answer means (the wire modules), retries (`retry`).

The SDKs give authentication, URLs and requests, and aiohttp the transport, whose parser takes a fifth
of the time of the default one; their retries are off, and their event objects are not made: the bytes
are read raw and decoded by the wire modules.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import httpx2

from bowerbird.core.errors import ConfigError, ModelError
from bowerbird.core.threads import to_thread
from bowerbird.models.failures import Asked, FieldRefused, error_from_status, quoted, refused_field
from bowerbird.models.redact import Redactor
from bowerbird.models.settings import Timeouts, is_loopback
from bowerbird.models.sse import Clock, SseParser, chunks_in_time

PIECE_BYTES = 256 * 1024
LARGEST_WHOLE_ANSWER = 64 * 1024 * 1024


class SdkClient(Protocol):
    """What both SDKs' asynchronous clients have."""

    def post(self, path: str, **options: Any) -> Awaitable[Any]:
        """Send a request; SDK errors are raised."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go and with what.

    Args:
        asked: provider, model and address for errors.
        base_url: http(s) URL.
        api_key: sent to this host only (CF-49); None = none is sent.
        headers: further headers.
        timeouts: see `Timeouts`.
        verify_tls: False for loopback hosts only.
    """

    asked: Asked
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)
    verify_tls: bool = True

    def __post_init__(self) -> None:
        if urlsplit(self.base_url).scheme not in ("http", "https") or not urlsplit(self.base_url).hostname:
            raise ConfigError(
                f"the base URL of {self.asked.provider} is {self.base_url!r}; use http(s)://host/…"
            )
        if not self.verify_tls and not is_loopback(self.base_url):
            raise ConfigError(
                f"TLS verification is turned off for {self.base_url}; only loopback hosts allow that"
            )


def http_client_options(endpoint: Endpoint) -> dict[str, Any]:
    """Return how an SDK's HTTP client is made: timeouts, TLS, no proxy for loopback, redirects checked."""
    return {
        # Reading is timed by our clock, which knows the first event from later silence.
        "timeout": httpx2.Timeout(None, connect=endpoint.timeouts.connect_s),
        # To aiohttp 0 is no limit: how many turns run is ours to say, and each holds one connection.
        "limits": httpx2.Limits(max_connections=0, max_keepalive_connections=20),
        "event_hooks": {"response": [_redirect_check(endpoint)]},
        "verify": ssl.create_default_context() if endpoint.verify_tls else _unverified(),
        "trust_env": not is_loopback(endpoint.base_url),
    }


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _redirect_check(endpoint: Endpoint) -> Callable[[httpx2.Response], Awaitable[None]]:
    async def check(response: httpx2.Response) -> None:
        if not response.has_redirect_location:
            return
        target = response.url.join(response.headers["location"])
        if target.host != response.url.host or (response.url.scheme, target.scheme) == ("https", "http"):
            await response.aclose()
            raise endpoint.asked.error(
                "bad_request",
                f"{endpoint.asked.provider} at {endpoint.base_url} redirects to another host, {target.host}; "
                "the key is sent to its own host only: set that base URL if it is right",
                status=response.status_code,
            )

    return check


class Connection:
    """Sends bodies to one endpoint; opens its client on first use, off the event loop.

    Args:
        endpoint: where.
        path: of the requests, below the base URL.
        sdk: returns the SDK's module.
        make_client: makes the SDK's client.
        redactor: for what errors quote.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        path: str,
        sdk: Callable[[], Any],
        make_client: Callable[[Endpoint], SdkClient],
        redactor: Redactor,
    ) -> None:
        self.endpoint = endpoint
        self._path = path
        self._sdk = sdk
        self._make_client = make_client
        self._redactor = redactor
        self._client: SdkClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock | None = None

    @asynccontextmanager
    async def answer(
        self, content: bytes, deadline_s: float | None, optional: Collection[str]
    ) -> "AsyncGenerator[RawAnswer, None]":
        """Send `content` and give its answer; leaving the block closes the HTTP stream.

        Args:
            content: JSON body.
            deadline_s: seconds for the whole call, or None.
            optional: fields of the body that may be left out when the server refuses them.

        Raises:
            FieldRefused: the server refused one of `optional`.
            ModelError: anything else that went wrong before the answer began.
        """
        client = await self._opened()
        times = self.endpoint.timeouts
        clock = Clock(times.first_event_s, times.silence_s, deadline_s)
        try:
            async with asyncio.timeout_at(clock.next_limit()):
                response = await client.post(
                    self._path, cast_to=httpx2.Response, stream=True, stream_cls=object, **_sent(content)
                )
        except TimeoutError as error:
            raise self.late(clock) from error
        except Exception as error:  # classified by type; what is not the SDK's is raised again
            mapped = self.error_of(error)
            if mapped is None:
                raise
            said = _body_of(error)
            field_name = (
                refused_field(mapped.status, said, optional) if mapped.kind == "bad_request" else None
            )
            raise (FieldRefused(mapped, field_name) if field_name else mapped) from error
        raw = RawAnswer(cast("httpx2.Response", response), clock, self)
        try:
            yield raw
        finally:
            await raw.response.aclose()

    async def aclose(self) -> None:
        """Close the connections; a later request opens new ones."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()

    async def _opened(self) -> SdkClient:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections belong to the loop they were opened in; `run_sync` makes a new loop each time.
            self._client, self._loop, self._opening = None, loop, asyncio.Lock()
        if self._client is None and self._opening is not None:
            async with self._opening:
                if self._client is None:
                    # Importing an SDK and loading certificates take long enough to stall others.
                    self._client = await to_thread(self._make_client, self.endpoint)
        if self._client is None:
            raise RuntimeError("the connection was used in two event loops at once")
        return self._client

    def error_of(self, error: Exception) -> ModelError | None:
        """Return our error for an SDK's or HTTP error; None for errors of neither."""
        asked = self.endpoint.asked
        cause = error.__cause__
        if isinstance(error, ModelError):
            return error
        if isinstance(cause, ModelError):  # raised by our own redirect check, wrapped by the SDK
            return cause
        sdk = self._sdk()
        if isinstance(error, sdk.APIStatusError):
            status_error = cast("Any", error)
            headers = {str(k).lower(): str(v) for k, v in status_error.response.headers.items()}
            return error_from_status(
                asked, status_error.status_code, headers, _body_of(error), self._redactor
            )
        where = f"{asked.provider} at {self.endpoint.base_url}"
        if isinstance(error, sdk.APIConnectionError | httpx2.TransportError | OSError):
            # What the SDK and the transport call a timeout may be a refused connection: the first cause says.
            if any(isinstance(each, TimeoutError) for each in _causes(error)):
                limit = self.endpoint.timeouts.connect_s
                return asked.error("timeout", f"no connection to {where} within {limit:g} s", retryable=True)
            reason = quoted(str(cause or error) or type(cause or error).__name__, self._redactor)
            return asked.error("network", f"{where} cannot be reached: {reason}", retryable=True)
        base = getattr(sdk, "AnthropicError", None) or sdk.OpenAIError
        if isinstance(error, base | httpx2.HTTPError | httpx2.StreamError | httpx2.InvalidURL):
            text = quoted(str(error), self._redactor)
            return asked.error("bad_request", f"{where}: {type(error).__name__}: {text}")
        return None

    def cut(self, reason: str) -> ModelError:
        """Return the error of an answer that ended too early."""
        asked = self.endpoint.asked
        return asked.error("stream_cut", f"the answer of {asked.provider} was cut: {reason}", retryable=True)

    def late(self, clock: Clock) -> ModelError:
        """Return the error of an answer that did not come in time."""
        asked = self.endpoint.asked
        return asked.error("timeout", f"{asked.provider} {clock.describe()}", retryable=not clock.expired)


class RawAnswer:
    """An opened answer, unread."""

    def __init__(self, response: httpx2.Response, clock: Clock, connection: Connection) -> None:
        self.response = response
        self._clock = clock
        self._connection = connection

    @property
    def request_id(self) -> str | None:
        """The provider's id of the request."""
        headers = self.response.headers
        return headers.get("request-id") or headers.get("x-request-id")

    @property
    def is_stream(self) -> bool:
        """Whether the answer is an event stream; some servers answer whole whatever is asked."""
        return "json" not in self.response.headers.get("content-type", "")

    async def payloads(self) -> AsyncGenerator[list[bytes], None]:
        """Yield the payloads of each read, several at a time when they came together.

        Raises:
            ModelError: `stream_cut` when the connection breaks, `timeout` on silence.
        """
        parser = SseParser()
        async with aclosing(self._chunks()) as chunks:
            async for chunk in chunks:
                payloads = parser.feed(chunk)
                if payloads:
                    yield payloads
        rest = parser.finish()
        if rest:
            yield rest

    async def whole(self) -> bytes:
        """Return the whole body."""
        body = bytearray()
        async with aclosing(self._chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > LARGEST_WHOLE_ANSWER:
                    raise self._connection.cut(f"it is longer than {LARGEST_WHOLE_ANSWER:,} bytes")
        return bytes(body)

    async def _chunks(self) -> AsyncGenerator[bytes, None]:
        try:
            read = self.response.aiter_bytes()
            async with aclosing(read), aclosing(chunks_in_time(read, self._clock)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except TimeoutError as error:
            raise self._connection.late(self._clock) from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            # The library's own words ("TransferEncodingError: 400 …") stay in the cause, for logs.
            raise self._connection.cut("the connection was lost before its end") from error


def _sent(content: bytes) -> dict[str, Any]:
    """Return the options that send a body: a long one in pieces, between which others get their turn."""
    if len(content) <= PIECE_BYTES:
        return {"content": content}
    # With a length it is not sent chunked, which some servers refuse.
    return {"content": _Pieces(content), "options": {"headers": {"Content-Length": str(len(content))}}}


class _Pieces:
    """A body in pieces; read anew for each request that a redirect makes."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        for at in range(0, len(self._content), PIECE_BYTES):
            yield self._content[at : at + PIECE_BYTES]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _body_of(error: Exception) -> str:
    """Return the body of an SDK's status error as text."""
    response = getattr(error, "response", None)
    try:
        return str(response.text) if response is not None else ""
    except (httpx2.ResponseNotRead, UnicodeDecodeError, LookupError):
        return ""
