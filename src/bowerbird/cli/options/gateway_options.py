"""The options of `bowerbird gateway` (AS-48).

Here: names, types and help. Not here: what the command does (`admin/gateway.py`).
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Option


def add_gateway(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the command; `call(module, function, **options)` runs it."""

    @application.command("gateway")
    def gateway(  # pyright: ignore[reportUnusedFunction] - registered
        bind: Annotated[str | None, Option("--bind", help="Address; default: gateway.bind.")] = None,
        port: Annotated[int | None, Option("--port", help="Port; default: gateway.port.")] = None,
    ) -> int:
        """Run allowed commands of this host for agents elsewhere, until stopped."""
        return call("admin.gateway", "gateway", bind=bind, port=port)
