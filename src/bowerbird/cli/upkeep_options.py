"""The options of `backup`, `restore`, `disk` and `trash …` (D-21, D-22).

Here: names, types and help. Not here: what the commands do (`backup_commands.py`, `disk_commands.py`).
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
        """Copy everything to DIR, while servers and commands go on: sessions, branches, landings, tokens."""
        return call("backup_commands", "backup", directory=directory, force=force, json=json)

    @application.command("restore")
    def restore(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Annotated[str, Argument(metavar="DIR", help="A directory that `backup` wrote.")],
        json: Json = False,
    ) -> int:
        """Bring a backup into an empty data directory (choose one with --data-dir)."""
        return call("backup_commands", "restore", directory=directory, json=json)
