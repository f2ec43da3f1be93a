"""An MCP server behind OAuth on loopback: the SDK's authorization server and resource server, really listening.

Here: users who agree at once, clients registered dynamically, tokens that end when a test says so. Not here:
what tests ask.
"""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl


@dataclass
class Authority(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Grants everything; `refuses` sends people back with an error."""

    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    access: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)
    asked: list[AuthorizationParams] = field(default_factory=list)
    refreshed: int = 0
    lives_s: int = 3600
    refuses: bool = False
    resource: str = ""

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked.append(params)
        uri = str(params.redirect_uri)
        if self.refuses:
            return construct_redirect_uri(uri, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32), scopes=params.scopes or [], expires_at=time.time() + 60,
            client_id=client.client_id, code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True, resource=params.resource,
        )  # fmt: skip
        self.codes[code.code] = code
        return construct_redirect_uri(uri, code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: Any, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client.client_id)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: Any, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refreshed += 1
        del self.refresh[refresh_token.token]
        return self._tokens(client.client_id)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.access.pop(token.token, None)

    def _tokens(self, client_id: str) -> OAuthToken:
        access, refresh = (f"{kind}-{secrets.token_urlsafe(32)}" for kind in ("access", "refresh"))
        until = int(time.time()) + 3600
        self.access[access] = AccessToken(
            token=access, client_id=client_id, scopes=[], expires_at=until, resource=self.resource
        )
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lives_s)


@asynccontextmanager
async def oauth_server() -> AsyncIterator[tuple[str, Authority]]:
    """Serve `/mcp` with one tool on a free port; give its address and who grants."""
    sock = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{sock.getsockname()[1]}"
    authority = Authority(resource=f"{address}/mcp")
    server = MCPServer(
        "guarded",
        auth_server_provider=authority,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(address),
            resource_server_url=AnyHttpUrl(f"{address}/mcp"),
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(enabled=True),
        ),
    )

    @server.tool()
    def whoami() -> str:
        """Say who is calling."""
        return "somebody who signed in"

    running = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error", lifespan="on"))
    task = asyncio.create_task(running.serve([sock]))
    try:
        while not running.started:
            await asyncio.sleep(0)
        yield f"{address}/mcp", authority
    finally:
        running.should_exit = True
        await task
        sock.close()
