"""HEAD for every route that answers GET: the same answer without its body.

Here: that. Not here: the routes.
"""

import asyncio
from typing import TYPE_CHECKING

from bowerbird.server.common.errors import methods_at

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Heads:
    """ASGI: asks the route as for GET, sends the headers, and stops it before it reads what nobody gets."""

    def __init__(self, app: "ASGIApp") -> None:
        self.app = app

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        wanted = scope["type"] == "http" and scope["method"] == "HEAD"
        if not wanted or "GET" not in methods_at(scope["app"], scope["path"]):
            await self.app(scope, receive, send)
            return
        ended = False

        async def headers_only(message: "Message") -> None:
            nonlocal ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not ended:
                ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            if message.get("more_body"):
                whole.cancel()  # a file, or a stream without an end

        whole = asyncio.ensure_future(self.app({**scope, "method": "GET"}, receive, headers_only))
        try:
            await asyncio.wait([whole])
        finally:
            whole.cancel()
        if not whole.cancelled():
            whole.result()
