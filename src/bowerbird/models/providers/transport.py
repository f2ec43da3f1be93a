"""HTTP to one provider over aiohttp: a request, its redirects, and what fails before an answer begins.

Here: the only module that knows aiohttp, beside `interim`: sessions, proxies, TLS, sending a body. Not here:
what is sent or what an answer means (the wire modules), how long it may take (`connection`, `sse`), retries
(`wrappers/retry`). Imported with the first call, in a thread: aiohttp takes long enough to stall others.
"""

import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from bowerbird.core.errors import ModelError
from bowerbird.core.processes import descriptors
from bowerbird.models.failures import quoted
from bowerbird.models.providers.endpoint import Endpoint
from bowerbird.models.providers.interim import Connector
from bowerbird.models.redact import Redactor
from bowerbird.models.settings import is_loopback

PIECE_BYTES = 256 * 1024
MOST_REDIRECTS = 5
LARGEST_ERROR = 1024 * 1024
IDLE_CONNECTION_S = 5.0  # providers close idle connections; an older one may be closed as we send

BROKEN = (aiohttp.ClientError, OSError)
"""What reading an answer raises when its connection breaks."""


class Transport:
    """The connections to one endpoint, of the event loop in which it was made.

    Args:
        endpoint: where.
        path: of the requests, below the base URL.
        headers: of every request.
        redactor: for what errors quote.

    Raises:
        ModelError: the address or the proxy of the environment is none.
    """

    def __init__(self, endpoint: Endpoint, path: str, headers: Mapping[str, str], redactor: Redactor) -> None:
        self._endpoint = endpoint
        self._redactor = redactor
        self._headers = dict(headers)
        self._where = f"{endpoint.asked.provider} at {endpoint.base_url}"
        try:
            base = URL(endpoint.base_url)
            self._url = base.with_path(base.path.rstrip("/") + path, keep_query=True)
            if not any(name.lower() == "authorization" for name in headers):
                self._headers |= _proof_in(base)
            self._url = self._url.with_user(None)
            self._proxy, self._proxy_headers = _proxy_of(self._url)
        except ValueError as error:
            raise self._refused(f"{self._where}: {error}") from error
        self._session = aiohttp.ClientSession(
            # 0 is no limit: how many turns run is ours to say, and each holds one connection.
            connector=Connector(limit=0, keepalive_timeout=IDLE_CONNECTION_S, ssl=endpoint.verify_tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Reading is timed by our clock, which knows the first event from later silence.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=endpoint.timeouts.connect_s),
        )

    async def post(self, content: bytes) -> aiohttp.ClientResponse:
        """Send `content`; return the answer of whatever status, for the caller to close.

        Raises:
            ModelError: no connection, something that is not HTTP, a redirect that is not followed.
        """
        url = self._url
        for _ in range(1 + MOST_REDIRECTS):
            response = await self._send(url, content)
            location = response.headers.get("location")
            if location is None or not 300 <= response.status < 400:
                return response
            response.close()
            url = self._redirected(url, location, response.status)
        raise self._refused(f"{self._where} redirects more than {MOST_REDIRECTS} times")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def _send(self, url: URL, content: bytes) -> aiohttp.ClientResponse:
        headers, data = self._headers, content
        if len(content) > PIECE_BYTES:
            # With a length it is not sent chunked, which some servers refuse.
            headers, data = {**headers, "Content-Length": str(len(content))}, _pieces(content)
        try:
            return await self._session.post(
                url,
                data=data,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
            )
        except (*BROKEN, ValueError) as error:
            raise self.error_of(error) from error

    def _redirected(self, url: URL, location: str, status: int) -> URL:
        """Return where a redirect leads; only its own host gets the key."""
        try:
            target = url.join(URL(location))
            upgraded = target.scheme == "https" and target.is_default_port() and url.is_default_port()
            own = target.host == url.host and (target.origin() == url.origin() or upgraded)
        except ValueError as error:
            raise self._refused(f"{self._where} redirects to a broken address: {error}") from error
        if not own:
            named = target.host if target.host != url.host else f"{target.scheme}://{target.authority}"
            raise self._refused(
                f"{self._where} redirects to another host, {quoted(str(named), self._redactor)}; the key is "
                "sent to its own host only: set that base URL if it is right",
                status,
            )
        if status not in (307, 308):
            to = quoted(str(target), self._redactor)
            raise self._refused(
                f"{self._where} redirects to {to} (HTTP {status}), where a request would arrive without its "
                "content: set that base URL if it is right",
                status,
            )
        return target

    def error_of(self, error: Exception) -> ModelError:
        """Return our error for what kept an answer from beginning."""
        asked = self._endpoint.asked
        # A timeout of the system comes wrapped in a refused connection: the first cause says.
        if any(isinstance(each, TimeoutError) for each in _causes(error)):
            limit = self._endpoint.timeouts.connect_s
            text = f"no connection to {self._where} within {limit:g} s"
            return asked.error("timeout", text, retryable=True)
        lack = descriptors.ran_out(error)
        said = quoted(_reason(error), self._redactor) if lack is None else descriptors.words(lack)
        if isinstance(error, ValueError) and not isinstance(error, OSError):  # an address or a header is none
            return self._refused(f"{self._where}: {said}")
        if isinstance(error, aiohttp.ClientResponseError):
            return asked.error("network", f"{self._where} does not answer in HTTP: {said}", retryable=True)
        # Of a program on this machine, such as Ollama, the likeliest reason is that nobody started it.
        here = "; is it running?" if is_loopback(self._endpoint.base_url) else ""
        return asked.error("network", f"{self._where} cannot be reached: {said}{here}", retryable=True)

    def _refused(self, message: str, status: int | None = None) -> ModelError:
        return self._endpoint.asked.error("bad_request", message, status=status)


