"""The options of `bowerbird channels …` (UI-47, AS-7).

Here: names, types and help. Not here: what the commands do (`admin/channels.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Json = Annotated[bool, Option("--json", help="Write JSON.")]
Channel = Annotated[str, Argument(metavar="CHANNEL", help="The channel: telegram.")]
User = Annotated[str, Argument(metavar="USER", help="The user's id, as the channel has it.")]
Role = Annotated[str, Option("--role", help="owner, or guest: may not land, undo or approve.")]


def channel_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group; `call(module, function, **options)` runs a command."""
    group = typer.Typer(
        help="Who may write to the assistant in chats.", rich_markup_mode=None, no_args_is_help=True
    )

    @group.command("pair")
    def pair(  # pyright: ignore[reportUnusedFunction] - registered
        channel: Channel, role: Role = "owner", json: Json = False
    ) -> int:
        """Make a code; whoever sends it to the bot is admitted."""
        return call("admin.channels", "pair", channel=channel, role=role, json=json)

    @group.command("allow")
    def allow(  # pyright: ignore[reportUnusedFunction] - registered
        channel: Channel, user: User, role: Role = "owner", json: Json = False
    ) -> int:
        """Admit a user."""
        return call("admin.channels", "allow", channel=channel, user=user, role=role, json=json)

    @group.command("deny")
    def deny(  # pyright: ignore[reportUnusedFunction] - registered
        channel: Channel, user: User, json: Json = False
    ) -> int:
        """Keep a user out at once, whatever the settings say; their waiting messages are dropped."""
        return call("admin.channels", "deny", channel=channel, user=user, json=json)

    @group.command("list")
    def list_(json: Json = False) -> int:  # pyright: ignore[reportUnusedFunction] - registered
        """List who may write, and how each channel fares."""
        return call("admin.channels", "list_users", json=json)

    return group
