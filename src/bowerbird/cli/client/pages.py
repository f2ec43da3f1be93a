"""Lists of a server that come page by page, as wholes.

Here: asking until there is no further page. Not here: what the rows are for (`server.py`).
"""

from typing import TYPE_CHECKING

from bowerbird.cli.client.protocol import Row

if TYPE_CHECKING:
    from bowerbird.cli.client.http import Requests

MOST_ROWS = 1000  # of a page
MOST_LANDINGS = 100  # each names its files


async def all_sessions(requests: "Requests", q: str | None = None) -> list[Row]:
    """Return all sessions, or those whose title or id contains `q`; the newest first."""
    return await _all(requests, "/api/conversations", MOST_ROWS, q=q)


async def all_landings(requests: "Requests") -> list[Row]:
    """Return all landings, the newest first."""
    return await _all(requests, "/api/landings", MOST_LANDINGS)


async def _all(requests: "Requests", place: str, most: int, **narrowed: str | None) -> list[Row]:
    found: dict[str, Row] = {}  # a session that is used meanwhile moves up, and may come in two pages
    before: str | None = None
    while True:
        page = await requests.get(place, limit=most, before=before, **narrowed)
        new = [row for row in page if row["id"] not in found]
        found |= {str(row["id"]): row for row in new}
        if len(page) < most or not new:  # an older server does not know `before` of landings
            return list(found.values())
        before = str(page[-1]["id"])


async def whole(requests: "Requests", place: str, name: str) -> list[Row]:
    """Return all rows of a list whose pages name the next one: `messages`, `turns`."""
    found: list[Row] = []
    after: int | None = 0
    while after is not None:
        page = await requests.get(place, after=after, limit=MOST_ROWS)
        found += page[name]
        after = page["next_after"]
    return found
