"""The options of `bowerbird gateway` and `bowerbird service install` (AS-48, AS-66).

Here: names, types and help. Not here: what the commands do.
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Option


def add_gateway(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

    @application.command("gateway")
    def gateway(  # pyright: ignore[reportUnusedFunction] - registered
        bind: Annotated[str | None, Option("--bind", help="Address; default: gateway.bind.")] = None,
        port: Annotated[int | None, Option("--port", help="Port; default: gateway.port.")] = None,
    ) -> int:
        """Run allowed commands of this host for agents elsewhere, until stopped."""
        return call("admin.gateway", "gateway", bind=bind, port=port)

    service = typer.Typer(help="The server as a service.", rich_markup_mode=None, no_args_is_help=True)

    @service.command("install")
    def install(  # pyright: ignore[reportUnusedFunction] - registered
        dry_run: Annotated[bool, Option("--dry-run", help="Print the unit, and stop.")] = False,
    ) -> int:
        """Have systemd run `bowerbird serve` of this directory, also after a restart of the machine."""
        return call("admin.service", "install", dry_run=dry_run)

    application.add_typer(service, name="service")
