"""`bowerbird mcp login|logout NAME`: a person signs in at an MCP server (PT-17).

Here: what is said and opened. Not here: the sign-in (`protocols/mcp_client/oauth.py`).
"""

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.cli.terminal.exits import DONE, FAILED, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import harmless
from bowerbird.core.extras import require
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.protocols.mcp_client import ServerSpec
    from bowerbird.protocols.mcp_client.logins import Logins


def login(shell: Shell, *, name: str, browser: bool, port: int) -> int:
    """Open the server's sign-in in a browser and keep what comes of it."""
    require("mcp", "Sign-ins at MCP servers")
    from bowerbird.protocols.mcp_client.oauth import LoginFailed, sign_in

    spec = _spec(shell, name)

    async def show(address: str) -> None:
        shell.terminal.note(f"sign in here: {harmless(address)}")
        if browser:
            await to_thread(webbrowser.open, address)

    try:
        count = run_async(lambda: sign_in(spec, show, port=port))
    except LoginFailed as error:
        raise CliExit(FAILED, f"{name}: {harmless(spec.masked(str(error)))}") from None
    except OSError as error:
        raise CliExit(FAILED, f"cannot listen on port {port}: {error.strerror or error}") from None
    if not _logins_of(spec).has(name):
        shell.terminal.note(f"{name} asks for no sign-in; it has {count} tools")
        return DONE
    shell.terminal.note(f"signed in at {name}; it has {count} tools")
    return DONE


def logout(shell: Shell, *, name: str) -> int:
    """Forget a sign-in; the server may go on knowing it."""
    if not _logins_of(_spec(shell, name)).remove(name):
        raise CliExit(FAILED, f"nobody is signed in at {name}")
    shell.terminal.note(f"the sign-in at {name} is forgotten")
    return DONE


def _spec(shell: Shell, name: str) -> "ServerSpec":
    from bowerbird.app.features.mcp import logins_in, server_spec

    loaded = shell.load(Path.cwd())
    servers = loaded.settings.mcp_servers
    if name not in servers:
        known = ", ".join(sorted(servers)) or "none is configured"
        raise CliExit(USAGE, f"no MCP server is named {name!r} (there are: {known})")
    spec = server_spec(name, servers[name], logins_in(loaded.settings))
    if spec.oauth is None:
        raise CliExit(
            USAGE, f"{name} is not a server that people sign in at: that needs a url without a token"
        )
    return spec


def _logins_of(spec: "ServerSpec") -> "Logins":
    from bowerbird.protocols.mcp_client.logins import Logins

    assert spec.oauth is not None, "_spec has looked"
    return Logins(spec.oauth.directory)
