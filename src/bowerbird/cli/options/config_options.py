"""The options of `config init|schema|reload` (CF-13, CF-85, CF-86).

Here: names, types and help of options. Not here: what the commands do (`admin/config.py`,
`admin/config_reload.py`), the other `config` commands (`parser.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Call = Callable[..., int]


def add_config_rest(group: typer.Typer, call: Call) -> None:
    """Add the commands to the group `config`."""

    @group.command("init")
    def init(path: Annotated[str, Argument(metavar="FILE")] = "config.yaml") -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Write a commented settings file; an existing one is never overwritten."""
        return call("admin.config", "init", path=path)

    @group.command("schema")
    def schema() -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """Print the JSON Schema of a settings file, for editors."""
        return call("admin.config", "schema")

    @group.command("reload")
    def reload(  # pyright: ignore[reportUnusedFunction] - registered
        server: Annotated[
            str | None,
            Option("--server", metavar="URL", help="Default: BOWERBIRD_URL, else as settings say."),
        ] = None,
        json: Annotated[bool, Option("--json", help="Write JSON.")] = False,
    ) -> int:
        """Let the running server load its settings again; says what needs a restart."""
        return call("admin.config_reload", "reload", server=server, json=json)
