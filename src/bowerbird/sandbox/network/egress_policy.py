"""Which names and addresses a sandbox may reach (SB-28): pure decisions.

Here: entries of the allow-list, names in one form, addresses that no name may lead to.
Not here: sockets (`egress_proxy`).
"""

import ipaddress
from collections.abc import Iterable

import msgspec

from bowerbird.core.errors import ConfigError

DEFAULT_PORTS = (80, 443)
_LONGEST_NAME = 253
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Entry(msgspec.Struct, frozen=True):
    """One entry: `host`, `*.host`, `host:port` or `*`; without a port 80 and 443."""

    host: str
    ports: tuple[int, ...] = DEFAULT_PORTS

    def admits(self, host: str, port: int) -> bool:
        """Whether a request for `host` (in normal form) and `port` is allowed by this entry."""
        if port not in self.ports:
            return False
        if self.host == "*":
            return literal(host) is None
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and literal(host) is None
        return host == self.host


class EgressPolicy(msgspec.Struct, frozen=True):
    """The allow-list of one session."""

    entries: tuple[Entry, ...]

    @classmethod
    def parse(cls, allow: Iterable[str], packages: Iterable[str] = ()) -> "EgressPolicy":
        """Read entries of `sandbox.network.allow`; the entry `packages` stands for the hosts in `packages`.

        Raises:
            ConfigError: an entry is not of the form `host`, `*.host`, `host:port`, `packages` or `*`.
        """
        entries: list[Entry] = []
        for text in allow:
            entries += [_entry(each) for each in (packages if text == "packages" else (text,))]
        return cls(tuple(entries))

    def admits(self, host: str, port: int) -> bool:
        """Whether `host` (in normal form) and `port` may be asked for."""
        return any(entry.admits(host, port) for entry in self.entries)


def _entry(text: str) -> Entry:
    host, ports = text.strip(), DEFAULT_PORTS
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and "]" not in port and (":" not in name or name.endswith("]")):
        if not 1 <= int(port) <= 65535:
            raise ConfigError(f"sandbox.network.allow: {text!r} has port {port}; use 1 to 65535")
        host, ports = name, (int(port),)
    star = "*." if host.startswith("*.") else ""
    normal = "*" if host == "*" else normal_name(host.removeprefix("*."))
    if normal is None:
        raise ConfigError(f"sandbox.network.allow: {text!r} is not a host, *.host, host:port, packages or *")
    return Entry(star + normal, ports)


def normal_name(host: str) -> str | None:
    """Return a host name in one form: lower case, IDNA, no trailing dot, addresses in short form.

    None for what no host name is: empty, NUL or control characters, spaces, over 253 characters.
    """
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    address = literal(bare)
    if address is not None:
        return str(address)
    name = bare.rstrip(".") if bare.endswith(".") else bare
    try:
        name = name.encode("idna").decode("ascii").lower() if not name.isascii() else name.lower()
    except UnicodeError:
        return None
    if not name or any(c not in _NAME_CHARACTERS for c in name):
        return None
    if len(name) > _LONGEST_NAME or any(not part or len(part) > 63 for part in name.split(".")):
        return None
    return None if _looks_like_address(name) else name


def _looks_like_address(name: str) -> bool:
    # Resolvers read `2130706433`, `0x7f.1` and `127.1` as addresses; a name never ends in a number.
    last = name.rsplit(".", 1)[-1]
    return last.isdigit() or (last.startswith("0x") and all(c in "0123456789abcdef" for c in last[2:]))


def literal(host: str) -> Address | None:
    """Return the address that `host` writes out, None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
