"""The channels of a process as a feature of its sessions: started, tried again, ended (AS-3).

Here: the life of channels, and answers that come from elsewhere. Nothing of a channel is imported before one
is to start: most processes have none. Not here: what belongs to one channel (`house.py`).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.events import ApprovalAnswer
from bowerbird.core.tasks import Tasks
from bowerbird.core.timestamps import to_iso
from bowerbird.sessions.live.hub import Published
from bowerbird.sessions.parts import SessionPart

if TYPE_CHECKING:
    from bowerbird.agent.turn import TurnRun
    from bowerbird.channels.contract import Channel
    from bowerbird.channels.house import House, Rules, Surroundings
    from bowerbird.sessions.turn_maker import TurnContext
    from bowerbird.store.store import Store

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
HOUR_S = 3600.0

_log = logging.getLogger(__name__)


class Channels(SessionPart):
    """The chat channels of a process that drives all sessions; nothing in any other.

    Args:
        made: makes the channels, when they are to start, with what settings say of each.
        around: what they stand on, asked once.
        pause_s: before the second try to start one; each further one doubles it.
    """

    def __init__(
        self,
        made: "Callable[[], Sequence[tuple[Channel, Rules]]]",
        around: "Callable[[], Surroundings]",
        *,
        pause_s: float = FIRST_PAUSE_S,
    ) -> None:
        self._made = made
        self._around = around
        self._pause_s = pause_s
        self._tasks = Tasks("chat channels")
        self._store: Store | None = None
        self.houses: tuple[House, ...] = ()

    async def start(self, *, drives_all: bool) -> None:
        """Begin to receive and to deliver, where this process runs every session's turns."""
        if not drives_all or self.houses:
            return
        from bowerbird.channels.contract import NotInstalled
        from bowerbird.channels.house import House

        around = self._around()
        sessions = around.sessions
        self._store = sessions.store
        try:
            made = self._made()
        except NotInstalled as error:  # whoever talks otherwise is served
            _log.error("chat channels do not run: %s", error)
            await self._note(error.channel, "failed", str(error))
            return
        self.houses = tuple(House(channel, rules, around) for channel, rules in made)
        for house in self.houses:
            sessions.outbox.serve(house.deliverer)
            self._tasks.spawn(self._keep(house))
        if self.houses:
            sessions.live.relay(self._heard)
            self._tasks.spawn(self._tidy())

    async def join(self, run: "TurnRun", context: "TurnContext") -> "TurnRun":
        """Let a chat's turn send files there."""
        session = context.session
        names = [house.channel.name for house in self.houses if house.channel.files]
        if self._store is None or session.channel not in names or session.kind == "teammate":
            return run
        from bowerbird.channels.sending_files import file_tool

        return msgspec.structs.replace(run, tools=run.tools.with_(file_tool(context, self._store.write)))

    async def stop(self, grace_s: float) -> None:
        """Receive nothing more; what was accepted is carried out after the next start."""
        del grace_s
        houses, self.houses = self.houses, ()
        await self._tasks.cancel()
        for house in houses:
            try:
                await house.channel.stop()
            except (BowerbirdError, OSError) as error:
                _log.warning("channel %s did not end well: %s", house.channel.name, error)
            await house.live.stop()
            await house.waiting.stop()
            await house.router.stop()

    async def _keep(self, house: "House") -> None:
        """Start a channel, again and again until it can; the rest of the process runs meanwhile (AS-3)."""
        name, pause_s = house.channel.name, self._pause_s
        await house.router.start()
        while True:
            try:
                await house.channel.start(house.router.deliver)
            except Exception as error:  # noqa: BLE001  no channel, whatever its library raises, may stop the server
                said = (
                    f"{type(error).__name__}: {error}"
                    if not isinstance(error, BowerbirdError)
                    else str(error)
                )
                _log.warning("channel %s did not start: %s; tried again in %g s", name, said, pause_s)
                await self._note(name, "failed", said)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            else:
                _log.info("channel %s receives", name)
                await self._note(name, "receives", "")
                return

    async def _note(self, name: str, state: str, why: str) -> None:
        """Keep how a channel fares, for commands of other processes."""
        from bowerbird.channels.receiving import note_state

        assert self._store is not None, "it was started"
        await self._store.write(lambda c: note_state(c, name, state, why), flush=False)

    def _heard(self, published: Published) -> None:
        """Take what this process tells viewers; returns at once."""
        for house in self.houses:
            house.live.heard(published)
            house.waiting.heard(published)
        event = published.event
        if isinstance(event, ApprovalAnswer) and self.houses:
            self._tasks.spawn(self._answered(published.thread_id, event))

    async def _answered(self, thread_id: str, answer: ApprovalAnswer) -> None:
        from bowerbird.channels.contract import ChannelError

        for house in self.houses:
            try:
                await house.requests.answered(thread_id, answer)
            except (ChannelError, BowerbirdError) as error:
                _log.info("channel %s: a question still looks open: %s", house.channel.name, error)

    async def _tidy(self) -> None:
        """Forget old keys and cards, now and then."""
        from bowerbird.store.channels.cards import forget_cards
        from bowerbird.store.channels.updates import forget_updates

        assert self._store is not None, "it was started"
        days = self._around().sessions.settings.dedupe_days
        while True:
            before = to_iso(datetime.now(UTC) - timedelta(days=days))
            try:
                await self._store.write(lambda c, before=before: forget_updates(c, before), flush=False)
                await self._store.write(forget_cards, flush=False)
            except BowerbirdError as error:
                _log.warning("channels: old rows stay for now: %s", error)
            await asyncio.sleep(HOUR_S)
