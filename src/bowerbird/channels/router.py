"""Everything that arrives in one channel, in the one order that keeps strangers out (AS-4).

Here: allow-list, duplicates, what it is, whether it is meant, accepting it, failures. Not here: what a
command or a button does, sending, the service itself.

A plain message becomes an inbox row before `deliver` returns. Whatever takes longer (files to download,
commands, buttons) is kept as a row first and carried out beside; the process that receives next carries out
what was left.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from bowerbird.channels.accepting import QUESTION_FIRST, Desk
from bowerbird.channels.admission import Role
from bowerbird.channels.cards import CardDesk
from bowerbird.channels.claude.mode import ClaudeMode
from bowerbird.channels.commands import Commands, parsed
from bowerbird.channels.contract import Channel, ChannelError, IncomingMessage, Rejected
from bowerbird.channels.people import People
from bowerbird.channels.speaking import Speaker
from bowerbird.channels.triggers import meant
from bowerbird.channels.voice_again import VoiceAgain
from bowerbird.core.errors import BowerbirdError, QueueFull, StoreError
from bowerbird.core.forms import decode
from bowerbird.core.ids import new_id
from bowerbird.core.json_text import json_text
from bowerbird.core.tasks import Tasks
from bowerbird.sessions.values import Receipt
from bowerbird.store.channels.updates import (
    MOST_ATTEMPTS,
    UpdateRow,
    begin_update,
    finish_update,
    is_known,
    keep_update,
    leave_update,
    note_failure,
    quarantine_update,
    waiting_updates,
)
from bowerbird.store.store import Store

MOST_WAITING = 100  # updates of one chat that are kept to be carried out
NO_PICTURES = "Pictures and files cannot be given to Claude Code here."
FULL_S = 60.0
AGAIN_S = 5.0  # until what the database could not take is tried again

_log = logging.getLogger(__name__)


@runtime_checkable
class ElectedChannel(Protocol):
    """A channel that one of several processes receives at a time."""

    def when_receiving(self, begun: Callable[[], Awaitable[None]]) -> None:
        """Have `begun` awaited each time this process has become the one that receives, before it does."""
        ...


@dataclass(slots=True)
class Line:
    """What one chat waits for, in order."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0  # updates that are carried out in order
    users: int = 0


