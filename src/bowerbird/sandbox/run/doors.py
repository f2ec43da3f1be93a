"""Doors: ports of a sandbox's loopback that lead to something this process serves, for one command.

Here: opening them before the command starts, closing them after it. Not here: what stands behind one (the
egress proxy, the relay of credentials), the way from the port to the socket (`inside/bridge`).
"""

import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bowerbird.sandbox.listening import listen

if TYPE_CHECKING:
    from bowerbird.sandbox.run.warm_sandbox import WarmSandbox


class Door(msgspec.Struct, frozen=True):
    """One port.

    Attributes:
        port: on the sandbox's loopback.
        serve: gets a bound Unix socket, which is its own from then on, before the command starts.
    """

    port: int
    serve: Callable[[socket.socket], Awaitable[None]]

    @property
    def socket_name(self) -> str:
        """The name of its socket in the directory that the sandbox shows."""
        return f"door-{self.port}.sock"


async def open_doors(doors: Sequence[Door], directory: Path, warm: "WarmSandbox") -> None:
    """Serve doors and lead the sandbox's loopback to them; those that are open stay so.

    Args:
        directory: of the sandbox that runs now, which it shows.

    Raises:
        SandboxUnavailable: the sandbox has no loopback of its own, or did not answer.
    """
    for door in doors:
        await door.serve(listen(directory, door.socket_name))
        await warm.open_bridge(door.port, door.socket_name)
