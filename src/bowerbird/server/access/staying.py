"""Whether who came in may still be here, for answers that go on for long (SV-55, D-31).

Here: waiting until they may not. Not here: what ends then (the route's), sockets (`socket/hub.py`), `/mcp`.
"""

import asyncio
import time
from typing import TYPE_CHECKING

from bowerbird.core.errors import BowerbirdError
from bowerbird.server.access.admission import Admission
from bowerbird.server.access.identity import withdrawn

if TYPE_CHECKING:
    from bowerbird.server.common.context import Caller, ServerContext

LOOK_S = 2.0
GONE = "the credential was revoked or has expired"


async def until_away(context: "ServerContext", caller: "Caller", expires_at: float | None) -> None:
    """Return when a caller's token was revoked, their sign-in is over, or they may not be here.

    Args:
        expires_at: when their credential ends, in seconds since the epoch; None = never.
    """
    named = {caller.credential} if caller.credential else set[str]()
    while True:
        await asyncio.sleep(LOOK_S)
        if expires_at is not None and expires_at <= time.time():
            return
        if not Admission.of(context.settings).stays(caller):
            return
        try:
            if await withdrawn(context, named):
                return
        except BowerbirdError:  # the store is busy: looked at again in a moment
            continue
