"""`bowerbird serve`: the HTTP and WebSocket server in the foreground (UI-46).

Here: its settings, what it says at the start, its exit codes. Not here: the server (`app/serving.py`).
"""

import sys
from typing import TYPE_CHECKING, Any

from bowerbird.cli.terminal.collector import started
from bowerbird.cli.terminal.exits import DONE, FAILED, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import size
from bowerbird.core.errors import BowerbirdError

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.server.common.context import ServerContext

THREADS_TAKE_TURNS_S = 0.001
"""How long a thread that computes lets the event loop wait, each time; Python's own number is 0.005.

Beside two that compare 100,000 files the loop stood still for 40 to 55 ms, with this for 11 to 13.
"""


LEAST_ADDRESS_SPACE = 1 << 30
"""Bytes; a server that rests takes 0.7 of that, threads included. With less it is aborted amid its work."""


def serve(shell: Shell, *, host: str | None, port: int | None, workspace: str | None) -> int:
    """Serve until a signal ends it; the settings are those of `config check`.

    Raises:
        ConfigError: exit code 78, say an open address without `server.auth`.
        CliExit: this shell leaves a program too little address space.
    """
    _hold_to_room()
    flags = {"server.host": host, "server.port": port, "agent.workspace": workspace}
    loaded = _load(shell, flags)
    from bowerbird import __version__
    from bowerbird.app.logs import log_to_stderr
    from bowerbird.app.serving import run
    from bowerbird.app.serving import serve as serve_settings

    def log(loaded: "Loaded") -> None:
        section = loaded.settings.logging
        log_to_stderr(section.level, section.format, frozenset(loaded.settings.secrets()))

    log(loaded)

    def ready(address: str, context: "ServerContext") -> None:
        shell.terminal.note(
            f"bowerbird {context.version} serves {address} (workspace {context.settings.workspace})"
        )
        sys.stderr.flush()
        started()

    sys.setswitchinterval(THREADS_TAKE_TURNS_S)
    try:
        run(
            lambda: serve_settings(
                loaded,
                __version__,
                ready,
                load=lambda: _load(shell, flags),
                load_from=lambda file: _load(shell, flags, str(file)),
                on_loaded=log,
            )
        )
    except OSError as error:
        if error.filename is not None or isinstance(error, BowerbirdError):  # of a file, not of an address
            raise
        where = f"{loaded.settings.server.host}:{loaded.settings.server.port}"
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise CliExit(
            FAILED, f"cannot listen on {where}: {why}; choose another with --port or --host"
        ) from error
    except KeyboardInterrupt:
        return DONE
    return DONE


def _load(shell: Shell, flags: dict[str, Any], instead: str | None = None) -> "Loaded":
    """Load the settings, those of a file in the place of the settings file where one is named."""
    from bowerbird.config import load_settings

    loaded = load_settings(
        {**shell.anywhere.flags(), **{key: value for key, value in flags.items() if value is not None}},
        kind="serve",
        config_path=instead or shell.anywhere.config,
        env_file=shell.anywhere.env_file,
    )
    for warning in loaded.warnings:
        shell.terminal.note(f"warning: {warning}", "yellow")
    return loaded


def _hold_to_room() -> None:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= LEAST_ADDRESS_SPACE:
        return
    raise CliExit(
        FAILED,
        f"a server needs {size(LEAST_ADDRESS_SPACE)} of address space, and programs of this shell may have "
        f"{size(limit)} (ulimit -v); lift that with `ulimit -v unlimited`, and try again",
    )
