"""What must hold between keys, and which feature owns a key (CF-5, sections 3 and 4).

Here, pure: findings about a whole `Settings` value. Not here: ranges of single keys (the
`Section` classes), anything that needs a file, socket or database.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import PurePath

from bowerbird.config.database import ASYNC_DRIVERS, driver_of
from bowerbird.config.keys import AGENT_NAMES, Path, nearest
from bowerbird.config.layers import Finding
from bowerbird.config.sections.agent import DEFAULT_MODEL, MODEL_PROVIDERS
from bowerbird.config.tree import Settings
from bowerbird.core.model_presets import PRESETS

_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SECRET_PATTERNS = ("*KEY*", "*TOKEN*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*")
# Keys that may stay null without an error: without them the feature says so when it is used.
_SOFT = (("provider", "api_key"), ("web", "brave_api_key"))


def owner_enabled(path: Path, settings: Settings) -> bool:
    """Whether the feature that owns `path` is on, so that a missing value is an error.

    Example:
        >>> owner_enabled(("model_router", "default_tier"), Settings())
        False
    """
    head, last = (path[0], path[-1]) if path else ("", "")
    if path in _SOFT or (head == "providers" and last == "api_key"):
        return False
    switch = {
        "model_router": settings.model_router.enabled,
        "gateway": settings.gateway.enabled,
        "channels": settings.channels.telegram.enabled,
        "transcription": settings.transcription.enabled,
    }
    server = settings.mcp_servers.get(path[1]) if head == "mcp_servers" and len(path) > 1 else None
    return server.enabled if server else switch.get(head, True)


def check(settings: Settings, *, command: bool = False) -> list[Finding]:
    """Return what is wrong or noteworthy between keys of `settings`.

    Args:
        settings: paths in it are absolute.
        command: no server is started, so what only matters to one is left out.
    """
    rules = (
        _agent,
        _provider,
        _agents,
        _router,
        _mcp,
        _transcription,
        _gateway,
        _storage,
        _sandbox,
    )
    found = [finding for rule in rules for finding in rule(settings)]
    return found if command else [*found, *_server(settings), *_channels(settings)]


def _error(path: str, text: str) -> Finding:
    return Finding("error", tuple(path.split(".")), text)


def _warning(path: str, text: str) -> Finding:
    return Finding("warning", tuple(path.split(".")), text)


def _inside(inner: str, outer: str) -> bool:
    return PurePath(inner).is_relative_to(PurePath(outer))


def _agent(settings: Settings) -> Iterator[Finding]:
    agent = settings.agent
    if agent.llm_retry_max_delay < agent.llm_retry_base_delay:
        yield _error(
            "agent.llm_retry_max_delay",
            f"must not be less than llm_retry_base_delay (≥ {agent.llm_retry_base_delay:g}, ≤ 600 s; "
            f"got {agent.llm_retry_max_delay:g})",
        )
    roots = {"agent.workspace": agent.workspace}
    roots |= {f"workspace.registered.{name}": root for name, root in settings.workspace.registered.items()}
    for name, root in roots.items():
        if _inside(agent.data_dir, root) and PurePath(root).is_absolute():
            yield _error(
                "agent.data_dir",
                f"lies inside {name} ({root}): the agent must not write its own records; choose another",
            )


def _provider(settings: Settings) -> Iterator[Finding]:
    name = settings.provider.name
    has_host = settings.provider.base_url or settings.providers.get(name).base_url
    if name not in MODEL_PROVIDERS and not has_host:
        yield _error(
            "provider.name",
            f"is unknown and has no base_url ({', '.join(MODEL_PROVIDERS)}; got {name!r})",
        )
    if name not in ("anthropic", "local") and settings.provider.model == DEFAULT_MODEL and not has_host:
        yield _warning(
            "provider.model", f"is still {DEFAULT_MODEL} although provider.name is {name}; set MODEL"
        )


def _agents(settings: Settings) -> Iterator[Finding]:
    """Names under `providers` that are neither a model provider's nor an agent's are slips (PR-5)."""
    elsewhere = {settings.provider.name, *(tier.name for tier in settings.model_router.tiers.values())}
    known = sorted({*AGENT_NAMES, *PRESETS, *elsewhere})
    for name, entry in settings.providers.entries.items():
        if name not in known and not entry.base_url and not entry.command:
            yield _error(
                f"providers.{name}",
                f"is no provider and no agent{_meant(name, known)}; "
                "one of your own needs a base_url, or a command",
            )
    entries = settings.providers.entries.items()
    own = [name for name, entry in entries if entry.command or (entry.base_url and entry.model)]
    for name, entry in entries:
        for server in entry.mcp_servers:
            if server not in settings.mcp_servers:
                near = _meant(server, [*settings.mcp_servers])
                yield _error(
                    f"providers.{name}.mcp_servers", f"names {server!r}, which is no MCP server{near}"
                )
    for name in settings.providers.enabled or ():
        if name not in AGENT_NAMES and name not in own:
            yield _error(
                "providers.enabled", f"names {name!r}, which is no agent{_meant(name, [*AGENT_NAMES, *own])}"
            )


def _meant(name: str, known: list[str]) -> str:
    near = nearest(name, known)
    return f" (did you mean {near}?)" if near else ""


def _router(settings: Settings) -> Iterator[Finding]:
    router = settings.model_router
    if router.enabled and not router.tiers:
        yield _error("model_router.tiers", "must hold at least one tier when model_router.enabled is true")
    elif router.enabled and router.default_tier not in router.tiers:
        yield _error(
            "model_router.default_tier",
            f"names no tier ({', '.join(sorted(router.tiers))}; got {router.default_tier!r})",
        )


def _gateway(settings: Settings) -> Iterator[Finding]:
    section = settings.gateway
    address = section.address
    if not re.match(r"https?://[^\s/]|unix:/", address):
        yield _error("gateway.url", "must be an http(s) address or unix:/path")
    if not section.enabled:
        return
    if not section.bridges:
        yield _error("gateway.bridges", "is empty although gateway.enabled is true; add a bridge")
    for name in section.bridges:
        if section.for_agents(name) and not section.token_of(name):
            yield _error(f"gateway.bridges.{name}.token", "is missing; it is the token of that bridge")


def _transcription(settings: Settings) -> Iterator[Finding]:
    section = settings.transcription
    if section.enabled and not section.api_key:
        yield _error("transcription.api_key", "is missing although transcription.enabled is true")


def _mcp(settings: Settings) -> Iterator[Finding]:
    for name, server in settings.mcp_servers.items():
        where = ("mcp_servers", name)
        if not _SERVER_NAME.fullmatch(name):
            yield Finding("error", where, "is not a server name (letters, digits, _ and -, at most 40)")
        if bool(server.command) == bool(server.url):
            got = "both" if server.command else "neither"
            yield Finding("error", where, f"needs one of command and url (got {got})")
        elif server.transport is not None and (server.transport == "stdio") != bool(server.command):
            wanted = "command" if server.transport == "stdio" else "url"
            yield Finding("error", (*where, wanted), f"is missing; transport {server.transport} needs it")
        if server.mode == "remote":
            why = "the model's provider would call the server, past permission and the effect ledger"
            yield Finding("error", (*where, "mode"), f"remote is refused: {why} (allowed: client)")
        if server.authorization_token and any(name.lower() == "authorization" for name in server.headers):
            yield Finding("error", (*where, "authorization_token"), "is given twice: also in headers")
        if server.transport == "sse":
            yield Finding(
                "warning", (*where, "transport"), "sse is old; use streamable_http where the server has it"
            )


def _channels(settings: Settings) -> Iterator[Finding]:
    telegram = settings.channels.telegram
    if telegram.enabled and not telegram.token:
        yield _error("channels.telegram.token", "is missing, and telegram is enabled; @BotFather gives one")
    if telegram.enabled and not telegram.allowed_users:
        yield _warning(
            "channels.telegram.allowed_users",
            "is empty: nobody may write but whom `bowerbird channels pair telegram` admits",
        )


def _storage(settings: Settings) -> Iterator[Finding]:
    driver = driver_of(settings.store.url.reveal())
    if driver not in ASYNC_DRIVERS:
        yield _error(
            "store.url", f"is not a database that can be used ({', '.join(ASYNC_DRIVERS)}; got {driver!r})"
        )
    dispatch = settings.dispatch
    if dispatch.heartbeat_s > dispatch.lease_s / 3:
        yield _error(
            "dispatch.heartbeat_s",
            f"must be at most a third of lease_s (≤ {dispatch.lease_s / 3:g}; got {dispatch.heartbeat_s:g})",
        )


def _sandbox(settings: Settings) -> Iterator[Finding]:
    sandbox = settings.sandbox
    for name in sandbox.env:
        looks_secret = any(fnmatchcase(name.upper(), pattern) for pattern in _SECRET_PATTERNS)
        if looks_secret and name not in sandbox.env_secrets:
            yield Finding(
                "error",
                ("sandbox", "env", name),
                "looks like a secret; list its name in sandbox.env_secrets if it must go in",
            )
    for path in sandbox.read_only:
        if not PurePath(path).is_absolute():
            yield _error("sandbox.read_only", f"must hold absolute paths (got {path!r})")


def _server(settings: Settings) -> Iterator[Finding]:
    server = settings.server
    if (
        server.auth == "none"
        and not server.google_client_id
        and not server.insecure
        and not _loopback(server.host)
    ):
        yield _error(
            "server.host",
            f"{server.host} is reachable by others while server.auth is none: "
            "set server.auth to token or oidc, or server.insecure: true",
        )
    if server.auth == "oidc" and not server.google_client_id:
        yield _error("server.google_client_id", "is needed when server.auth is oidc (GOOGLE_CLIENT_ID)")


def _loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
