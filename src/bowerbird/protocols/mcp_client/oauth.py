"""Signing in at MCP servers with OAuth, as the protocol defines it (PT-17).

Here: the SDK's provider (discovery, registration, authorization code with PKCE, refreshing) over kept
sign-ins, and the person's part of it. Not here: where sign-ins are kept (`logins.py`), what the command says
(`cli/admin/mcp/login.py`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthRegistrationError
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from bowerbird.core.threads import to_thread
from bowerbird.protocols.mcp_client.http_bounds import IDENTITY, hold_to_bounds
from bowerbird.protocols.mcp_client.logins import LoginNeeded, Logins
from bowerbird.protocols.mcp_client.spec import OAuthSpec, ServerSpec

PATH = "/callback"
MOST_HEAD = 16_384  # bytes of the browser's request
_HEAD_S = 10.0
_EARLY_S = 30.0  # a token is renewed so long before it ends
_HEAD_LINES = (
    "Content-Type: text/html; charset=utf-8",
    "Cache-Control: no-store",
    "Referrer-Policy: no-referrer",
    "Connection: close",
)
DONE_PAGE = "You are signed in. This page can be closed."
FAILED_PAGE = "The sign-in did not work; the terminal says why. This page can be closed."


class LoginFailed(Exception):
    """The sign-in did not work; `str(error)` says why."""


class KeptLogin:
    """The SDK's token storage over what is kept for one server.

    Attributes:
        provider: that uses it; learns from here when the token ends and where it is renewed.
    """

    def __init__(self, spec: ServerSpec, *, anew: bool = False) -> None:
        self._name, self._url, self._oauth = spec.name, spec.url, _oauth(spec)
        self._logins = Logins(self._oauth.directory)
        # A new sign-in replaces the old one when it has worked, not before.
        self._fresh: dict[str, Any] | None = {} if anew else None
        self.provider: OAuthClientProvider | None = None
        self.redirect_uri = ""

    async def get_tokens(self) -> OAuthToken | None:
        """See `TokenStorage`."""
        kept = await self._kept()
        try:
            tokens = OAuthToken.model_validate(kept["tokens"]) if kept.get("tokens") else None
            self._remind(kept)
        except ValidationError:
            return None  # another version wrote it: the person signs in again
        return tokens

    def _remind(self, kept: dict[str, Any]) -> None:
        """Tell the provider what it knew when the token was given: it is asked in another process."""
        if self.provider is None:
            return
        context = self.provider.context
        context.token_expiry_time = kept.get("expires_at")
        if kept.get("server"):
            context.oauth_metadata = OAuthMetadata.model_validate(kept["server"])
        if kept.get("resource"):
            context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(kept["resource"])
        context.auth_server_url = kept.get("issuer")

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """See `TokenStorage`."""
        more: dict[str, Any] = {"tokens": tokens.model_dump(mode="json", exclude_none=True)}
        more["expires_at"] = time.time() + tokens.expires_in - _EARLY_S if tokens.expires_in else None
        if self.provider is not None:
            context = self.provider.context
            more["server"] = _plain(context.oauth_metadata)
            more["resource"] = _plain(context.protected_resource_metadata)
            more["issuer"] = context.auth_server_url
        kept = await self._kept()
        self._fresh = None
        await to_thread(self._logins.write, self._name, self._url, {**kept, **more})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """See `TokenStorage`; a client that settings name is never registered."""
        oauth = self._oauth
        if oauth.client_id:
            return OAuthClientInformationFull(
                client_id=oauth.client_id,
                client_secret=oauth.client_secret or None,
                token_endpoint_auth_method="client_secret_basic" if oauth.client_secret else "none",
                redirect_uris=[AnyUrl(self.redirect_uri)] if self.redirect_uri else None,
            )
        kept = await self._kept()
        try:
            return OAuthClientInformationFull.model_validate(kept["client"]) if kept.get("client") else None
        except ValidationError:
            return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """See `TokenStorage`."""
        client = client_info.model_dump(mode="json", exclude_none=True)
        if self._fresh is not None:
            self._fresh["client"] = client
            return
        await to_thread(self._logins.write, self._name, self._url, {**await self._kept(), "client": client})

    async def _kept(self) -> dict[str, Any]:
        if self._fresh is not None:
            return self._fresh
        return await to_thread(self._logins.read, self._name, self._url) or {}


def kept_auth(spec: ServerSpec) -> OAuthClientProvider | None:
    """Return what signs requests with a kept sign-in and renews it; None where nobody signed in. Blocks."""
    if spec.oauth is None or not Logins(spec.oauth.directory).has(spec.name):
        return None

    async def nobody(_: str) -> None:
        raise LoginNeeded(
            f"the sign-in counts no longer; sign in again with: bowerbird mcp login {spec.name}"
        )

    async def no_answer() -> AuthorizationCodeResult:
        raise LoginNeeded("nobody can sign in here")

    return _provider(spec, KeptLogin(spec), "http://127.0.0.1/callback", nobody, no_answer)


def _provider(
    spec: ServerSpec,
    login: KeptLogin,
    redirect_uri: str,
    show: Callable[[str], Awaitable[None]],
    answer: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        client_name="Bowerbird",
        redirect_uris=[AnyUrl(redirect_uri)],
        grant_types=["authorization_code", "refresh_token"],
    )
    login.redirect_uri = redirect_uri
    login.provider = OAuthClientProvider(spec.url, metadata, login, show, answer)
    return login.provider


async def sign_in(
    spec: ServerSpec, show: Callable[[str], Awaitable[None]], *, port: int = 0, within_s: float = 300.0
) -> int:
    """Let a person sign in and keep that; return how many tools the server has.

    Args:
        show: gets the address that the person opens in a browser of this machine.
        port: where the browser comes back to; 0 = any. within_s: longest wait.

    Raises:
        LoginFailed: it did not work; an earlier sign-in stays as it is unless the server took it back.
    """
    desk = _Desk()
    listener = await asyncio.start_server(desk.serve, "127.0.0.1", port, limit=MOST_HEAD)
    try:
        bound = listener.sockets[0].getsockname()[1]
        uri = f"http://127.0.0.1:{bound}{PATH}"
        auth = _provider(spec, KeptLogin(spec, anew=True), uri, show, desk.answered)
        async with asyncio.timeout(within_s):
            return await _tools_of(spec, auth)
    except TimeoutError:
        raise LoginFailed(f"nobody signed in within {within_s:.0f} s") from None
    except Exception as error:  # whatever the server or the SDK finds wrong is this one answer
        raise LoginFailed(_said(spec, error)) from error
    finally:
        listener.close()


async def _tools_of(spec: ServerSpec, auth: OAuthClientProvider) -> int:
    async with (
        httpx2.AsyncClient(
            auth=auth,
            headers={**IDENTITY, **spec.headers},
            timeout=httpx2.Timeout(30.0),
            event_hooks={"response": [hold_to_bounds]},
        ) as http,
        Client(streamable_http_client(spec.url, http_client=http)) as client,
    ):
        return len((await client.list_tools()).tools)


class _Desk:
    """Takes the browser's way back; one answer counts, whatever else knocks at the port."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def answered(self) -> AuthorizationCodeResult:
        """Return what the authorization server sent along."""
        return await self._answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            async with asyncio.timeout(_HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            status, page = self._taken(head)
            body = f"<!doctype html><meta charset=utf-8><title>Bowerbird</title><p>{page}</p>".encode()
            head_lines = (*_HEAD_LINES, f"Content-Length: {len(body)}")
            writer.write("\r\n".join((f"HTTP/1.1 {status}", *head_lines, "", "")).encode() + body)
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            return  # no browser: it is not waited for
        finally:
            writer.close()

    def _taken(self, head: bytes) -> tuple[str, str]:
        target = head.split(b" ", 2)[1].decode("ascii", "replace")
        parts = urlsplit(target)
        if parts.path != PATH:
            return "404 Not Found", "There is nothing here."
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self._answer.done():
            return "200 OK", DONE_PAGE
        if "code" in given:
            self._answer.set_result(
                AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))
            )
            return "200 OK", DONE_PAGE
        reason = given.get("error_description") or given.get("error") or "no code came back"
        self._answer.set_exception(LoginFailed(f"the server refused: {reason[:300]}"))
        return "200 OK", FAILED_PAGE


def _oauth(spec: ServerSpec) -> OAuthSpec:
    assert spec.oauth is not None, "asked for servers that can be signed in at only"
    return spec.oauth


def _plain(found: OAuthMetadata | ProtectedResourceMetadata | None) -> dict[str, Any] | None:
    return None if found is None else found.model_dump(mode="json", exclude_none=True)


def _said(spec: ServerSpec, error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    lines = str(error).strip().splitlines()
    line = lines[0][:500] if lines else type(error).__name__
    if not isinstance(error, OAuthRegistrationError):
        return line
    place = f"mcp_servers.{spec.name}"
    return (
        f"no sign-in was found at the server ({line}); where it takes a token, set "
        f"{place}.authorization_token or {place}.headers, where it knows a client, {place}.oauth.client_id"
    )
