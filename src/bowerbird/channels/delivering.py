"""What the outbox gives a channel: answers, questions, errors, files, as messages (SE-37, AS-19).

Here: the parts of each and which of them arrived, the summary behind an answer, errors in the outbox's words.
Not here: when to try again (`sessions/delivery/outbox.py`), what a summary or a question looks like.

Each part that arrived is noted under the parcel's key, so that a crash repeats at most one.
"""

import contextlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from bowerbird.channels.cards import CardDesk, Face, card_of
from bowerbird.channels.contract import Channel, Gone, Rejected, RetryLater
from bowerbird.channels.details import DetailCards
from bowerbird.channels.live import LiveAnswers
from bowerbird.channels.request_cards import RequestCards, RetryCards, face_of
from bowerbird.channels.review.review_cards import ReviewCards
from bowerbird.channels.review.review_faces import whole
from bowerbird.channels.review.summary import plain
from bowerbird.core.errors import BowerbirdError, StoreError
from bowerbird.core.forms import decode
from bowerbird.core.threads import to_thread
from bowerbird.sessions.delivery.messages import Parcel
from bowerbird.sessions.delivery.outbox import DeliveryFailed
from bowerbird.sessions.service import SessionService
from bowerbird.store.channels.cards import CardRow, newest_card
from bowerbird.store.channels.updates import note_sent, sent_parts
from bowerbird.store.rows.turns import MESSAGE_KINDS, find_turn, inputs_of

MOST_PARTS = 10  # beyond them: the first, and the whole as a file
SUMMARY_PART = 1000
FILE_PART = 1001
WHOLE_NAME = "answer.md"


@dataclass(frozen=True, slots=True)
class _Message:
    """One part on its way: of which parcel, in answer to what, in place of which message, as which card."""

    key: str
    number: int
    reply_to: str | None
    edits: str | None
    silent: bool
    card: CardRow | None = None


