"""Which client a command gets, opened and closed around it.

Here: that choice. Not here: what either does.
"""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bowerbird.cli.client.protocol import Client, Preferences
from bowerbird.cli.terminal.exits import USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell, directory_of
from bowerbird.cli.terminal.shell import run as run_async

if TYPE_CHECKING:
    from bowerbird.config import Loaded, Settings

T = TypeVar("T")


def names_server(shell: Shell) -> bool:
    """Whether the command works with a server."""
    return bool(shell.anywhere.server or os.environ.get("BOWERBIRD_URL"))


LOCAL = frozenset(
    {
        "admin.agents", "admin.config", "admin.config_reload", "admin.doctor", "admin.serve", "admin.models",
        "admin.mcp.servers", "admin.mcp.login", "admin.mcp.serve",
        "admin.sandbox", "admin.state", "admin.token", "admin.backup", "admin.disk",
        "admin.gateway", "admin.init", "admin.service", "completing",
    }
)  # fmt: skip
"""Modules about this machine: BOWERBIRD_URL, which is said once for a shell, does not concern them."""
SERVER_COMMANDS = frozenset(
    {
        "agents list", "agents memory", "agents probe", "agents run", "agents runs",
        "approve", "attempt", "cancel", "comment", "config reload", "delete", "deny", "diff", "discard",
        "export", "fork", "land", "landings", "landings fix", "memory log", "memory restore", "rename",
        "resume", "run", "send", "sessions", "show", "subagents discard", "subagents list", "subagents merge",
        "subagents show", "tail", "tasks add", "tasks cancel", "tasks list", "tasks pause", "tasks resume",
        "tasks run-now", "tasks runs", "tools", "undo", "usage",
    }
)  # fmt: skip
"""What works with a server, for the manual."""
LOCAL_COMMANDS = frozenset({("admin.lists", "skills")})


def require_place(shell: Shell, module: str, function: str) -> None:
    """Refuse a command about this machine when the command line names a server.

    Raises:
        CliExit: code 2.
    """
    if shell.anywhere.server is None or module == "admin.config_reload":
        return
    if module in LOCAL or (module, function) in LOCAL_COMMANDS:
        raise CliExit(USAGE, "this command is about this machine, not about a server; leave --server out")


def with_client(shell: Shell, workspace: str | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a client that drives no turns, of the command's directory or of a server.

    Raises:
        CliExit: a directory of this machine is named for a server.
    """
    if names_server(shell):
        if workspace is not None:
            raise CliExit(USAGE, "--workspace names a directory of this machine; leave it out with --server")

        async def there() -> T:
            async with server_client(shell) as client:
                return await work(client)

        return run_async(there)
    directory = directory_of(workspace)
    loaded = shell.load(directory)

    async def here() -> T:
        async with local_client(loaded, directory) as client:
            return await work(client)

    return run_async(here)


@asynccontextmanager
async def local_client(
    loaded: "Loaded", directory: Path, *, model: str = "", attended: bool = False
) -> AsyncGenerator[Client]:
    """Open this machine's records.

    Args:
        model: what sessions without a model of their own run on. attended: a person answers questions.
    """
    from bowerbird.app import open_application
    from bowerbird.cli.client.local import LocalClient

    async with open_application(loaded, workspace=directory, model=model, attended=attended) as application:
        yield LocalClient(application, directory, model)


@asynccontextmanager
async def server_client(shell: Shell, *, talks: bool = False) -> AsyncGenerator[Client]:
    """Open requests to the server that is named.

    Args:
        talks: sessions are made and turns watched: what the person prefers (`cli.*`) holds there, too, but
            for preset and model, which name what this machine has.
    """
    from aiohttp import ClientSession, ClientTimeout

    from bowerbird.cli.client.http import TIMEOUT_S, Address, Requests
    from bowerbird.cli.client.server import ServerClient

    address = Address.of(shell)
    async with ClientSession(
        headers=address.headers, timeout=ClientTimeout(total=TIMEOUT_S), trust_env=False
    ) as http:
        requests = Requests(address, http)
        if not talks:
            yield ServerClient(requests, Preferences())
            return
        settings = shell.load(silent=True).settings
        yield ServerClient(requests, _preferences(settings), settings.cli)


def _preferences(settings: "Settings") -> Preferences:
    liked, data = settings.cli, Path(settings.agent.data_dir)
    history = data / "cli_history" if data.is_dir() else None  # no directory is made for lines alone
    return Preferences(liked.theme, liked.vi_mode, liked.timeout, history, liked.notify)
