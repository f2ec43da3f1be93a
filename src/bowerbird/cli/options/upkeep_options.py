"""The options of `backup`, `restore`, `disk` and `trash …` (D-21, D-22).

Here: names, types and help. Not here: what the commands do (`admin/backup.py`, `admin/disk.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Json = Annotated[bool, Option("--json", help="Write JSON.")]


def add_upkeep_commands(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

    @application.command("backup")
    def backup(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Annotated[str, Argument(metavar="DIR", help="New directory for the backup.")],
        force: Annotated[bool, Option("--force", help="Replace the earlier backup in DIR.")] = False,
        json: Json = False,
    ) -> int:
        """Copy sessions, branches, landings and tokens to DIR while servers and commands keep running."""
        return call("admin.backup", "backup", directory=directory, force=force, json=json)

    @application.command("restore")
    def restore(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Annotated[str, Argument(metavar="DIR", help="A directory that `backup` wrote.")],
        json: Json = False,
    ) -> int:
        """Bring a backup into an empty data directory (choose one with --data-dir)."""
        return call("admin.backup", "restore", directory=directory, json=json)

    @application.command("disk")
    def disk(  # pyright: ignore[reportUnusedFunction] - registered
        free: Annotated[
            bool, Option("--free", help="Remove what settings do not keep, and pack the database.")
        ] = False,
        json: Json = False,
    ) -> int:
        """Show what takes up space in the data directory, and free what can go."""
        return call("admin.disk", "disk", free=free, json=json)

    application.add_typer(_trash(call), name="trash")


def _trash(call: Callable[..., int]) -> typer.Typer:
    group = typer.Typer(
        help="Deleted sessions and discarded changes.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("list")
    def list_(json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List what can be restored, and for how long."""
        return call("admin.disk", "trash_list", json=json)

    @group.command("restore")
    def restore(  # pyright: ignore[reportUnusedFunction] - registered
        entry: Annotated[str, Argument(metavar="ID", help="As `trash list` shows it, or its beginning.")],
        json: Json = False,
    ) -> int:
        """Restore a session, or changes that were discarded."""
        return call("admin.disk", "trash_restore", entry=entry, json=json)

    @group.command("empty")
    def empty(  # pyright: ignore[reportUnusedFunction] - registered
        yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
        json: Json = False,
    ) -> int:
        """Remove everything in the trash for good."""
        return call("admin.disk", "trash_empty", yes=yes, json=json)

    return group
