"""What a server answers beside sessions, their turns and their review.

Here: those requests of the server's client. Not here: the others (`server.py`).
"""

import urllib.parse
from typing import TYPE_CHECKING

from bowerbird.cli.client.protocol import Row

if TYPE_CHECKING:
    from bowerbird.cli.client.http import Requests


class ServerRest:
    """The half of `ServerClient` that is about what messages are made of."""

    def __init__(self, requests: "Requests") -> None:
        self._requests = requests

    async def names(self, thread_id: str | None) -> list[str]:
        """See `Client`."""
        return (await self._requests.get("/api/workspace/names", conversation=thread_id))["names"]

    async def file(self, thread_id: str, path: str) -> Row:
        """See `Client`."""
        place = f"/api/workspace/file/{urllib.parse.quote(path)}"
        return await self._requests.get(place, conversation=thread_id)
