"""Requests to the server that `--server URL` (or BOWERBIRD_URL) and BOWERBIRD_TOKEN name (UI-41).

Here: its address, HTTP requests, its refusals as errors that a person can act on. Not here: which requests
(`server.py`), the socket (`socket.py`).
"""

import os
import re
import urllib.parse
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import msgspec

from bowerbird.cli.terminal.exits import (
    CONFIG,
    FAILED,
    PARTLY,
    USAGE,
    CliExit,
    NothingToLand,
    Refused,
    ServerAway,
)
from bowerbird.cli.terminal.text import harmless, one_line
from bowerbird.core.errors import AlreadyAnswered, BowerbirdError, LandingRefused, SessionError, TurnRunning
from bowerbird.core.forms import decode
from bowerbird.models.settings import is_loopback
from bowerbird.sessions.wishes import NOTHING_CODE

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from bowerbird.cli.terminal.shell import Shell

TIMEOUT_S = 120.0
_FROM_A_PROXY = (502, 503, 504)
_WORD = re.compile(r"\bconversation\b")
"""What a session is called on the wire."""
_SESSION_ERRORS: Mapping[str, type[SessionError]] = {
    "not_running": SessionError,
    "not_queued": SessionError,
    "already_answered": AlreadyAnswered,
    "turn_running": TurnRunning,
}
"""Refusals that commands and the chat know how to go on from, by their code on the wire."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is and how it knows us."""

    url: str
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, shell: "Shell") -> "Address":
        """Return the server that the command line or the environment names."""
        url = (shell.anywhere.server or os.environ.get("BOWERBIRD_URL") or "").rstrip("/")
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CliExit(
                USAGE, f"{harmless(url)!r} is not a server's address; write --server http://HOST:PORT"
            )
        token = os.environ.get("BOWERBIRD_TOKEN") or None
        if token and parts.scheme == "http" and not is_loopback(url):
            shell.terminal.warn(f"BOWERBIRD_TOKEN goes to {harmless(parts.hostname)} unencrypted", "yellow")
        return cls(url, token)

    @property
    def headers(self) -> dict[str, str]:
        """What every request says of us."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


class Requests:
    """Requests to one server over one session of connections, which the caller closes.

    Args:
        address: of the server. http: open.
    """

    def __init__(self, address: Address, http: "ClientSession") -> None:
        self.address = address
        self.http = http

    async def get(self, path: str, /, **query: Any) -> Any:
        """Return what stands at `path`."""
        return await self.ask("GET", path, query=query)

    async def text(self, path: str, /, **query: Any) -> str:
        """Return what stands at `path`, as it is."""
        return (await self._answer("GET", path, None, query)).decode("utf-8", "surrogateescape")

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        *,
        patient: bool = False,
    ) -> Any:
        """Send a request; return the answer's JSON.

        Args:
            patient: wait for the answer as long as the connection holds.

        Raises:
            Refused: the server is not there, does not let us, or refuses; says what to do.
            LandingRefused: it refuses to land, with the paths. NothingToLand: it has nothing to land.
            SessionError: see `_SESSION_ERRORS`.
        """
        raw = await self._answer(method, path, body, query or {}, patient=patient)
        try:
            return decode(raw)
        except msgspec.DecodeError:
            raise Refused(
                f"{harmless(self.address.url)} is not a Bowerbird server: it sent no JSON", FAILED
            ) from None

    async def lines(self, path: str, body: Any) -> AsyncGenerator[Any]:
        """Send a body and yield the lines of JSON that come back, as long as they come.

        Raises:
            Refused: as `ask` raises it, also in the middle.
        """
        from aiohttp import ClientError, ClientTimeout

        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        try:
            async with self.http.post(
                self.address.url + path,
                data=msgspec.json.encode(body),
                headers=headers,
                timeout=ClientTimeout(connect=TIMEOUT_S),
            ) as response:
                if response.status >= 300:
                    raise self._refusal(response.status, await response.read())
                rest = b""
                async for chunk in response.content.iter_any():
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in whole:
                        if line.strip():
                            yield decode(line)
        except (TimeoutError, OSError, ClientError) as error:
            raise self.gone(error) from None

    async def _answer(
        self, method: str, path: str, body: Any, query: Mapping[str, Any], *, patient: bool = False
    ) -> bytes:
        from aiohttp import ClientError, ClientTimeout

        given: list[tuple[str, str]] = []
        for name, value in query.items():
            every = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]
            given += [(name, str(each)) for each in every if each is not None]
        sent = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": "application/json"} if sent is not None else {}
        timeout = ClientTimeout(connect=TIMEOUT_S) if patient else self.http.timeout
        try:
            async with self.http.request(
                method, self.address.url + path, params=given, data=sent, headers=headers, timeout=timeout
            ) as response:
                raw = await response.read()
        except (TimeoutError, OSError, ClientError) as error:
            raise self.gone(error) from None
        if response.status >= 300:
            raise self._refusal(response.status, raw)
        return raw

    def gone(self, error: Exception) -> ServerAway:
        """Return what is said when nobody answers."""
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ServerAway(
            f"no server answers at {harmless(self.address.url)}: {one_line(why, 200)}. "
            "Start one with `bowerbird serve`, or name another with --server or BOWERBIRD_URL",
            FAILED,
        )

    def _refusal(self, status: int, raw: bytes) -> BowerbirdError:
        try:
            data = cast("dict[str, Any]", decode(raw))
            detail, code = data.get("detail"), str(data.get("code", ""))
        except (msgspec.DecodeError, AttributeError):
            url = harmless(self.address.url)
            if status in _FROM_A_PROXY:
                return ServerAway(
                    f"{url} answered {status}: the server behind this address is not there", FAILED
                )
            return Refused(f"{url} is not a Bowerbird server: it answered {status}", FAILED)
        about = ""
        if isinstance(detail, list):
            rows = cast("list[dict[str, Any]]", detail)
            about = str(rows[0].get("loc", [""])[-1])
            detail = "; ".join(f"{row.get('loc', ['?'])[-1]}: {row.get('msg')}" for row in rows)
        said = _WORD.sub("session", one_line(str(detail), 500))
        if status == 401:
            return self._unknown(said)
        if code == "landing_refused" and data.get("refused"):
            return LandingRefused(said, refused=data["refused"])
        if code == NOTHING_CODE:
            return NothingToLand(said, USAGE)
        if code in _SESSION_ERRORS:
            return _SESSION_ERRORS[code](said)
        if about == "model":  # one that settings do not know, as in this process
            return Refused(f"the server refuses: {said}", CONFIG)
        exits = {403: CONFIG, 404: USAGE, 409: PARTLY if code == "stale" else USAGE, 422: USAGE}
        return Refused(f"the server refuses: {said}", exits.get(status, FAILED))

    def _unknown(self, said: str) -> Refused:
        what = "refuses BOWERBIRD_TOKEN" if self.address.token else "wants a token"
        return Refused(
            f"the server at {harmless(self.address.url)} {what}: {said}. Set BOWERBIRD_TOKEN; "
            "`bowerbird token create NAME` on the server's machine makes one",
            CONFIG,
        )
