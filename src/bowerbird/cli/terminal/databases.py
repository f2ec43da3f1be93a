"""Which database a command reads where a server has its own (D-30).

Here: finding out that they differ, and saying so. Not here: where settings come from (`config`), opening.

`admin/serve` also reads DATABASE_URL, a `.env` and the `config.yaml` of its directory; other commands leave
them to the project. Commands about the server (`admin/token`, `admin/state`, `backup`) read what the server
reads.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.errors import NotFound

if TYPE_CHECKING:
    from bowerbird.cli.terminal.command_line import Anywhere
    from bowerbird.cli.terminal.terminal import Terminal
    from bowerbird.config import Loaded

_SIGNS = ("DATABASE_URL", "BOWERBIRD_CONFIG")


def of_server(anywhere: "Anywhere", terminal: "Terminal", others: "Loaded", *, begin: bool) -> "Loaded":
    """Return settings as the server of this directory reads them; it is said when other commands read others.

    Args:
        others: as every command reads them.
        begin: also where no server was set up yet; otherwise the settings of every command hold there.

    Raises:
        ConfigError: the settings are wrong.
    """
    if not begin and not _may_differ():
        return others
    served = _served(anywhere)
    if served.database_url == others.database_url:
        return others
    if not served.errors and not begin and not is_set_up(served):
        return others
    if served.errors:
        from bowerbird.config import load_settings

        load_settings(  # raises, with every reason
            anywhere.flags(), kind="serve", config_path=anywhere.config, env_file=anywhere.env_file
        )
    terminal.note(
        f"the database of the server of this directory: {shown(served)} ({_why(served)});"
        f" commands that are not about the server read {shown(others)}"
    )
    return served


def say_other(anywhere: "Anywhere", terminal: "Terminal", loaded: "Loaded") -> None:
    """Say which database a command reads when the server of this directory reads another."""
    if not _may_differ():
        return
    served = _served(anywhere)
    if served.errors or served.database_url == loaded.database_url or not is_set_up(served):
        return
    terminal.note(
        f"this command reads {shown(loaded)}; `bowerbird serve` in this directory reads {shown(served)}"
        f" ({_why(served)}): --server URL asks the server, --config FILE reads its settings",
        "yellow",
    )


def require_database(loaded: "Loaded") -> None:
    """Refuse to make the database that was to be read.

    Raises:
        NotFound: it does not exist.
    """
    from bowerbird.config.database import database_file

    file = database_file(loaded.database_url)
    if file is not None and not file.exists():
        raise NotFound(f"there is nothing to read: {file} does not exist")


def is_set_up(served: "Loaded") -> bool:
    """Whether somebody said where the server's data are, or they are there."""
    from bowerbird.config.database import database_file

    if any(served.origin(key).kind != "default" for key in ("store.url", "agent.data_dir")):
        return True
    file = database_file(served.database_url)
    return file is not None and file.exists()


def shown(loaded: "Loaded") -> str:
    """Return a database as people know it, without its password.

    Example:
        >>> from bowerbird.config import load_settings
        >>> shown(load_settings({"agent.data_dir": "/var/bower"}, env={}, cwd="/", home="/nonexistent"))
        '/var/bower/agent.db'
    """
    from bowerbird.config.database import database_file
    from bowerbird.config.fields import mask_url

    file = database_file(loaded.database_url)
    return str(file) if file is not None else mask_url(loaded.database_url).replace("+asyncpg", "")


def _why(served: "Loaded") -> str:
    origin = served.origin("store.url")
    if origin.kind == "default":
        origin = served.origin("agent.data_dir")
    return str(origin) if origin.kind != "default" else "its default"


def _may_differ() -> bool:
    """Whether anything is here that only a server reads; looking is cheaper than loading twice."""
    from bowerbird.config.sources import is_there

    here = Path.cwd()
    files = (here / "config.yaml", here / ".env", here / "data" / "agent.db")
    return any(name in os.environ for name in _SIGNS) or any(map(is_there, files))


def _served(anywhere: "Anywhere") -> "Loaded":
    from bowerbird.config import inspect_settings

    return inspect_settings(
        anywhere.flags(), kind="serve", config_path=anywhere.config, env_file=anywhere.env_file
    )
