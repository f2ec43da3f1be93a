"""Which client a command gets, opened and closed around it.

Here: that choice, and a client that opens while a person already types. Not here: what either does.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bowerbird.cli.client.preferences import Preferences
from bowerbird.cli.client.protocol import Client
from bowerbird.cli.terminal.collector import started
from bowerbird.cli.terminal.exits import USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell, directory_of
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import harmless
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.cli.client.http import Address
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
        "admin.gateway", "admin.init", "admin.service", "completing", "run.evaluate",
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

        from bowerbird.cli.client.http import Address

        address = Address.of(shell)

        async def there() -> T:
            async with _server_client(address, Preferences()) as client:
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
    # Half a second of imports, during which the loop goes on: a prompt may be on the screen.
    await to_thread(import_module, "bowerbird.app.application")
    from bowerbird.app import open_application
    from bowerbird.cli.client.local import LocalClient

    async with open_application(loaded, workspace=directory, model=model, attended=attended) as application:
        started()
        yield LocalClient(application, directory, model)


@asynccontextmanager
async def _server_client(
    address: "Address", preferences: Preferences, settings: "Settings | None" = None
) -> AsyncGenerator[Client]:
    """Open requests to a server.

    Args:
        settings: where sessions are made and turns watched: what the person prefers (`cli.*`) holds there,
            too, but for preset and model, which name what this machine has.
    """
    from aiohttp import ClientSession, ClientTimeout

    from bowerbird.cli.client.http import TIMEOUT_S, Requests
    from bowerbird.cli.client.server import ServerClient

    async with ClientSession(
        headers=address.headers, timeout=ClientTimeout(total=TIMEOUT_S), trust_env=False
    ) as http:
        yield ServerClient(Requests(address, http), preferences, settings and settings.cli)


def local_opening(loaded: "Loaded", directory: Path, *, model: str, attended: bool) -> "Opening":
    """Return this machine's records, to be opened; its turns run here.

    Raises:
        StoreError: there can be no data directory.
    """
    from bowerbird.app.own import make_data_dir

    data_dir = make_data_dir(loaded.settings.agent.data_dir)
    return Opening(
        lambda: local_client(loaded, directory, model=model, attended=attended),
        where=str(directory),
        model=model,
        preferences=Preferences.of(loaded.settings, data_dir),
    )


def server_opening(shell: Shell) -> "Opening":
    """Return the server that is named, to be opened: sessions are made and turns watched there."""
    from bowerbird.cli.client.http import Address

    address, settings = Address.of(shell), shell.load(silent=True).settings
    liked = Preferences.of(settings, Path(settings.agent.data_dir))
    return Opening(
        lambda: _server_client(address, liked, settings), where=harmless(address.url), preferences=liked
    )


class Opening:
    """A client that opens when it is first asked for, while a person may already type.

    Args:
        open_it: opens the client. where, model, preferences: what it will have; see `Client`.

    Example:
        async with Opening(lambda: local_client(loaded, directory), where=where, model=model) as opening:
            client = await opening.client()
    """

    def __init__(
        self,
        open_it: Callable[[], AbstractAsyncContextManager[Client]],
        *,
        where: str,
        model: str = "",
        preferences: Preferences,
    ) -> None:
        self.where = where
        self.model = model
        self.preferences = preferences
        self._open = open_it
        self._holding: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Client] | None = None
        self._over = asyncio.Event()

    async def client(self) -> Client:
        """Return the client, opened now if it is not yet; raises what keeps it from opening."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            # One task opens and closes it, as a context demands.
            self._holding = asyncio.create_task(self._hold(self._ready), name="client")
        return await asyncio.shield(self._ready)

    def refuse(self) -> None:
        """Raise what kept the client from opening, if something did."""
        if self._ready is not None and self._ready.done() and not self._ready.cancelled():
            self._ready.result()

    async def _hold(self, ready: "asyncio.Future[Client]") -> None:
        try:
            async with self._open() as client:
                ready.set_result(client)
                await self._over.wait()
        except BaseException as error:  # whatever it is, it belongs to whoever waits for the client
            if ready.done():
                raise
            if isinstance(error, asyncio.CancelledError):
                ready.cancel()
                raise
            ready.set_exception(error)

    async def __aenter__(self) -> "Opening":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the client; one that is still being opened is not waited for."""
        if self._holding is None or self._ready is None:
            return
        self._over.set()
        if not self._ready.done():
            self._holding.cancel()
        await asyncio.shield(asyncio.wait([self._holding]))
        if not self._holding.cancelled():
            self._holding.result()
