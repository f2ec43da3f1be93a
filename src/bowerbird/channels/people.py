"""The people of one channel: the list of the settings united with the stored one (AS-5 … AS-7).

Here: asking and changing that list, codes for pairing. Not here: the decision (`admission.py`), commands of
the terminal that print it.
"""

import logging
import time
from collections.abc import Callable, Mapping

from sqlalchemy import Connection

from bowerbird.channels.admission import DENIED, Role, admitted
from bowerbird.channels.contract import IncomingMessage
from bowerbird.core.errors import NotQueued
from bowerbird.sessions.inbox.accept import take_back
from bowerbird.store.channels.people import (
    ChannelUser,
    find_user,
    put_user,
    queued_inputs_of,
    use_code,
)
from bowerbird.store.store import Store

SAID_EVERY_S = 3600.0
MOST_SAID = 1000  # strangers that are remembered, so that each is named once an hour
MOST_SAID_PER_HOUR = 100

_log = logging.getLogger(__name__)


class People:
    """Who may write in one channel.

    Args:
        listed: returns the users of the settings, as they are now.
        clock: seconds; for the hourly line about strangers.
    """

    def __init__(
        self,
        store: Store,
        channel: str,
        listed: Callable[[], Mapping[str, Role]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._channel = channel
        self._listed = listed
        self._clock = clock
        self._said: dict[str, float] = {}

    async def role(self, user_id: str) -> Role | None:
        """Return a user's role as it is now, None for whoever may not write."""
        found = await self._store.read(lambda c: find_user(c, self._channel, user_id))
        return admitted(user_id, self._listed(), None if found is None else found.role)

    async def pair(self, message: IncomingMessage, code: str) -> Role | None:
        """Admit the sender of a right code; None for a wrong one, which counts against them."""
        who, name = message.user_id, message.user_name
        role = await self._store.write(lambda c: use_code(c, self._channel, code, who, name))
        return None if role is None else "owner" if role == "owner" else "guest"

    def refuse(self, message: IncomingMessage) -> None:
        """Say in the log, once an hour for each, that somebody wrote who is on no list."""
        now = self._clock()
        self._said = {user: at for user, at in self._said.items() if now - at < SAID_EVERY_S}
        if message.user_id in self._said or len(self._said) >= MOST_SAID:
            return
        self._said[message.user_id] = now
        if len(self._said) <= MOST_SAID_PER_HOUR:
            who = ascii(message.user_id)[1:-1][:64]
            _log.warning(
                "%s: user %s is on no list and gets no answer; to admit them: bowerbird channels allow %s %s",
                self._channel, who, self._channel, who,
            )  # fmt: skip


def deny_user(connection: Connection, channel: str, user_id: str) -> int:
    """Keep a user out from now on, whatever the settings say; returns how many waiting messages go."""
    put_user(connection, ChannelUser(channel=channel, user_id=user_id, role=DENIED))
    gone = 0
    for row in queued_inputs_of(connection, channel, user_id):
        try:
            take_back(connection, row.thread_id, row.id)
        except NotQueued:  # its turn has begun meanwhile
            continue
        gone += 1
    return gone
