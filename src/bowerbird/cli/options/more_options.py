"""The options of `comment`, `usage`, `export`, `backup`, `restore`, `disk` and `trash …` (UI-45).

Here: names, types and help. Not here: what the commands do.
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

from bowerbird.cli.options.agent_options import agents_group
from bowerbird.cli.options.channel_options import channel_group
from bowerbird.cli.options.task_options import tasks_group

Json = Annotated[bool, Option("--json", help="Write JSON.")]


def add_export_command(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register `export`."""

    @application.command("export")
    def export(  # pyright: ignore[reportUnusedFunction] - registered
        session: Annotated[str | None, Argument(metavar="[ID]", help="Session; the newest here.")] = None,
        md: Annotated[bool, Option("--md", help="As Markdown, the default.")] = False,
        html: Annotated[bool, Option("--html", help="As one page that needs nothing else.")] = False,
        json: Json = False,
        out: Annotated[str | None, Option("-o", "--out", metavar="FILE", help="Write a new file.")] = None,
        workspace: Annotated[
            str | None, Option("-w", "--workspace", help="Directory; the current one.")
        ] = None,
    ) -> int:
        """Write a whole conversation as one self-contained file."""
        options = {"md": md, "html": html, "json": json, "out": out, "workspace": workspace}
        return call("run.export", "export", session=session, **options)


def add_upkeep_commands(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

    @application.command("backup")
    def backup(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Annotated[str, Argument(metavar="DIR", help="New directory for the backup.")],
        force: Annotated[bool, Option("--force", help="Replace the earlier backup in DIR.")] = False,
        json: Json = False,
    ) -> int:
        """Copy all that is kept to DIR. Servers and commands keep running."""
        return call("admin.backup", "backup", directory=directory, force=force, json=json)

    @application.command("restore")
    def restore(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Annotated[str, Argument(metavar="DIR", help="A directory that `backup` wrote.")],
        json: Json = False,
    ) -> int:
        """Bring a backup into an empty data directory. Choose one with --data-dir."""
        return call("admin.backup", "restore", directory=directory, json=json)

    @application.command("disk")
    def disk(  # pyright: ignore[reportUnusedFunction] - registered
        free: Annotated[
            bool, Option("--free", help="Remove what settings do not keep, and pack the database.")
        ] = False,
        json: Json = False,
    ) -> int:
        """Show what takes up space, and free what can go."""
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


def add_more_commands(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""
    application.add_typer(channel_group(call), name="channels")

    @application.command("init")
    def init(  # pyright: ignore[reportUnusedFunction] - registered
        directory: Annotated[
            str | None, Argument(metavar="[DIR]", help="Where; default: the current directory.")
        ] = None,
        project: Annotated[bool, Option("--project", help="Have the agent write AGENTS.md instead.")] = False,
        workspace: Annotated[
            str | None, Option("-w", "--workspace", metavar="DIR", help="The project of --project.")
        ] = None,
        model: Annotated[str | None, Option("-m", "--model", help="provider:model, for --project.")] = None,
        dry_run: Annotated[bool, Option("--dry-run", help="Say what would be written, and stop.")] = False,
        yes: Annotated[bool, Option("--yes", "-y", help="Ask nothing: the defaults, or the policy.")] = False,
        quiet: Annotated[bool, Option("--quiet", "-q", help="Only the answer and errors.")] = False,
        json: Annotated[bool, Option("--json", help="Write the result as JSON.")] = False,
    ) -> int:
        """Make a directory for a server or an assistant. In it: settings, secrets, memory files."""
        if not project:
            return call("admin.init", "init", directory=directory, yes=yes, dry_run=dry_run, json=json)
        return call(
            "run.run",
            "init",
            workspace=workspace or directory,
            model=model,
            yes=yes,
            quiet=quiet,
            output="json" if json else "text",
        )

    application.add_typer(tasks_group(call), name="tasks")
    application.add_typer(agents_group(call), name="agents")

    @application.command("permissions")
    def permissions(  # pyright: ignore[reportUnusedFunction] - registered
        remove: Annotated[
            list[int] | None, Option("--remove", metavar="ID", help="Take this one back; may be repeated.")
        ] = None,
        json: Annotated[bool, Option("--json", help="Write JSON.")] = False,
    ) -> int:
        """List what you always allow, or take some of it back."""
        return call("admin.permissions", "permissions", remove=remove or [], json=json)

    @application.command("comment")
    def comment(  # pyright: ignore[reportUnusedFunction] - registered
        place: Annotated[
            str, Argument(metavar="FILE:LINE", help="A changed file and a line, or FIRST-LAST.")
        ],
        text: Annotated[str, Argument(metavar="TEXT", help="What to say about it.")],
        session: Annotated[
            str | None, Option("--session", metavar="ID", help="Session; default: newest here.")
        ] = None,
        old: Annotated[bool, Option("--old", help="The lines are those before the change.")] = False,
        output: Annotated[
            str, Option("--output", metavar="FORM", help="text, json or stream-json.")
        ] = "text",
        quiet: Annotated[bool, Option("--quiet", "-q", help="Only the answer.")] = False,
        timeout: Annotated[
            float | None, Option("--timeout", metavar="S", help="Seconds for the turn.")
        ] = None,
        json: Annotated[bool, Option("--json", help="Short for --output json.")] = False,
        yes: Annotated[bool, Option("--yes", "-y", help="Approve inside the stated policy.")] = False,
        workspace: Annotated[
            str | None, Option("-w", "--workspace", help="Directory; default: the current one.")
        ] = None,
    ) -> int:
        """Comment on a changed line. The agent replies and fixes it."""
        return call(
            "run.comment",
            "comment",
            place=place,
            text=text,
            session=session,
            old=old,
            output="json" if json else output,
            quiet=quiet,
            timeout=timeout,
            yes=yes,
            workspace=workspace,
        )

    @application.command("usage")
    def usage(  # pyright: ignore[reportUnusedFunction] - registered
        by: Annotated[
            str | None,
            Option(
                "--by",
                metavar="KEY",
                help="day, model, user or conversation; of outcomes model, preset or agent.",
            ),
        ] = None,
        outcomes: Annotated[bool, Option("--outcomes", help="What became of the changes.")] = False,
        since: Annotated[str | None, Option("--from", metavar="DAY", help="First day, UTC.")] = None,
        until: Annotated[str | None, Option("--to", metavar="DAY", help="Last day, UTC.")] = None,
        json: Annotated[bool, Option("--json", help="Write JSON.")] = False,
    ) -> int:
        """Show tokens and money used, or what became of changes."""
        return call("admin.usage", "usage", by=by, outcomes=outcomes, since=since, until=until, json=json)

    add_export_command(application, call)
    add_upkeep_commands(application, call)
