"""Watching a session from a place in its journal, whoever drives it (SE-14, SE-33).

Here: committed events without gap or duplicate, live ones in between. Not here: wire forms.

Events of this process come at once. What another process on the same database commits is found
by looking every 250 ms; its live deltas are not seen, the completed message is.
"""

import asyncio
import time
from collections.abc import AsyncGenerator

from bowerbird.sessions.journal.events_as_records import events_of
from bowerbird.sessions.live.from_journal import mark_of
from bowerbird.sessions.live.hub import Lagged, Live, Published, Subscription, TurnMark
from bowerbird.store.journal.journal import Record
from bowerbird.store.store import Store

POLL_S = 0.25
LATE_S = 3.0
"""A record of a turn that is shown live here is left to its publisher for so long.

Read from the journal it could overtake pieces of its own message, which have another name there.
"""


async def follow(
    store: Store, live: Live, thread_id: str, after: int | None = None
) -> AsyncGenerator[Published, None]:
    """Yield what happens in a session; use with `aclosing`, it never ends by itself.

    Args:
        after: replay committed events with a greater seq first; None begins with the present.

    Raises:
        UnknownSession: there is no such session.
    """
    with live.subscribe(thread_id) as viewer:
        known = await store.records(thread_id, after=after or 0, upto=live.head(thread_id))
        cursor = known[-1].seq if known else after or 0
        viewer.skip_to(cursor)  # deltas of a message that the journal has whole by now
        if after is not None:
            for published in _committed(thread_id, known):
                yield published
        heard = time.monotonic()
        while True:
            shown = live.head(thread_id)
            arrived = await _next(viewer)
            is_lagged = arrived is not None and isinstance(arrived.event, Lagged)
            is_live = arrived is not None and arrived.seq is None
            if arrived is not None and not is_lagged and (is_live or arrived.seq == cursor + 1):
                cursor, heard = arrived.seq or cursor, time.monotonic()
                yield arrived
            elif arrived is None or arrived.seq is None or arrived.seq > cursor:
                # Another process wrote, or we were too slow: the journal has it all.
                if arrived is not None:
                    shown = arrived.seq or live.head(thread_id)
                elif time.monotonic() - heard > LATE_S:
                    shown = None
                found = await store.records(thread_id, after=cursor, upto=shown)
                for published in _committed(thread_id, found):
                    yield published
                cursor = found[-1].seq if found else cursor
                if is_lagged:
                    viewer.skip_to(cursor)


async def _next(viewer: Subscription) -> Published | None:
    try:
        async with asyncio.timeout(POLL_S):
            return await anext(viewer)
    except TimeoutError:
        return None


def _committed(thread_id: str, records: list[Record]) -> list[Published]:
    shown: list[Published] = []
    for record, event in events_of(records):
        if event is not None:
            shown.append(Published(thread_id, record.turn, record.seq, event))
        elif record.type in ("turn_started", "turn_ended"):
            mark = TurnMark("running") if record.type == "turn_started" else mark_of(record.body)
            shown.append(Published(thread_id, record.turn, record.seq, mark))
    return shown
