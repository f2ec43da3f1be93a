"""One bounded HTTP request for a model: checked addresses, few redirects, few bytes.

Here: a transport that connects to the very address that was checked, and `fetch`. Not
here: which addresses those are (`net_guard.py`), what an answer means (`web_tools.py`).
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from urllib.parse import urljoin

import httpx2
import msgspec

from bowerbird.core.errors import ToolError
from bowerbird.tools.web.net_guard import AddressRefused, Guard

MAX_REDIRECTS = 5
MAX_BODY_BYTES = 5 * 1024 * 1024
_CHUNK = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_CONNECT_S = 10.0
USER_AGENT = "Mozilla/5.0 (compatible; Bowerbird; +agent)"


class FetchFailed(ToolError):
    """The fetch gave nothing; the message names URL and cause."""


class Fetched(msgspec.Struct, frozen=True):
    """What a fetch gave.

    Attributes:
        url: where the answer came from, after redirects.
        media_type: lower case without parameters, `""` when none was sent.
        charset: as the server named it, or None.
        body: at most 5 MiB, decompressed.
        cut: there was more.
    """

    url: str
    status: int
    media_type: str
    charset: str | None
    body: bytes
    cut: bool


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Resolves once, checks every address, and connects to one of those, TLS by the original name.

    Args:
        guard: Decides about hosts and addresses.
        verify: TLS context; None = the system's certificates.
    """

    def __init__(self, guard: Guard, verify: ssl.SSLContext | None = None) -> None:
        self._guard = guard
        self._inner = httpx2.AsyncHTTPTransport(verify=verify or True, trust_env=False, retries=0)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request`; raises AddressRefused before any connection is made."""
        host, port = self._guard.check_url(str(request.url))
        try:
            addresses = await self._guard.addresses(host, port)
        except OSError as error:
            raise httpx2.ConnectError(f"{host} cannot be resolved", request=request) from error
        for address in addresses:
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,  # its Host is the original one
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if address == addresses[-1]:
                    raise
        raise AssertionError("addresses is never empty")

    async def aclose(self) -> None:
        """Close open connections."""
        await self._inner.aclose()


async def fetch(
    url: str,
    guard: Guard,
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    verify: ssl.SSLContext | None = None,
    stays: bool = False,
) -> Fetched:
    """Get `url` and return its answer, whatever its status.

    Args:
        stays: A redirect to another host is not followed: somebody may have to be asked about it.
        timeout_s: For everything: names, redirects, body.
        headers: Beside our own; a secret among them goes to the first host only.

    Raises:
        AddressRefused: the URL or a redirect leads where models may not go.
        FetchFailed: network, time, encoding, too many redirects, or one to another host.
    """
    own = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip, deflate", "Accept-Language": "en,*;q=0.5"}
    try:
        async with asyncio.timeout(timeout_s):
            transport = PinnedTransport(guard, verify)
            async with httpx2.AsyncClient(
                transport=transport, timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S), trust_env=False
            ) as client:
                return await _follow(client, guard, url, {**own, **(headers or {})}, own, stays=stays)
    except TimeoutError as error:
        raise FetchFailed(f"cannot fetch {url}: no complete answer within {timeout_s:g} s") from error
    except httpx2.TimeoutException as error:
        raise FetchFailed(f"cannot fetch {url}: the server took too long") from error
    except httpx2.HTTPError as error:
        raise FetchFailed(f"cannot fetch {url}: {error or type(error).__name__}") from error
    except httpx2.InvalidURL as error:
        raise AddressRefused(f"not a usable URL: {error}") from error


async def _follow(
    client: httpx2.AsyncClient,
    guard: Guard,
    url: str,
    headers: dict[str, str],
    plain: dict[str, str],
    *,
    stays: bool,
) -> Fetched:
    current, origin = url, guard.check_url(url)
    for _ in range(MAX_REDIRECTS + 1):
        target = guard.check_url(current)
        if stays and target[0].removeprefix("www.") != origin[0].removeprefix("www."):
            raise FetchFailed(f"{url} leads to another host: {current} . Fetch that address if it is wanted")
        sent = headers if target == origin else plain
        async with client.stream("GET", current, headers=sent, follow_redirects=False) as response:
            where = response.headers.get("location")
            if response.status_code in _REDIRECTS and where:
                current = urljoin(current, where.strip())
                continue
            body, cut = await _body(response, current)
            kind, _, _ = response.headers.get("content-type", "").partition(";")
            return Fetched(
                current, response.status_code, kind.strip().lower(), response.charset_encoding, body, cut
            )
    raise FetchFailed(f"cannot fetch {url}: more than {MAX_REDIRECTS} redirects")


async def _body(response: httpx2.Response, url: str) -> tuple[bytes, bool]:
    """Read at most 5 MiB of decompressed body; then the caller closes the connection."""
    body = bytearray()
    async with aclosing(_decoded(response, url)) as pieces:
        async for piece in pieces:
            body += piece[: MAX_BODY_BYTES - len(body)]
            if len(body) >= MAX_BODY_BYTES:
                return bytes(body), True
    return bytes(body), False


async def _decoded(response: httpx2.Response, url: str) -> AsyncGenerator[bytes, None]:
    """Yield the body in pieces of at most 64 KiB: a small body may unpack to gigabytes."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise FetchFailed(f"cannot fetch {url}: its encoding {encoding!r} is not supported")
    unpack = None
    async for chunk in response.aiter_raw(_CHUNK):
        if encoding in ("", "identity"):
            yield chunk
            continue
        if unpack is None:
            unpack = zlib.decompressobj(_window(encoding, chunk))
        waiting = chunk
        while waiting and not unpack.eof:
            try:
                piece = unpack.decompress(waiting, _CHUNK)
            except zlib.error as error:
                raise FetchFailed(f"cannot fetch {url}: its body cannot be unpacked: {error}") from error
            waiting = unpack.unconsumed_tail
            if piece:
                yield piece


def _window(encoding: str, start: bytes) -> int:
    if encoding != "deflate":
        return 16 + zlib.MAX_WBITS
    # "deflate" is zlib's format by the standard and a bare stream by the habit of some servers.
    return zlib.MAX_WBITS if start[:1] == b"\x78" else -zlib.MAX_WBITS
