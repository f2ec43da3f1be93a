"""The options of `bowerbird token …` (UI-47, SV-55).

Here: names, types and help. Not here: what the commands do (`admin/token.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Json = Annotated[bool, Option("--json", help="Write JSON.")]


def token_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group; `call(module, function, **options)` runs a command."""
    group = typer.Typer(
        help="Credentials of the server's users.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("create")
    def create(  # pyright: ignore[reportUnusedFunction] - registered
        name: Annotated[str, Argument(metavar="NAME", help="What you call it.")],
        role: Annotated[str, Option("--role", help="viewer, user or admin.")] = "user",
        user: Annotated[str, Option("--user", help="Whose conversations it works on; default: NAME.")] = "",
        expires: Annotated[
            str | None, Option("--expires", metavar="90d", help="Lifetime; default: until revoked.")
        ] = None,
        json: Json = False,
    ) -> int:
        """Make a token and show it, this once."""
        return call("admin.token", "create", name=name, role=role, user=user, expires=expires, json=json)

    @group.command("list")
    def list_(json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List all tokens, without their secrets."""
        return call("admin.token", "list_tokens", json=json)

    @group.command("revoke")
    def revoke(  # pyright: ignore[reportUnusedFunction] - registered
        name: Annotated[str, Argument(metavar="NAME", help="Name or id.")],
    ) -> int:
        """Revoke a token at once; its sockets are closed within seconds."""
        return call("admin.token", "revoke_token", name=name)

    return group
