"""What a bridge allows, and whether a request keeps to it (AS-48 … AS-53).

Here: bridges as values, made from names once; the check of a request. Not here: HTTP, running a command.
"""

import hmac
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bowerbird.core.errors import BowerbirdError, ConfigError
from bowerbird.core.forms import decode
from bowerbird.core.processes.host_programs import find_program

SHORTEST_TOKEN = 16
PASSED_ON = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR")
NEVER_PASSED_ON = ("CLAUDE_CODE", "CLAUDECODE", "GATEWAY_TOKEN", "CC_BRIDGE_TOKEN")


class Refused(BowerbirdError):
    """A request is not granted; `status` is the HTTP status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Bridge:
    """One client's commands.

    Attributes:
        programs: real path of each allowed name, None where it is not installed.
        lines: the whole command lines that are allowed of a name; one that is not in it takes any arguments.
        directories: real paths in which commands may run.
        env: names of variables that its commands get besides `PASSED_ON`.
        max_timeout_s: longest run.
    """

    name: str
    token: str = field(repr=False)
    programs: Mapping[str, str | None]
    lines: Mapping[str, frozenset[tuple[str, ...]]] = field(
        default_factory=dict[str, frozenset[tuple[str, ...]]]
    )
    directories: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    max_timeout_s: float = 600.0


class Request(msgspec.Struct, frozen=True):
    """What a client asks for; `timeout` in seconds."""

    bridge: str
    cmd: tuple[str, ...]
    cwd: str | None = None
    timeout: float | None = None
    stdin: str | None = None
    stream: bool = False


def make_bridge(
    name: str,
    *,
    token: str,
    allowed_commands: Iterable[str],
    allowed_cwd: Iterable[str] = (),
    env: Iterable[str] = (),
    max_timeout_s: float = 600.0,
    path: str | None = None,
) -> Bridge:
    """Return a bridge whose commands and directories are looked up now.

    Args:
        allowed_commands: names found on `path`, or absolute paths, which are called by their last part; with
            words behind it, quoted as in a shell, exactly that command line, else any arguments.
        path: like the variable PATH; this process's when None.

    Raises:
        ConfigError: a token that is too short, a relative directory, a command with a slash in its name.
    """
    if len(token) < SHORTEST_TOKEN:
        raise ConfigError(f"gateway.bridges.{name}.token has fewer than {SHORTEST_TOKEN} characters")
    programs: dict[str, str | None] = {}
    lines: dict[str, list[tuple[str, ...]]] = {}
    for given in allowed_commands:
        command, *words = [given] if Path(given).is_file() else _words(name, given)
        called = command.rpartition("/")[2]
        lines.setdefault(called, []).append((called, *words))
        if "/" in command and not command.startswith("/"):
            raise ConfigError(
                f"gateway.bridges.{name}.allowed_commands: {command!r} is neither a name nor an absolute path"
            )
        found = find_program(command, path)
        programs[called] = None if found is None else os.path.realpath(found)
    directories: list[str] = []
    for directory in allowed_cwd:
        spelled = Path(directory).expanduser()
        if not spelled.is_absolute():
            raise ConfigError(f"gateway.bridges.{name}.allowed_cwd: {directory!r} is not absolute")
        directories.append(os.path.realpath(spelled))
    exact = {called: frozenset(some) for called, some in lines.items() if (called,) not in some}
    return Bridge(name, token, programs, exact, tuple(directories), tuple(env), max_timeout_s)


def _words(name: str, given: str) -> list[str]:
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise ConfigError(f"gateway.bridges.{name}.allowed_commands: {given!r}: {error}") from None
    if not words:
        raise ConfigError(f"gateway.bridges.{name}.allowed_commands: an entry is empty")
    return words


def check_bridges(bridges: Sequence[Bridge]) -> None:
    """Raise ConfigError where there is none, or two share a token, which would make each the other."""
    if not bridges:
        raise ConfigError("gateway.bridges is empty; add one with allowed_commands and a token")
    seen: dict[str, str] = {}
    for bridge in bridges:
        if (other := seen.setdefault(bridge.token, bridge.name)) != bridge.name:
            raise ConfigError(f"gateway.bridges: {other} and {bridge.name} have the same token")


def bridge_of(bridges: Iterable[Bridge], authorization: str) -> Bridge:
    """Return the bridge whose token an `Authorization` header carries; compares all in constant time.

    Raises:
        Refused: 401.
    """
    scheme, _, token = authorization.partition(" ")
    given = token.strip().encode("utf-8", "surrogateescape")
    found = [b for b in bridges if hmac.compare_digest(b.token.encode(), given)]
    if scheme.lower() != "bearer" or not found:
        raise Refused(401, "the token is missing or wrong; send Authorization: Bearer TOKEN")
    return found[0]


def read_request(content: bytes) -> Request:
    """Return what a body asks for; raises Refused (400) naming what is wrong with it."""
    try:
        request = decode(content, Request)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the body is not a request: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Refused(400, "the body is not JSON") from None
    if not request.bridge:
        raise Refused(400, "bridge is empty; it is the name of a bridge")
    if not request.cmd or not request.cmd[0]:
        raise Refused(400, "cmd is empty; it is a list of texts, the command first")
    if any("\0" in text for text in (*request.cmd, request.cwd or "")):
        raise Refused(400, "cmd and cwd may have no NUL character")
    return request


def program_of(bridge: Bridge, request: Request) -> str | None:
    """Return the path of the program to run, None where it is not installed; raises Refused (403)."""
    if request.bridge != bridge.name:
        raise Refused(403, f"this token is not that of bridge {request.bridge!r}")
    name = request.cmd[0]
    if "/" in name or name not in bridge.programs:
        allowed = ", ".join(sorted(bridge.programs)) or "none"
        raise Refused(403, f"bridge {bridge.name} does not allow {name!r}; allowed: {allowed}")
    lines = bridge.lines.get(name)
    if lines is not None and request.cmd not in lines:
        allowed = ", ".join(sorted(map(shlex.join, lines)))
        raise Refused(403, f"bridge {bridge.name} does not allow these arguments; allowed: {allowed}")
    return bridge.programs[name]


def timeout_of(bridge: Bridge, request: Request, default_s: float) -> float:
    """Return how long a command may run, in seconds.

    Example:
        >>> bridge = Bridge("x", "t", {}, max_timeout_s=60)
        >>> [timeout_of(bridge, Request("x", ("a",), timeout=t), 30) for t in (None, 0, -1, 5, 900)]
        [30, 30, 30, 5, 60]
    """
    wanted = request.timeout if request.timeout is not None and request.timeout > 0 else default_s
    return min(wanted, bridge.max_timeout_s)


def environment_of(bridge: Bridge, ours: Mapping[str, str], tokens: Iterable[str]) -> dict[str, str]:
    """Return the environment of a bridge's commands (AS-51): never a token, whatever it is called."""
    secret = set(tokens)
    return {
        name: value
        for name, value in ours.items()
        if (name in PASSED_ON or name.startswith("LC_") or name in bridge.env)
        and name not in NEVER_PASSED_ON
        and value not in secret
    }


def is_within(path: str, directories: Iterable[str]) -> bool:
    """Whether a real path is one of `directories`, real paths too, or lies below one."""
    return any(path == top or path.startswith(top.rstrip("/") + "/") for top in directories)
