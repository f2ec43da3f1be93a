"""`bowerbird memory log|restore`: what is remembered of this directory (UI-47, SE-44).

Here: the commands over the server's own database. Not here: options (`memory_options.py`), the rows
(`store/rows/memory.py`), writing memory anew (`sessions/upkeep/memory_rewriting.py`).
"""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.cli.exits import DONE, USAGE, CliExit
from bowerbird.cli.shell import Shell
from bowerbird.cli.shell import run as run_async
from bowerbird.cli.text import harmless, table

if TYPE_CHECKING:
    from bowerbird.store.rows.memory import MemoryVersion

SHOWN = 60  # characters of a version's first line


def log(shell: Shell, *, workspace: str | None, version: int | None, json: bool) -> int:
    """List the versions of a directory's memory, newest first, or write the text of one.

    Args:
        workspace: directory, the current one when None. version: its text alone.

    Raises:
        CliExit: code 2, no such version is kept.
    """
    found = _versions(shell, workspace)
    if version is not None:
        chosen = next((each for each in found if each.id == version), None)
        if chosen is None:
            raise CliExit(USAGE, f"memory has no version {version}; `bowerbird memory log` lists them")
        shell.terminal.write(chosen.body + "\n")
        return DONE
    if json:
        rows: list[dict[str, Any]] = [
            {"id": each.id, "at": each.at, "text": each.body, "current": index == 0}
            for index, each in enumerate(found)
        ]
        shell.terminal.write(json_text.dumps(rows, indent=2) + "\n")
        return DONE
    cells = [
        [str(each.id), each.at[:19], f"{len(each.body.encode())} bytes", each.body.partition("\n")[0][:SHOWN]]
        for each in found
    ]
    for line in table([[harmless(cell) for cell in row] for row in cells], width=shell.terminal.width):
        shell.terminal.line(line)
    if not found:
        shell.terminal.note("nothing is remembered of this directory")
    return DONE


def restore(shell: Shell, *, version: int, workspace: str | None) -> int:
    """Make an earlier version count again; what counted before stays in the list.

    Raises:
        CliExit: code 2, no such version is kept.
    """
    from bowerbird.app.application import open_application
    from bowerbird.app.memory import keep_copy
    from bowerbird.store.rows.memory import restore_memory

    path, loaded = _place(workspace), _load(shell)

    async def work() -> "MemoryVersion":
        async with open_application(loaded) as application:
            made = await application.store.write(lambda c: restore_memory(c, "", path, version))
            await keep_copy(application, "", path, made.body)
            return made

    made = run_async(work)
    shell.terminal.note(f"version {version} counts again, as version {made.id}")
    return DONE


def _versions(shell: Shell, workspace: str | None) -> "list[MemoryVersion]":
    from bowerbird.app.application import make_data_dir
    from bowerbird.app.mapping import store_options
    from bowerbird.store.rows.memory import memory_log
    from bowerbird.store.store import Store

    path, loaded = _place(workspace), _load(shell)

    async def work() -> "list[MemoryVersion]":
        data_dir = make_data_dir(loaded.settings.agent.data_dir)
        store = await Store.open(
            loaded.database_url, data_dir=data_dir, options=store_options(loaded.settings)
        )
        try:
            return await store.read(lambda c: memory_log(c, "", path))
        finally:
            await store.aclose()

    return run_async(work)


def _load(shell: Shell) -> Any:
    from bowerbird.config import load_settings

    anywhere = shell.anywhere
    return load_settings(
        anywhere.flags(), kind="serve", config_path=anywhere.config, env_file=anywhere.env_file
    )


def _place(workspace: str | None) -> str:
    return str(Path(workspace or ".").expanduser().resolve())
