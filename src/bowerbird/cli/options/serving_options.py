"""The options of `serve`, `gateway`, `service install` and `sandbox run` (UI-46, AS-48, AS-66).

Here: names, types and help. Not here: what the commands do.
"""

from collections.abc import Callable
from typing import Annotated

import typer
from typer import Argument, Option

Json = Annotated[bool, Option("--json", help="Write JSON.")]
Where = Annotated[str | None, Option("-w", "--workspace", help="Directory; default: the current one.")]


def add_serving(application: typer.Typer, call: Callable[..., int]) -> None:
    """Register the commands; `call(module, function, **options)` runs one."""

    @application.command("serve")
    def serve(  # pyright: ignore[reportUnusedFunction] - registered
        host: Annotated[
            str | None, Option("--host", help="Address to listen on; default: server.host.")
        ] = None,
        port: Annotated[int | None, Option("--port", help="Port; default: server.port.")] = None,
        workspace: Where = None,
    ) -> int:
        """Serve the pages, HTTP and WebSocket until stopped."""
        return call("admin.serve", "serve", host=host, port=port, workspace=workspace)

    @application.command("gateway")
    def gateway(  # pyright: ignore[reportUnusedFunction] - registered
        bind: Annotated[str | None, Option("--bind", help="Address; default: gateway.bind.")] = None,
        port: Annotated[int | None, Option("--port", help="Port; default: gateway.port.")] = None,
    ) -> int:
        """Run allowed commands of this host for agents elsewhere."""
        return call("admin.gateway", "gateway", bind=bind, port=port)

    service = typer.Typer(help="The server as a service.", rich_markup_mode=None, no_args_is_help=True)

    @service.command("install")
    def install(  # pyright: ignore[reportUnusedFunction] - registered
        dry_run: Annotated[bool, Option("--dry-run", help="Print the unit, and stop.")] = False,
    ) -> int:
        """Have systemd run `bowerbird serve` of this directory, also after a restart of the machine."""
        return call("admin.service", "install", dry_run=dry_run)

    application.add_typer(service, name="service")


def sandbox_group(call: Callable[..., int]) -> typer.Typer:
    """Return the group `sandbox`."""
    group = typer.Typer(help="Run commands in the sandbox.", rich_markup_mode=None, no_args_is_help=True)

    @group.command("run", context_settings={"allow_interspersed_args": False})
    def run(  # pyright: ignore[reportUnusedFunction] - typer names every parameter
        command: Annotated[
            list[str] | None, Argument(metavar="-- CMD…", help="The command; one word is a shell line.")
        ] = None,
        network: Annotated[
            str | None, Option("--network", help="closed or allowlist; default: sandbox.network.mode.")
        ] = None,
        allow: Annotated[
            list[str] | None, Option("--allow", metavar="HOST", help="Permitted host, in place of settings'.")
        ] = None,
        timeout: Annotated[float | None, Option("--timeout", metavar="S", help="Time limit.")] = None,
        diff: Annotated[bool, Option("--diff", help="Show the changes themselves.")] = False,
        json: Json = False,
        workspace: Where = None,
    ) -> int:
        """Run one command on a new branch of this directory and show what it changed; nothing lands."""
        return call("admin.sandbox", "run", command=command or [], network=network, allow=allow or [],
                    timeout=timeout, diff=diff, json=json, workspace=workspace)  # fmt: skip

    return group
