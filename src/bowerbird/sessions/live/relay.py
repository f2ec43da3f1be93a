"""Live events to and from other processes on the same database (SE-33).

Here: an event as a notice and back. Not here: sending notices (`store/sql/notify.py`), committed
events that nobody sent: `follow.py` finds those in the journal.
"""

import logging

import msgspec

from bowerbird.core.events import TextLive, ThinkingLive
from bowerbird.core.forms import decoder
from bowerbird.sessions.live.hub import Lagged, Live, Published
from bowerbird.store.sql.notify import MAX_BYTES, Notices

_log = logging.getLogger(__name__)
_ROOM = MAX_BYTES - 100  # for the sender's name
_PIECE = 1000  # characters of a delta that is cut up; each has at most six bytes in JSON


class Relay:
    """Connects one process's live hub with the others'.

    Args:
        notices: of the store.
        live: events of this process go out, those of others are shown in it.
    """

    def __init__(self, notices: Notices, live: Live) -> None:
        self._notices = notices
        self._live = live
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._decode = decoder(Published)

    async def start(self) -> None:
        """Listen to the others, and tell them from now on what happens here."""
        self._live.relay(self._send)
        await self._notices.start(self._receive)

    def _send(self, published: Published) -> None:
        if not self._notices.has_listeners:
            return
        for part in pieces(published):
            self._notices.send(self._encoder.encode(part).decode())

    def _receive(self, text: str) -> None:
        try:
            published = self._decode(text)
        except msgspec.MsgspecError as error:  # another version of the program sent it
            _log.debug("a notice of another process cannot be read: %s", error)
            return
        self._live.show(published)


def pieces(published: Published) -> list[Published]:
    """Return what to send for one event: itself, its parts, or only its place in the journal. Pure.

    Example:
        >>> [p.seq for p in pieces(Published("x", None, 7, TextLive("a" * 10_000, "m", 0)))]
        [7]
    """
    if len(_plain(published)) <= _ROOM:
        return [published]
    event = published.event
    if published.seq is not None:
        # Whoever watches reads the record (payloads are bounded).
        return [msgspec.structs.replace(published, event=Lagged())]
    if isinstance(event, TextLive | ThinkingLive):
        kind, text = type(event), event.content
        cut = [
            kind(text[at : at + _PIECE], event.message_id, event.offset + at)
            for at in range(0, len(text), _PIECE)
        ]
        return [msgspec.structs.replace(published, event=piece) for piece in cut]
    return []


def _plain(published: Published) -> bytes:
    return msgspec.json.encode(published, enc_hook=str)