class ChannelDeliverer:
    """Delivers for one channel; see `sessions.delivery.outbox.Deliverer`."""

    def __init__(
        self,
        sessions: SessionService,
        channel: Channel,
        *,
        cards: CardDesk,
        review: ReviewCards,
        requests: RequestCards,
        live: LiveAnswers,
        details: DetailCards,
    ) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._channel = channel
        self._cards = cards
        self._review = review
        self._requests = requests
        self._live = live
        self._details = details

    @property
    def door(self) -> str:
        """The channel's name."""
        return self._channel.name

    def parts(self, text: str) -> Sequence[Mapping[str, Any]]:
        """Leave an answer whole: it is cut when it is sent, by whichever process does that."""
        return [{"text": text}]

    async def send(self, address: str, parcel: Parcel, key: str) -> str | None:
        """See `Deliverer.send`."""
        turn_id = key.partition(":")[0]
        try:
            match parcel.kind:
                case "request":
                    return await self._request(address, parcel, key, turn_id)
                case "error":
                    return await self._error(address, parcel, key, turn_id)
                case "file":
                    return await self._file(address, parcel, key, turn_id)
                case _:
                    return await self._answer(address, parcel, key, turn_id)
        except RetryLater as error:
            raise DeliveryFailed(str(error), retry_after_s=error.seconds) from error
        except Gone as error:
            raise DeliveryFailed(str(error), is_final=True) from error
        except Rejected as error:
            # Once more as plain text was tried already, for the one part that was refused.
            raise DeliveryFailed(str(error), is_final=True) from error

    # ------------------------------------------------------------ kinds

    async def _answer(self, address: str, parcel: Parcel, key: str, turn_id: str) -> str | None:
        is_schedule = parcel.kind == "schedule"
        asked = {} if is_schedule else await self._asked_by(turn_id)
        text = _heard(asked) + str(parcel.content.get("text") or "")
        silent = is_schedule and parcel.content.get("silent") is not False
        sent = await self._store.read(lambda c: sent_parts(c, self.door, key))
        reply_to = asked.get("message")
        parts = list(self._channel.parts(text))
        shown = parts[:1] if len(parts) > MOST_PARTS else parts
        for number, part in enumerate(shown):
            if number not in sent:
                first, last = number == 0, number == len(shown) - 1
                # The message that showed the answer as it was written becomes its first part.
                edits = await self._live.settled(turn_id) if first else None
                reply = reply_to if first and edits is None else None
                card = await self._details_of(address, turn_id) if last else None
                await self._part(address, part, _Message(key, number, reply, edits, silent, card))
        if len(parts) > MOST_PARTS and FILE_PART not in sent:
            await self._whole(address, text)
            await self._store.write(lambda c: note_sent(c, self.door, key, FILE_PART, ""))
        if SUMMARY_PART not in sent:
            thread_id = parcel.content.get("review") or await self._thread_of(turn_id)
            if thread_id is not None:
                await self._summary(address, str(thread_id), key, silent=silent)
        return None

    async def _thread_of(self, turn_id: str) -> str | None:
        turn = await self._store.read(lambda c: find_turn(c, turn_id))
        return None if turn is None else turn.thread_id

    async def _details_of(self, address: str, turn_id: str) -> CardRow | None:
        turn = await self._store.read(lambda c: find_turn(c, turn_id))
        return None if turn is None else await self._details.card(address, turn.thread_id, turn_id)

    async def _part(self, address: str, part: str, message: "_Message") -> None:
        async def send(*, is_plain: bool) -> str:
            if message.card is not None:
                face = Face(part, DetailCards.rows, is_plain=is_plain, is_part=True)
                shown = await self._cards.show(
                    address, face, message.card, reply_to=message.reply_to, silent=message.silent,
                    edits=message.edits,
                )  # fmt: skip
                return shown or ""
            sent = await self._channel.send(
                address, part, reply_to_message_id=message.reply_to, edit_message_id=message.edits,
                disable_notification=message.silent, is_plain=is_plain,
            )  # fmt: skip
            return "" if sent is None else sent.message_id

        try:
            message_id = await send(is_plain=False)
        except Rejected:
            message_id = await send(is_plain=True)
        key, number = message.key, message.number
        await self._store.write(lambda c: note_sent(c, self.door, key, number, message_id))

    async def _whole(self, address: str, text: str) -> None:
        def made() -> Path:
            path = Path(tempfile.mkdtemp(prefix="bowerbird-")) / WHOLE_NAME
            path.write_text(text, encoding="utf-8")
            return path

        def gone(path: Path) -> None:
            with contextlib.suppress(OSError):
                path.unlink()
                path.parent.rmdir()

        path = await to_thread(made)
        try:
            await self._channel.send_file(address, path, "The whole answer")
        finally:
            await to_thread(gone, path)

    async def _summary(self, address: str, thread_id: str, key: str, *, silent: bool) -> None:
        """Show what is not landed, when it is not what was shown last (AS-25)."""
        try:
            summary = await self._review.summary(thread_id)
        except StoreError:
            raise
        except BowerbirdError:
            return  # the branch is busy or gone: the answer arrived, and /diff shows the rest
        known = await self._store.read(lambda c: newest_card(c, thread_id, ReviewCards.kind))
        if summary.is_empty or (known is not None and known.body.get("plan") == summary.plan):
            return
        card = self._review.card(address, thread_id, summary)
        await self._show(address, whole(summary), card, key, SUMMARY_PART, silent=silent)

    async def _request(self, address: str, parcel: Parcel, key: str, turn_id: str) -> str | None:
        turn = await self._store.read(lambda c: find_turn(c, turn_id))
        sent = await self._store.read(lambda c: sent_parts(c, self.door, key))
        if turn is None or 0 in sent:
            return sent.get(0)
        content = parcel.content
        pending = await self._sessions.pending(turn.thread_id)
        face = face_of(content)
        if content.get("request_id") not in {one.request_id for one in pending}:
            # It was answered before it was delivered, from the page say: nobody is asked again.
            return None
        card = self._requests.card(address, turn.thread_id, content)
        return await self._show(
            address, face, card, key, 0, reply_to=(await self._asked_by(turn_id)).get("message")
        )

    async def _error(self, address: str, parcel: Parcel, key: str, turn_id: str) -> str | None:
        turn = await self._store.read(lambda c: find_turn(c, turn_id))
        sent = await self._store.read(lambda c: sent_parts(c, self.door, key))
        if 0 in sent:
            return sent[0]
        text = str(parcel.content.get("text") or "The turn failed.")
        thread_id = "" if turn is None else turn.thread_id
        body = {"turn_id": turn_id, "text": text}
        card = card_of(self.door, address, thread_id, RetryCards.kind, body)
        face = Face(text, RetryCards.rows if turn is not None else ())
        return await self._show(
            address, face, card, key, 0, reply_to=(await self._asked_by(turn_id)).get("message")
        )

    async def _file(self, address: str, parcel: Parcel, key: str, turn_id: str) -> str | None:
        """Send a file of the branch, copied out of it first: nothing else can be named (AS-24)."""
        turn = await self._store.read(lambda c: find_turn(c, turn_id))
        path, caption = str(parcel.content.get("path") or ""), str(parcel.content.get("caption") or "")
        sent = await self._store.read(lambda c: sent_parts(c, self.door, key))
        if turn is None or 0 in sent:
            return None
        try:
            await self._send_file(address, turn.thread_id, path, caption)
        except Rejected as error:  # the agent has said that it is on its way
            await self._channel.send(address, f"{path} could not be sent: {error}", is_plain=True)
        await self._store.write(lambda c: note_sent(c, self.door, key, 0, ""))
        return None

    async def _send_file(self, address: str, thread_id: str, path: str, caption: str) -> None:
        branch = await self._sessions.branch(thread_id)
        try:
            content = await branch.read_bytes(path)
        except StoreError:
            raise
        except BowerbirdError:  # it was deleted since, or is hidden
            await self._channel.send(address, f"File not found: {path}", is_plain=True)
            return
        directory = Path(await to_thread(tempfile.mkdtemp, prefix="bowerbird-"))
        copy = directory / Path(path).name

        def gone() -> None:
            with contextlib.suppress(OSError):
                copy.unlink()
                directory.rmdir()

        try:
            await to_thread(copy.write_bytes, content)
            await self._channel.send_file(address, copy, caption)
        finally:
            await to_thread(gone)

    # ------------------------------------------------------------ common

    async def _show(
        self, address: str, face: Face, card: CardRow, key: str, part: int, *,
        reply_to: str | None = None, silent: bool = False,
    ) -> str | None:  # fmt: skip
        def same(connection: Connection, message_id: str) -> None:
            note_sent(connection, self.door, key, part, message_id)

        try:
            return await self._cards.show(address, face, card, reply_to=reply_to, silent=silent, same=same)
        except Rejected:
            plain = Face(face.text, face.rows, is_plain=True)
            return await self._cards.show(address, plain, card, reply_to=reply_to, silent=silent, same=same)

    async def _asked_by(self, turn_id: str) -> dict[str, str]:
        """Return the `message` that a turn answers, if it came from this channel, and what was `heard`."""
        rows = await self._store.read(lambda c: inputs_of(c, turn_id=turn_id, kinds=MESSAGE_KINDS))
        for row in rows:
            if row.door == self.door:
                sender = decode(row.sender, dict[str, Any])
                return {name: str(sender[name]) for name in ("message", "heard") if sender.get(name)}
        return {}


def _heard(asked: Mapping[str, str]) -> str:
    """Return what was said in a voice message as a quote, "" for any other (AS-22). Pure."""
    lines = asked.get("heard", "").split("\n")
    return "\n".join(f"> {plain(line)}" for line in lines) + "\n\n" if lines != [""] else ""
