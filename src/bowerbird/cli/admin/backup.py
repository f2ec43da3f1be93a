"""`bowerbird backup DIR` and `bowerbird restore DIR` (D-21).

Here: opening what the settings name, the report, the exit code. Not here: what is copied
(`sessions/transfer/backup.py`).
"""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.cli.terminal.databases import require_database, shown
from bowerbird.cli.terminal.exits import DONE, PARTLY
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.shell import run as run_async
from bowerbird.cli.terminal.text import harmless_path, plural, size

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.sessions.transfer.backup import BackupRecord

_NAMED = 10  # files that could not be read; one cause has thousands of them


def backup(shell: Shell, *, directory: str, force: bool, json: bool) -> int:
    """Copy everything to a directory; 0, or 3 when a file could not be read or a session never rested.

    Raises:
        Exists: the directory holds something else, or a backup and `force` was not given.
        NotFound: there is nothing to back up.
    """
    target = Path(directory).expanduser().absolute()
    loaded = shell.load_server()
    require_database(loaded)
    done = run_async(lambda: _backup(loaded, target, force))
    if json:
        _write(shell, target, done)
    else:
        held = f"{plural(done.sessions, 'session')} and {plural(done.files, 'file')} ({size(done.bytes)})"
        shell.terminal.line(f"{held} of {_source(loaded)} backed up to {target}")
        shell.terminal.note(f"bring it back with: bowerbird --data-dir NEW_DIR restore {target}")
        for thread in done.working:
            shell.terminal.note(f"session {thread} never stopped writing: its turn counts as failed in the "
                                "backup, and can be resumed after a look at its files", "yellow")  # fmt: skip
        for reason in done.refused[:_NAMED]:
            shell.terminal.warn(f"not in the backup: {harmless_path(reason)}", "red")
        if done.unread > _NAMED:
            more = f"{plural(done.unread - _NAMED, 'more file')}; bowerbird backup --json names more of them"
            shell.terminal.warn(f"not in the backup: {more}", "red")
    return PARTLY if done.working or done.refused else DONE


def restore(shell: Shell, *, directory: str, json: bool) -> int:
    """Bring a backup back.

    Raises:
        NotFound, StoreCorrupt: no backup, or not whole. Exists: the data directory is not empty.
    """
    source = Path(directory).expanduser().absolute()
    loaded = shell.load_server()
    done = run_async(lambda: _restore(loaded, source))
    if json:
        _write(shell, source, done)
    else:
        shell.terminal.line(f"{plural(done.sessions, 'session')} of {done.at} restored to {_source(loaded)}")
        for thread in done.working:
            shell.terminal.note(f"session {thread} was at work then: look at its files before you resume it",
                                "yellow")  # fmt: skip
    return DONE


def _write(shell: Shell, directory: Path, record: "BackupRecord") -> None:
    data = {"directory": str(directory), **msgspec.to_builtins(record)}
    shell.json(data)


def _source(loaded: "Loaded") -> str:
    return f"{shown(loaded)} and {loaded.settings.agent.data_dir}"


async def _backup(loaded: "Loaded", target: Path, force: bool) -> "BackupRecord":
    from bowerbird import __version__
    from bowerbird.app.mapping import store_options
    from bowerbird.app.own import make_data_dir
    from bowerbird.sessions.transfer.backup import make_backup
    from bowerbird.store import Store

    data_dir = make_data_dir(loaded.settings.agent.data_dir)  # refuses one that a restore left half filled
    store = await Store.open(loaded.database_url, data_dir=data_dir, options=store_options(loaded.settings))
    try:
        return await make_backup(store, target, __version__, force=force)
    finally:
        await store.aclose()


async def _restore(loaded: "Loaded", source: Path) -> "BackupRecord":
    from bowerbird.app.mapping import store_options
    from bowerbird.sessions.transfer.backup import restore_backup
    from bowerbird.store import Store

    data_dir = Path(loaded.settings.agent.data_dir)

    async def opened() -> Store:
        return await Store.open(
            loaded.database_url, data_dir=data_dir, options=store_options(loaded.settings)
        )

    return await restore_backup(source, data_dir, opened)