class Router:
    """Routes one channel.

    Args:
        trigger: returns the word that calls the agent in groups, as it is now.
        accepted: told of each message that became an input; returns at once.
        claude: takes what people in its mode write.
    """

    def __init__(
        self,
        store: Store,
        channel: Channel,
        *,
        people: People,
        desk: Desk,
        cards: CardDesk,
        commands: Commands,
        speaker: Speaker,
        trigger: Callable[[], str],
        accepted: Callable[[IncomingMessage, Receipt], None],
        claude: ClaudeMode,
    ) -> None:
        self._store = store
        self._channel = channel
        self._people = people
        self._desk = desk
        self._cards = cards
        self._commands = commands
        self._speaker = speaker
        self._trigger = trigger
        self._accepted = accepted
        self._claude = claude
        self._tasks = Tasks(f"chats of {channel.name}")
        self._lines: dict[str, Line] = {}
        self._in_hand: set[int] = set()  # rows that this process carries out
        self._told: dict[str, float] = {}  # chats that were told that nothing more is taken, and when
        self._has_stopped = False
        cards.handle(VoiceAgain.kind, VoiceAgain(self.again))

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Carry out what was accepted and not finished, once this process is the one that receives."""
        self._has_stopped = False
        if isinstance(self._channel, ElectedChannel):
            self._channel.when_receiving(self.take_over)
        else:
            await self.take_over()

    async def take_over(self) -> None:
        """Go on where the process that received before was: with what it had accepted, where people were."""
        await self._claude.start()
        for row in await self._store.read(lambda c: waiting_updates(c, self._channel.name)):
            if row.id not in self._in_hand:
                self._begin(row, decode(row.body, IncomingMessage))

    async def stop(self) -> None:
        """End; what is not finished is carried out after the next start."""
        self._has_stopped = True
        await self._tasks.cancel()

    # ------------------------------------------------------------ arriving

    async def deliver(self, message: IncomingMessage) -> None:
        """Take what arrived; when it returns, it is accepted, or needs nothing more.

        Raises:
            StoreError: it was not accepted; it may come again.
        """
        role = await self._people.role(message.user_id)
        if role is None:
            await self._stranger(message)
            return
        if not message.dedupe_key:
            message = replace(message, dedupe_key=new_id("i"))
        try:
            await self._arrived(message, role)
        except StoreError:
            raise  # the database cannot take it now; that is no fault of the message
        except Exception as error:  # raised again, until it has failed so often that those behind it go first
            raw, why = _raw(message), f"{type(error).__name__}: {error}"
            key, name = message.dedupe_key, self._channel.name
            if not await self._store.write(lambda c: note_failure(c, name, key, raw, why)):
                raise
            _log.exception("%s: update %s failed %d times and is set aside", name, key, MOST_ATTEMPTS)

    async def _stranger(self, message: IncomingMessage) -> None:
        """Nobody who is on no list gets anything, but with a code of ours they come onto one (AS-6, AS-7)."""
        name, code = parsed(message.text) if message.kind == "command" else ("", "")
        if name == "start" and code and message.is_private and message.user_id:
            role = await self._people.pair(message, code)
            if role is not None:
                may = "may write to me now" if role == "guest" else "are one of my owners now"
                await self._speaker.say(message.chat_id, f"Welcome. You {may}. /help lists what there is.")
                return
        self._people.refuse(message)

    async def _arrived(self, message: IncomingMessage, role: Role) -> None:
        if message.kind == "message" and not message.reset_session:
            text = meant(message, self._trigger())
            if text is None or not (text or message.media or message.images or message.image_base64):
                return
            is_plain = not message.media and not self._claude.takes(message, role)
            if is_plain and not self._waiting(message.chat_id):
                line = self._join(message.chat_id)
                try:
                    async with line.lock:
                        await self._accept_new(message, text, role)
                finally:
                    self._leave(message.chat_id, line)
                return
        if not await self._keep(message):
            await self._channel.acknowledge(message)

    async def _keep(self, message: IncomingMessage) -> bool:
        """Keep an update and begin to carry it out; False when it was kept before."""
        if self._waiting(message.chat_id) >= MOST_WAITING and self._is_ordered(message):
            self._full(message, "Too much is waiting in this chat; send it again in a while.")
            return True
        raw, key, name = _raw(message), message.dedupe_key, self._channel.name
        row = await self._store.write(lambda c: keep_update(c, name, key, raw))
        if row is not None:
            self._begin(row, message)
        return row is not None

    async def again(self, message: IncomingMessage) -> None:
        """Carry out once more what failed, under a key of its own."""
        await self._keep(replace(message, dedupe_key=new_id("i")))

    # ------------------------------------------------------------ carrying out

    def _begin(self, row: UpdateRow, message: IncomingMessage) -> None:
        if not self._has_stopped:
            ordered = self._is_ordered(message)
            line = self._join(message.chat_id)
            line.waiting += ordered
            self._in_hand.add(row.id)
            self._tasks.spawn(self._in_line(row, message, line, ordered=ordered))

    async def _in_line(self, row: UpdateRow, message: IncomingMessage, line: Line, *, ordered: bool) -> None:
        try:
            if ordered:
                async with line.lock:
                    await self._carry(row, message)
            else:
                await self._carry(row, message)
        finally:
            self._in_hand.discard(row.id)
            line.waiting -= ordered
            self._leave(message.chat_id, line)

    async def _carry(self, row: UpdateRow, message: IncomingMessage) -> None:
        while True:
            try:
                if await self._carried(row, message):
                    return
            except StoreError as error:
                _log.warning("%s: update %s: %s; it is tried again", row.channel, row.dedupe_key, error)
            await asyncio.sleep(AGAIN_S)

    async def _carried(self, row: UpdateRow, message: IncomingMessage) -> bool:
        """Carry an update out; False when it has to be tried again."""
        attempt = await self._store.write(lambda c: begin_update(c, row.id))
        if attempt > MOST_ATTEMPTS:
            why = f"{MOST_ATTEMPTS} processes ended while it was carried out"
            await self._store.write(lambda c: quarantine_update(c, row, _raw(message), why))
            _log.error("%s: update %s is set aside: %s", row.channel, row.dedupe_key, why)
            return True
        try:
            role = await self._people.role(message.user_id)  # who was denied meanwhile gets nothing more
            if role is not None:
                await self._act(message, role, is_again=attempt > 1 or row.attempts > 0)
        except (asyncio.CancelledError, StoreError):
            # An ordered end, or a database that is away, is no failure of the update.
            await asyncio.shield(self._store.write(lambda c: leave_update(c, row.id)))
            raise
        except Exception as error:  # noqa: BLE001  a defect ends this update with its name, not the chat
            _log.exception("%s: update %s failed", row.channel, row.dedupe_key)
            if message.kind == "message" and attempt < MOST_ATTEMPTS:
                return False  # what a command or a button did is not known: those are not repeated
            why = f"{type(error).__name__}: {error}"
            await self._store.write(lambda c: quarantine_update(c, row, _raw(message), why))
            await self._speaker.say(message.chat_id, f"That failed: {type(error).__name__}. The log has it.")
            return True
        await self._store.write(lambda c: finish_update(c, row.id))
        return True

    async def _act(self, message: IncomingMessage, role: Role, *, is_again: bool) -> None:
        try:
            if message.kind == "button":
                await self._press(message, role)
            elif message.kind == "command" or message.reset_session:
                asked = message if message.kind == "command" else replace(message, text="/new")
                answer = await self._commands.run(asked, role, is_again=is_again)
                await self._speaker.answer(message, answer)
            elif (done := await self._completed(message)) is not None:
                await self._said(done, role)
        except StoreError:
            raise
        except BowerbirdError as error:
            await self._speaker.say(message.chat_id, str(error), reply_to=message.message_id)

    async def _press(self, message: IncomingMessage, role: Role) -> None:
        said = "That was not done."
        try:
            said = await self._cards.press(message, role)
        finally:
            try:
                await self._channel.acknowledge(message, said)
            except ChannelError as error:
                _log.info("%s: a press was not acknowledged: %s", self._channel.name, error)

    async def _completed(self, message: IncomingMessage) -> IncomingMessage | None:
        """Return a message with what it brought; None where the sender was told why there is none."""
        try:
            return await self._channel.complete(message)
        except Rejected as error:
            card = VoiceAgain.card(message, await self._desk.known(message.chat_id) or "")
            face = VoiceAgain.face(str(error), message)
            await self._speaker.say(message.chat_id, face, card, reply_to=message.message_id)
            return None

    async def _said(self, message: IncomingMessage, role: Role) -> None:
        text = meant(message, self._trigger()) or message.transcript
        has_more = message.images or message.image_base64 or message.files or message.file_path
        if self._claude.takes(message, role):
            answer = NO_PICTURES if has_more else await self._claude.said(message, text) if text else None
            await self._speaker.answer(message, answer)
        elif text or has_more:
            await self._accept(message, text, role)

    async def _accept_new(self, message: IncomingMessage, text: str, role: Role) -> None:
        key, name = message.dedupe_key, self._channel.name
        if not await self._store.read(lambda c: is_known(c, name, key)):
            await self._accept(message, text, role)

    async def _accept(self, message: IncomingMessage, text: str, role: Role) -> None:
        """Make a message a turn, or say why it cannot be one."""
        try:
            receipt = await self._desk.submit(message, text, role=role)
            self._accepted(message, receipt)
            if receipt.open_request is not None:
                self._say(message, QUESTION_FIRST)
        except StoreError:
            raise
        except QueueFull as error:
            self._full(message, f"{str(error)[:1].upper()}{str(error)[1:]}")
        except BowerbirdError as error:
            self._say(message, str(error))

    def _full(self, message: IncomingMessage, text: str) -> None:
        """Say that nothing more is taken, once a minute, however many messages come."""
        now = asyncio.get_running_loop().time()
        self._told = {chat: at for chat, at in self._told.items() if now - at < FULL_S}
        if message.chat_id not in self._told:
            self._told[message.chat_id] = now
            self._say(message, text)

    def _say(self, message: IncomingMessage, text: str) -> None:
        self._tasks.spawn(self._speaker.say(message.chat_id, text, reply_to=message.message_id))

    # ------------------------------------------------------------ order

    def _is_ordered(self, message: IncomingMessage) -> bool:
        if message.kind == "message":
            return self._claude.is_ordered(message)
        return message.kind == "command" and self._commands.is_ordered(message.text)

    def _waiting(self, chat_id: str) -> int:
        line = self._lines.get(chat_id)
        return 0 if line is None else line.waiting

    def _join(self, chat_id: str) -> Line:
        line = self._lines.setdefault(chat_id, Line())
        line.users += 1
        return line

    def _leave(self, chat_id: str, line: Line) -> None:
        line.users -= 1
        if not line.users:
            self._lines.pop(chat_id, None)


def _raw(message: IncomingMessage) -> str:
    return json_text(message)
