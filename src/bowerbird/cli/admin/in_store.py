"""A transaction of the database that `serve` uses here, for commands about who may come in.

Here: opening, one transaction, closing. Not here: what the transaction does.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.shell import run as run_async

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from bowerbird.config import Loaded, Settings

T = TypeVar("T")


def in_server_store(
    shell: Shell, work: "Callable[[Connection, Settings], T]", loaded: "Loaded | None" = None
) -> "tuple[Settings, T]":
    """Run `work` in a transaction; returns the settings of that server, and the result.

    Args:
        loaded: those settings, where the caller has read them already.
    """
    from bowerbird.app.mapping import store_options
    from bowerbird.app.own import make_data_dir
    from bowerbird.store.store import Store

    served = loaded or shell.load_server(begin=True)
    settings = served.settings

    async def worked() -> T:
        data_dir: Path = make_data_dir(settings.agent.data_dir)
        store = await Store.open(served.database_url, data_dir=data_dir, options=store_options(settings))
        try:
            return await store.write(lambda connection: work(connection, settings))
        finally:
            await store.aclose()

    return settings, run_async(worked)
