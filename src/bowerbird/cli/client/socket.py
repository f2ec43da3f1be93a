"""Following a conversation of a server over its socket, over reconnects too (UI-46).

Here: connecting, going on from the cursor, frames as they come. Not here: what a frame means
(`frames.py`), requests (`http.py`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from bowerbird.cli.terminal.exits import FAILED, USAGE, Refused
from bowerbird.core import wire

if TYPE_CHECKING:
    from bowerbird.cli.client.http import Requests

UNKNOWN = 4004
TOO_SLOW = 4008
LONGEST_PAUSE_S = 5.0
PING_S = 20.0
LOST = "the connection is lost; waiting for the server"


async def frames(
    requests: "Requests", thread_id: str, after: int, say: Callable[[str], None]
) -> AsyncGenerator[tuple[str, wire.ServerFrame | None]]:
    """Yield a conversation's frames after a cursor, as text and as values; a restart is waited for.

    What has no frame is about the connection: with a text it is lost, without one it is there. Where the
    journal has nothing after the cursor, what is sent from then on is seen live.

    Args:
        say: told when the connection is lost and when it is back.

    Raises:
        Refused: the first connection fails, or the server ends this.
    """
    from aiohttp import ClientError, WSMsgType

    cursor, pause, was_there = after, 0.5, False
    url = f"{requests.address.url}/api/chat/{thread_id}/ws"
    while True:
        try:
            query = {"v": "2", "after": str(cursor)}
            async with requests.http.ws_connect(
                url, params=query, heartbeat=PING_S, max_msg_size=0
            ) as socket:
                pause = 0.5
                while (message := await socket.receive()).type is WSMsgType.TEXT:
                    frame = wire.read_frame(str(message.data))
                    if isinstance(frame, wire.Hello):
                        if was_there:
                            say("connected again")
                        was_there = True
                        yield "", None
                    cursor = max(cursor, frame.cursor)
                    yield str(message.data), frame
                code, reason = socket.close_code or 0, message.extra
            if 4000 <= code < 4100 and code != TOO_SLOW:
                raise Refused(f"the server ends this: {reason}", USAGE if code == UNKNOWN else FAILED)
            say(LOST)
            yield LOST, None
        except (OSError, ClientError) as error:
            if not was_there:
                raise requests.gone(error) from None
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_S)
