"""How the server's door is made: uvicorn's configuration and the limits of connections (D-11).

Here: from settings to what listens. Not here: what the limits do (`server/common/doorstep.py`), starting and
ending (`serving.py`).
"""

import logging
import resource
from dataclasses import replace
from typing import TYPE_CHECKING

from bowerbird.config.sections.doors import ServerSection
from bowerbird.core.processes import descriptors
from bowerbird.server.access.proxies import Networks
from bowerbird.server.common.doorstep import KIB, SPARE_FILES, DoorLimits, Doorstep
from bowerbird.server.http.connections import DoorConfig

if TYPE_CHECKING:
    from fastapi import FastAPI

    from bowerbird.server.common.context import ServerContext

PING_S = 20.0  # SV-51: a viewer that is silent for twice as long is dead
MAX_FRAME = 1 << 20

_log = logging.getLogger(__name__)


def door_limits(section: ServerSection) -> DoorLimits:
    """Return what connections may take."""
    return DoorLimits(
        head_bytes=section.header_kb * KIB,
        head_s=section.header_timeout,
        body_s=section.body_timeout,
        most=section.max_connections,
        most_of_one=section.max_connections_per_address,
    )


def listening_config(app: "FastAPI", context: "ServerContext", *, grace_s: float) -> DoorConfig:
    """Return the configuration of a server of `app`; raises this process's limit of open files.

    Args:
        grace_s: time that running requests have when the server ends.
    """
    settings = context.settings
    door = replace(settings.door, busiest=Networks(settings.trusted_proxies))
    allowed = allow_files(door.most + SPARE_FILES)
    if allowed < descriptors.ENOUGH:
        _log.warning("%s", descriptors.LOW.format(most=allowed))
    doorstep = Doorstep(door.within(allowed))
    context.metrics.gauge("open_connections", "Connections of clients.", lambda: doorstep.open)
    context.metrics.gauge(
        "turned_away_connections", "Connections that had no place.", lambda: doorstep.turned_away
    )
    return DoorConfig(
        app,
        doorstep,
        loop="none",
        ws_max_size=MAX_FRAME,
        ws_per_message_deflate=False,  # small frames hardly shrink, and each socket would hold 300 KB
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # `server.trusted_proxies` is read in `access/`
        timeout_graceful_shutdown=max(1, round(grace_s)),
        backlog=2048,
    )


def allow_files(wanted: int) -> int:
    """Let this process open `wanted` files where the system permits it; return how many it may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted if soft == resource.RLIM_INFINITY else soft
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return raised
