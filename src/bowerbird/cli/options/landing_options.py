"""The options of `bowerbird undo` and `bowerbird landings` (UI-45, D-1).

Here: names, types and help. Not here: what the commands do (`review/commands.py`).
"""

from collections.abc import Callable
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from bowerbird.cli.terminal.exits import USAGE, CliExit

_Json = Annotated[bool, Option("--json", help="Write JSON.")]
_Where = Annotated[str | None, Option("-w", "--workspace", help="Directory; default: the current one.")]
_Landing = Annotated[str | None, Argument(metavar="LANDING", help="Default: newest of this directory.")]


def add_landings(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

    @application.command("undo")
    def undo(  # pyright: ignore[reportUnusedFunction] - registered
        landing: _Landing = None,
        force: Annotated[bool, Option("--force", help="Also where the file was edited since.")] = False,
        commit: Annotated[bool, Option("--commit", help="Commit the revert, too.")] = False,
        yes: Annotated[
            bool, Option("--yes", "-y", help="Answer yes: a landing that was a commit is reverted by one.")
        ] = False,
        json: _Json = False,
        workspace: _Where = None,
    ) -> int:
        """Take a landing back."""
        return call("review.commands", "undo", landing=landing, force=force, commit=commit, yes=yes,
                    json=json, workspace=workspace)  # fmt: skip

    @application.command("landings")
    def landings(  # pyright: ignore[reportUnusedFunction] - registered
        what: Annotated[
            Literal["fix"] | None, Argument(metavar="[fix", help="Fix one that needs attention.")
        ] = None,
        landing: Annotated[str | None, Argument(metavar="LANDING]", help="The one to fix.")] = None,
        retry: Annotated[bool, Option("--retry", help="fix: continue where it stopped.")] = False,
        take_back: Annotated[bool, Option("--take-back", help="fix: restore every file as it was.")] = False,
        give_up: Annotated[bool, Option("--give-up", help="fix: leave every file as it is now.")] = False,
        json: _Json = False,
        workspace: _Where = None,
    ) -> int:
        """List what landed here, or fix a landing that needs attention."""
        if what is None:
            return call("review.commands", "landings", json=json, workspace=workspace)
        ways = [
            name
            for name, given in (("retry", retry), ("take_back", take_back), ("give_up", give_up))
            if given
        ]
        if landing is None or len(ways) != 1:
            raise CliExit(
                USAGE,
                "which landing, and how: bowerbird landings fix LANDING "
                "with one of --retry, --take-back, --give-up",
            )
        return call("review.commands", "fix", landing=landing, how=ways[0], json=json, workspace=workspace)
