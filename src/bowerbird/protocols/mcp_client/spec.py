"""One MCP server as settings describe it (PT-17), and what follows from that without asking it.

Here: frozen values. Not here: settings files (`app/features/mcp.py` reads them), starting anything.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bowerbird.core.errors import ConfigError

Approval = Literal["ask", "allow", "deny"]
Transport = Literal["stdio", "streamable_http", "sse"]

SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SECRET_NAME = re.compile(r"key|token|auth|secret|cookie|password", re.IGNORECASE)
_SHORTEST_SECRET = 8  # a shorter value is an ordinary word that must stay readable


@dataclass(frozen=True, kw_only=True, slots=True)
class OAuthSpec:
    """How people sign in at a server.

    Args:
        directory: where sign-ins are kept.
        client_id, client_secret: of a client that the server knows; "" = it is registered at the sign-in.
    """

    directory: Path
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSpec:
    """How one server is reached and what its tools may do.

    Args:
        name: letters, digits, `_` and `-`, at most 40.
        transport: `stdio` starts `command`; the others go to `url`.
        args, env, cwd: of the command; `env` is added to a small default environment.
        headers: sent with every request.
        start_timeout_s, call_timeout_s: longest start and longest call, seconds.
        allow, deny: names of its tools that are offered (none = all), and never.
        approval: whether calls ask, or that by tool name.
        trusted: its annotations are believed. sampling: it may use the model.
        sandbox: it runs in the branch's sandbox.
        oauth: how people sign in, None where another credential is sent or nobody can.

    Raises:
        ConfigError: the name or the pair of command and url is wrong; server and key are named.

    Example:
        >>> ServerSpec(name="files", transport="stdio", command="server-files").approval_of("read")
        'ask'
    """

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    start_timeout_s: float = 10.0
    call_timeout_s: float = 60.0
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    approval: Approval | Mapping[str, Approval] = "ask"
    trusted: bool = False
    sampling: bool = False
    sandbox: bool = False
    oauth: OAuthSpec | None = None

    def __post_init__(self) -> None:
        if not SERVER_NAME.fullmatch(self.name):
            raise ConfigError(
                f"mcp_servers.{self.name}: is not a server name (letters, digits, _ and -, at most 40)"
            )
        wanted, other = ("command", "url") if self.transport == "stdio" else ("url", "command")
        if not getattr(self, wanted) or getattr(self, other):
            raise ConfigError(f"mcp_servers.{self.name}.{wanted}: is needed with {self.transport}, alone")

    def offers(self, tool: str) -> bool:
        """Whether settings let this tool of the server be offered."""
        return tool not in self.deny and (not self.allow or tool in self.allow)

    def approval_of(self, tool: str) -> Approval:
        """Return whether calls of this tool ask."""
        if isinstance(self.approval, str):
            return self.approval
        return self.approval.get(tool, "ask")

    def asks_expressly(self, tool: str) -> bool:
        """Whether settings name this very tool as one that asks, whatever its class is."""
        return not isinstance(self.approval, str) and self.approval.get(tool) == "ask"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown, longest first: what the server could echo."""
        pairs = (*self.env.items(), *self.headers.items())
        values = {v for k, v in pairs if len(v) >= _SHORTEST_SECRET and _SECRET_NAME.search(k)}
        if self.oauth is not None and self.oauth.client_secret:
            values.add(self.oauth.client_secret)
        bare = {v.partition(" ")[2] for v in values if v.lower().startswith(("bearer ", "basic "))}
        return tuple(sorted(values | {v for v in bare if len(v) >= _SHORTEST_SECRET}, key=len, reverse=True))

    def masked(self, text: str) -> str:
        """Return `text` without this server's own secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "[redacted:secret]")
        return text
