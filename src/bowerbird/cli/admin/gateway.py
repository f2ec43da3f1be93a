"""`bowerbird gateway`: commands of this host for agents elsewhere (AS-48).

Here: its start, what it says, its exit codes. Not here: the gateway (`gateway/`).
"""

import asyncio
import signal
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.cli.terminal.exits import DONE, FAILED, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.core.errors import ConfigError

if TYPE_CHECKING:
    from bowerbird.config.sections.gateway import GatewaySection
    from bowerbird.gateway.service import Gateway


def gateway(shell: Shell, *, bind: str | None, port: int | None) -> int:
    """Run until a signal ends it.

    Raises:
        CliExit: code 1 where settings are wrong or nothing can listen there; no other settings are tried.
    """
    from bowerbird.app.features.gateway import gateway_of
    from bowerbird.app.logs import log_to_stderr

    try:
        loaded = shell.load(flags={"gateway.bind": bind, "gateway.port": port})
        section = loaded.settings.gateway
        made = gateway_of(section)
    except ConfigError as error:
        raise CliExit(FAILED, "; ".join(error.problems)) from error
    log = loaded.settings.logging
    log_to_stderr(log.level, log.format, frozenset(loaded.settings.secrets()))
    for bridge in made.bridges:
        missing = sorted(name for name, path in bridge.programs.items() if path is None)
        if missing:
            shell.terminal.note(f"bridge {bridge.name}: not installed: {', '.join(missing)}", "yellow")
    if section.socket is None and not _is_loopback(section.bind):
        shell.terminal.warn(
            f"warning: {section.bind} can be reached from other machines, and what is sent is not encrypted",
            "yellow",
        )
    return asyncio.run(_run(shell, made, section))


async def _run(shell: Shell, made: "Gateway", section: "GatewaySection") -> int:
    from bowerbird.gateway.service import serve

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    names = ", ".join(bridge.name for bridge in made.bridges)
    socket = Path(section.socket) if section.socket else None
    try:
        await serve(
            made,
            bind=section.bind,
            port=section.port,
            socket=socket,
            ready=lambda address: shell.terminal.note(f"bowerbird gateway serves {address} ({names})"),
            stop=stop,
        )
    except OSError as error:
        where = socket or f"{section.bind}:{section.port}"
        raise CliExit(FAILED, f"cannot listen on {where}: {error.strerror or error}") from error
    return DONE


def _is_loopback(bind: str) -> bool:
    try:
        return ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"
