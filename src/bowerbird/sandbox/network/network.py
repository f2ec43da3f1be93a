"""The network of one sandbox: closed, or the allow-list of a person behind a proxy (SB-27 … SB-30).

Here: which mode a sandbox is in, its proxy's life, what a session has moved so far. Not here: who may ask for
what (`egress_policy`), the proxy (`egress_proxy`), the way from inside to the proxy (`inside/bridge`).
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from bowerbird.core.events import Egress
from bowerbird.sandbox.inside.bridge import PORT, PROXY_SOCKET
from bowerbird.sandbox.listening import listen
from bowerbird.sandbox.network.egress_policy import EgressPolicy
from bowerbird.sandbox.network.resolving import Resolver, system_resolver

if TYPE_CHECKING:
    from bowerbird.sandbox.network.egress_proxy import EgressProxy

NetworkMode = Literal["closed", "allowlist"]
PROXY_URL = f"http://127.0.0.1:{PORT}"
_SOCKET = PROXY_SOCKET


class NetworkRules(msgspec.Struct, frozen=True):
    """What a person allows.

    Args:
        allow: entries of the allow-list; empty = closed.
        packages: hosts that the entry `packages` stands for.
        max_bytes: transfer limit of one session.
        private_hosts: names that may lead to private addresses.
    """

    allow: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    max_bytes: int = 1 << 30
    private_hosts: frozenset[str] = frozenset()


class BranchNetwork:
    """The network of one branch's sandbox; belongs to one event loop.

    Attributes:
        directory: host directory that the sandbox shows as the proxy's, once there is one.

    Args:
        rules: what applies from the first command on.
        on_egress: hears of every request.
        resolve: finds addresses of hosts.
    """

    def __init__(
        self,
        rules: NetworkRules,
        on_egress: Callable[[Egress], None],
        *,
        resolve: Resolver = system_resolver,
    ) -> None:
        self.directory: Path | None = None
        self._rules = rules
        self._policy = EgressPolicy.parse(rules.allow, rules.packages)
        self._on_egress = on_egress
        self._resolve = resolve
        self._proxy: EgressProxy | None = None
        self._moved = 0
        self._opening = asyncio.Lock()

    @property
    def mode(self) -> NetworkMode:
        """`allowlist` when anything is allowed, else `closed`."""
        return "allowlist" if self._rules.allow else "closed"

    @property
    def allow(self) -> tuple[str, ...]:
        """The entries in force."""
        return self._rules.allow

    @property
    def proxy_url(self) -> str | None:
        """What a command's proxy variables say, None while the network is closed."""
        return PROXY_URL if self._rules.allow else None

    @property
    def bytes_moved(self) -> int:
        """What this session transferred so far, both directions together."""
        return self._moved + (self._proxy.bytes_moved if self._proxy is not None else 0)

    async def change(self, rules: NetworkRules) -> None:
        """Set other rules; only a person does. They hold at once, for running commands too.

        Raises:
            ConfigError: an entry cannot be read; nothing changed.
        """
        policy = EgressPolicy.parse(rules.allow, rules.packages)
        narrower = set(rules.allow) < set(self._rules.allow)
        self._rules, self._policy = rules, policy
        if narrower or not rules.allow:
            await self.close()  # open connections may lead to hosts that are no longer allowed
        elif self._proxy is not None:
            self._proxy.policy = policy

    async def open(self, directory: Path) -> bool:
        """Start the proxy when the mode needs one; return whether there is one.

        Args:
            directory: of the sandbox that runs now; for another one than before, the proxy starts again.
        """
        if not self._rules.allow:
            return False
        from bowerbird.sandbox.network.egress_proxy import EgressProxy, ProxyLimits

        if directory != self.directory:
            await self.close()
        async with self._opening:
            if self._proxy is None:
                self.directory = directory
                limits = ProxyLimits(total_bytes=max(0, self._rules.max_bytes - self._moved))
                proxy = EgressProxy(
                    self._policy,
                    self._on_egress,
                    limits=limits,
                    private_hosts=self._rules.private_hosts,
                    resolve=self._resolve,
                )
                await proxy.start(listen(directory, _SOCKET))
                self._proxy = proxy
        return True

    async def close(self) -> None:
        """Take the proxy away and cut its connections; the next `open` makes another."""
        async with self._opening:
            proxy, self._proxy = self._proxy, None
            if proxy is not None:
                self._moved += proxy.bytes_moved
                await proxy.close()
                if self.directory is not None:
                    (self.directory / _SOCKET).unlink(missing_ok=True)


def entries_of(words: str) -> tuple[str, ...]:
    """Return the allow-list that a person wrote in one word: hosts with commas between, or `registries`.

    Raises:
        ConfigError: an entry cannot be read.

    Example:
        >>> entries_of("registries,api.example.com:443")
        ('packages', 'api.example.com:443')
    """
    named = tuple(word.strip() for word in words.split(",") if word.strip())
    entries = tuple("packages" if word == "registries" else word for word in named)
    EgressPolicy.parse(entries)
    return entries


def rules_of(
    allow: Sequence[str], *, packages: Sequence[str], max_bytes: int, private_hosts: frozenset[str]
) -> NetworkRules:
    """Return rules from lists as settings have them; empty entries are left out."""
    kept = tuple(entry.strip() for entry in allow if entry.strip())
    return NetworkRules(kept, tuple(packages), max_bytes, private_hosts)
