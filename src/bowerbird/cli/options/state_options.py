"""The options of `bowerbird state …` (SE-45, SE-46).

Here: names, types and help. Not here: what the commands do (`admin/state.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Directory = Annotated[str, Argument(metavar="DIR", help="Directory of exported state.")]
Json = Annotated[bool, Option("--json", help="Write JSON.")]


def state_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group; `call(module, function, **options)` runs a command."""
    group = typer.Typer(
        help="Export everything durable as plain files, and import it.",
        rich_markup_mode=None,
        no_args_is_help=True,
    )

    @group.command("export")
    def export(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Directory,
        force: Annotated[bool, Option("--force", help="Replace the earlier export in DIR.")] = False,
        json: Json = False,
    ) -> int:
        """Write sessions, counters, scheduled tasks and audit logs to DIR, from one consistent read."""
        return call("admin.state", "export_command", directory=directory, force=force, json=json)

    @group.command("import")
    def import_(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Directory,
        dry_run: Annotated[bool, Option("--dry-run", help="Report only; write nothing.")] = False,
        json: Json = False,
    ) -> int:
        """Import such a directory, or a LangGraph checkpoints.db in it; what is already known is kept."""
        return call("admin.state", "import_command", directory=directory, dry_run=dry_run, json=json)

    return group
