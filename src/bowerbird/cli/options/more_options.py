"""The options of `comment`, `agents` and `usage` (UI-45, UI-47).

Here: names, types and help. Not here: what the commands do.
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

from bowerbird.cli.options.upkeep_options import add_upkeep_commands


def add_more_commands(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

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
        """Comment on a line of a session's changes; the agent replies and fixes it."""
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

    @application.command("agents")
    def agents(  # pyright: ignore[reportUnusedFunction] - registered
        json: Annotated[bool, Option("--json", help="Write JSON.")] = False,
        workspace: Annotated[
            str | None, Option("-w", "--workspace", help="Directory; default: the current one.")
        ] = None,
    ) -> int:
        """List the agents that can be given work, and what each may use."""
        return call("admin.lists", "agents", json=json, workspace=workspace)

    @application.command("usage")
    def usage(  # pyright: ignore[reportUnusedFunction] - registered
        by: Annotated[str, Option("--by", metavar="KEY", help="day, model, user or conversation.")] = "day",
        since: Annotated[str | None, Option("--from", metavar="DAY", help="First day, UTC.")] = None,
        until: Annotated[str | None, Option("--to", metavar="DAY", help="Last day, UTC.")] = None,
        json: Annotated[bool, Option("--json", help="Write JSON.")] = False,
    ) -> int:
        """Show tokens and money that were used."""
        return call("admin.usage", "usage", by=by, since=since, until=until, json=json)

    add_upkeep_commands(application, call)
