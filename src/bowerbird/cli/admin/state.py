"""`bowerbird state export` and `bowerbird state import` (SE-45, SE-46).

Here: opening the store of the settings, the report, the exit code. Not here: what is written and
read (`sessions/transfer/exporting.py`, `sessions/transfer/importing.py`).
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.cli.terminal.databases import require_database, shown
from bowerbird.cli.terminal.exits import DONE
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.shell import run as run_async

if TYPE_CHECKING:
    from bowerbird.config import Loaded
    from bowerbird.sessions.transfer.exporting import Exported
    from bowerbird.sessions.transfer.importing import ImportReport
    from bowerbird.store import Store

MOST_REASONS = 5  # shown per file; all of them are in --json and in the quarantine


def export_command(shell: Shell, *, directory: str, force: bool, json: bool) -> int:
    """Write the state to a directory.

    Raises:
        Exists: the directory holds something, or anything but an export when `force` was given.
        NotFound: there is nothing to export.
    """
    target = Path(directory).expanduser().absolute()
    loaded = shell.load_server()
    require_database(loaded)
    done = run_async(lambda: _export(loaded, target, force))
    if json:
        said = {"directory": str(target), "sessions": done.sessions, "records": done.records,
                "damaged": done.damaged}  # fmt: skip
        shell.json(said)
        return DONE
    held = f"{done.sessions} sessions with {done.records} records"
    shell.terminal.line(f"{held} of {shown(loaded)} written to {target}")
    if done.damaged:
        shell.terminal.note(
            f"{done.damaged} damaged records were left out; they are in the quarantine", "yellow"
        )
    return DONE


def import_command(shell: Shell, *, directory: str, dry_run: bool, json: bool) -> int:
    """Read a directory into the store; returns 0, 3 when something was set aside, 1 when nothing was read."""
    from bowerbird.sessions.transfer.importing import describe

    loaded = shell.load_server()
    default = Path(loaded.settings.agent.workspace).absolute()
    workspace = str(default) if default.is_dir() else None
    source = Path(directory).expanduser().absolute()
    report = run_async(lambda: _import(loaded, source, dry_run, workspace))
    if json:
        said = {"dry_run": dry_run, "files": describe(report)}
        shell.json(said)
        return report.exit_code
    verb = "would be imported" if dry_run else "imported"
    for file in report.files:
        counts = f"{file.imported} {verb}, {file.present} present, {file.set_aside} set aside"
        shell.terminal.line(f"{file.file}: {counts}")
        for reason in file.reasons[:MOST_REASONS]:
            shell.terminal.note(f"  {reason}", "yellow")
    if not report.files:
        shell.terminal.note("nothing to import was found in the directory", "yellow")
    return report.exit_code


async def _export(loaded: "Loaded", target: Path, force: bool) -> "Exported":
    from bowerbird.sessions.transfer.exporting import export_state

    async with _store(loaded) as store:
        return await export_state(store, target, force=force)


async def _import(loaded: "Loaded", source: Path, dry_run: bool, workspace: str | None) -> "ImportReport":
    from bowerbird.sessions.transfer.importing import import_state

    async with _store(loaded) as store:
        store.require_space()
        return await import_state(store, source, dry_run=dry_run, workspace=workspace)


@asynccontextmanager
async def _store(loaded: "Loaded") -> AsyncGenerator["Store", None]:
    from bowerbird.app.mapping import store_options
    from bowerbird.app.own import make_data_dir
    from bowerbird.store import Store

    data_dir = make_data_dir(loaded.settings.agent.data_dir)
    store = await Store.open(loaded.database_url, data_dir=data_dir, options=store_options(loaded.settings))
    try:
        yield store
    finally:
        await store.aclose()
