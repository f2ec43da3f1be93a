"""`bowerbird mcp serve`: an MCP server on standard input and output (PT-8).

Here: its start and its end. Not here: the server (`protocols/mcp_server`), `mcp list`, `add` … (`mcp.py`).
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.cli.terminal.exits import DONE
from bowerbird.cli.terminal.shell import Shell, directory_of
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.core.extras import require

if TYPE_CHECKING:
    from bowerbird.config import Loaded


def serve(shell: Shell, *, workspace: str | None) -> int:
    """Serve until the client's input ends, or a signal comes."""
    require("mcp", "Clients of MCP")
    fds = claim()  # first of all: what anybody prints from now on is no protocol
    try:
        directory = directory_of(workspace)
        loaded = shell.load(directory)
        run_async(lambda: _serve(loaded, directory, fds))
    finally:
        os.close(fds[1])  # the client sees the end
    return DONE


def claim() -> tuple[int, int]:
    """Take standard input and output for the protocol; who prints from now on prints to standard error."""
    taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return taken


async def _serve(loaded: "Loaded", directory: Path, fds: tuple[int, int]) -> None:
    from bowerbird import __version__
    from bowerbird.app import open_application
    from bowerbird.app.features.mcp_server import serve_stdio
    from bowerbird.app.logs import log_to_stderr

    log = loaded.settings.logging
    log_to_stderr(log.level, log.format, frozenset(loaded.settings.secrets()))
    async with open_application(loaded, workspace=directory, attended=True) as application:
        await serve_stdio(application, directory, __version__, fds)
