"""The options of `bowerbird memory …` (UI-47, SE-44, AS-43).

Here: names, types and help. Not here: what the commands do (`admin/memory.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Directory = Annotated[
    str | None, Option("-w", "--workspace", metavar="DIR", help="Directory; default: the current one.")
]
Path = Annotated[
    str | None,
    Option("--path", metavar="PATH", help="Landed versions of MEMORY.md, or of a skill as skills/NAME."),
]


def memory_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group; `call(module, function, **options)` runs a command."""
    group = typer.Typer(
        help="What is remembered about a directory.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("log")
    def log(  # pyright: ignore[reportUnusedFunction] - registered
        version: Annotated[str | None, Argument(metavar="[VERSION]", help="Write the text of one.")] = None,
        path: Path = None,
        workspace: Directory = None,
        json: Annotated[bool, Option("--json", help="Write JSON.")] = False,
    ) -> int:
        """List the versions that are kept, newest first."""
        return call("admin.memory", "log", version=version, path=path, workspace=workspace, json=json)

    @group.command("restore")
    def restore(  # pyright: ignore[reportUnusedFunction] - registered
        version: Annotated[str, Argument(metavar="VERSION", help="Its number or landing in `memory log`.")],
        path: Path = None,
        workspace: Directory = None,
    ) -> int:
        """Use an earlier version again."""
        return call("admin.memory", "restore", version=version, path=path, workspace=workspace)

    return group
