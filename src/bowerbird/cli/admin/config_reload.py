"""`bowerbird config reload`: the running server loads its settings again (CF-13).

Here: finding the server, printing its reply. Not here: what takes effect (`app/reloading.py`).
"""

import os
from typing import TYPE_CHECKING, Any

from bowerbird.cli.terminal.exits import CONFIG, DONE, FAILED, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless

if TYPE_CHECKING:
    from bowerbird.config import Loaded

TIMEOUT_S = 60.0


def reload(shell: Shell, *, server: str | None, json: bool) -> int:
    """Ask a server to load its settings again; exits with 78 when they are invalid.

    Args:
        server: its address; None = `BOWERBIRD_URL`, else host and port of the settings `serve` reads here.

    Raises:
        CliExit: no server answers there, or it does not let us.
    """
    import httpx2

    from bowerbird.config import inspect_settings

    address = server or shell.anywhere.server or os.environ.get("BOWERBIRD_URL")
    if not address:
        loaded = inspect_settings(
            kind="serve", config_path=shell.anywhere.config, env_file=shell.anywhere.env_file
        )
        if loaded.errors:  # where the server listens cannot be known, and it would only refuse them too
            return _told(shell, {"errors": list(loaded.errors)}, json=json)
        address = _address_of(loaded)
    address = address.rstrip("/")
    token = os.environ.get("BOWERBIRD_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx2.post(
            f"{address}/api/config/reload", headers=headers, timeout=TIMEOUT_S, trust_env=False
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise CliExit(FAILED, f"no server answers at {harmless(address)}: {error}") from error
    if answer.status_code in (401, 403):
        raise CliExit(
            FAILED,
            "the server wants an admin's token in BOWERBIRD_TOKEN; its own user can send it SIGHUP instead",
        )
    try:
        data: dict[str, Any] = answer.json()
    except ValueError as error:
        raise CliExit(FAILED, f"{harmless(address)} is not a Bowerbird server") from error
    if answer.status_code != 200 and "errors" not in data:
        raise CliExit(FAILED, f"the server answered: {harmless(str(data.get('detail')))}")
    return _told(shell, data, json=json)


def _address_of(loaded: "Loaded") -> str:
    """Return where a server of these settings is reached from this machine."""
    section = loaded.settings.server
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(section.host, section.host)
    return f"http://[{host}]:{section.port}" if ":" in host else f"http://{host}:{section.port}"


def _told(shell: Shell, data: dict[str, Any], *, json: bool) -> int:
    if json:
        shell.json(data)
    else:
        _show(shell, data)
    return CONFIG if "errors" in data else DONE


def _show(shell: Shell, data: dict[str, Any]) -> None:
    terminal = shell.terminal
    for error in data.get("errors", ()):
        terminal.note(f"error: {harmless(error)}", "red")
    if "errors" in data:
        terminal.note("nothing was changed")
        return
    for warning in data["warnings"]:
        terminal.note(f"warning: {harmless(warning)}", "yellow")
    for key in data["applied"]:
        terminal.line(f"applies from the next turn: {harmless(key)}")
    for key in data["restart"]:
        terminal.line(f"needs a restart: {harmless(key)}", "yellow")
    if not data["applied"] and not data["restart"]:
        terminal.note("nothing has changed")