async def error_text(response: aiohttp.ClientResponse) -> str:
    """Return the body of an error answer as text, as far as it comes."""
    body = bytearray()
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > LARGEST_ERROR:
                break
    except BROKEN:
        pass  # the status says enough
    try:
        return body.decode(response.charset or "utf-8", "replace")
    except LookupError:  # a character set that nobody knows
        return body.decode("utf-8", "replace")


async def _pieces(content: bytes) -> AsyncGenerator[memoryview, None]:
    """A long body in pieces, between which others get their turn."""
    whole = memoryview(content)
    for at in range(0, len(content), PIECE_BYTES):
        yield whole[at : at + PIECE_BYTES]


def _proof_in(url: URL) -> dict[str, str]:
    """Return the header that the user and password of an address make."""
    return {"authorization": aiohttp.encode_basic_auth(url.user, url.password or "")} if url.user else {}


def _proxy_of(url: URL) -> tuple[URL | None, dict[str, str]]:
    """Return the proxy that the environment names for `url` and its headers; none for this machine."""
    host = url.host or ""
    if is_loopback(str(url)) or proxy_bypass(host):
        return None, {}
    proxies = getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named:
        return None, {}
    proxy = URL(named if "://" in named else f"http://{named}")
    if proxy.scheme not in ("http", "https") or not proxy.host:
        raise ValueError(
            f"the proxy of the environment is {str(proxy.with_user(None))!r}; use http://host:port, "
            "or name the host in NO_PROXY"
        )
    return proxy.with_user(None), _proof_in(proxy)


def _reason(error: Exception) -> str:
    """Return why there was no answer, without the library's own names."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno or 0
        reason = os.strerror(number) if number > 0 else error.os_error.strerror or str(error.os_error)
        of_proxy = isinstance(error, aiohttp.ClientProxyConnectionError)
        return f"the proxy {error.host}:{error.port}: {reason}" if of_proxy else reason
    return str(error) or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
