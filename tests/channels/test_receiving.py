"""Who polls, and a voice message that is tried once more (AS-13, AS-22)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select
from support.chats import ChatService, Chatting, chatting
from support.stores import opened

from bowerbird.channels.cards import EXPIRED, NOT_FOR_YOU
from bowerbird.channels.contract import Media, Rejected
from bowerbird.channels.receiving import PollerLease
from bowerbird.core.timestamps import to_iso
from bowerbird.store.channels.cards import find_card, set_body
from bowerbird.store.channels.updates import waiting_updates
from bowerbird.store.sql.channel_tables import channel_cards
from bowerbird.store.sql.tables import meta

VOICE = Media("voice", "v1", "voice.oga", "audio/ogg", 10)


async def test_one_process_polls_with_a_token_and_the_next_when_it_gives_up(
    tmp_path: Path, database_url: str
) -> None:
    """AS-13: the token is kept nowhere; another token is another lease; what is not renewed runs out."""
    async with opened(tmp_path, url=database_url) as store:
        one, two = (PollerLease(store, "telegram", "1:secret", holder) for holder in ("one", "two"))
        other = PollerLease(store, "telegram", "2:secret", "two")
        assert [await lease.acquire() for lease in (one, two, other)] == [True, False, True]
        assert await one.renew() and not await two.renew()
        await two.release()  # not its own: nothing happens
        assert not await two.acquire()
        rows = await store.read(lambda c: [tuple(row) for row in c.execute(select(meta))])
        assert "secret" not in str(rows)
        await one.release()
        assert await two.acquire() and not await one.renew()

        def run_out(connection: Any) -> None:
            is_lease = meta.c.key.startswith("lease:telegram:")
            [until, *_] = connection.scalars(select(meta.c.value).where(is_lease)).all()
            late = until.replace(until[:4], "2001", 1).rpartition(" ")[0] + " two"
            connection.execute(meta.update().where(is_lease).values(value=late))

        await store.write(run_out)
        assert await one.acquire() and not await two.renew()


async def test_a_voice_message_that_failed_is_tried_again_by_who_sent_it(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-22: says why; Retry for 24 hours, also after a restart; a second press makes no second turn."""
    fake.script({"text": "milk it is"})
    broken = [1, 1]

    def completed(message: Any) -> Any:
        if broken:
            broken.pop()
            raise Rejected("The voice message could not be transcribed: the service is away.")
        return replace(message, transcript="buy milk", media=message.media)

    service.completed = completed
    async with chatting(tmp_path, fake, service) as chat:
        await service.say("", media=(VOICE,))
        shown = await service.wait_text("service is away")
        assert shown.labels == ["Retry"]
        assert await service.press(shown, "Retry", user="2", chat="1") == NOT_FOR_YOU
        assert await service.press(shown, "Retry") == "Trying again"
        again = await service.until(
            lambda: next((s for s in service.sent[1:] if s.labels == ["Retry"]), None)
        )
        await chat.home.until(lambda: _nothing_waits(chat))
    async with chatting(tmp_path, fake, service) as chat:
        data = again.button("Retry").data
        assert await service.press_data(data, again) == "Trying again"
        await service.wait_text("milk it is")
        assert await service.press_data(data, again) == "Trying again"
        turns = await chat.home.service.turns("chat_1")
        assert len(turns) == 1
        said = [m.content for m in await chat.home.service.messages("chat_1") if m.role == "user"]
        assert said == ["buy milk"]


async def _nothing_waits(chat: Chatting) -> bool:
    return not await chat.home.store.read(lambda c: waiting_updates(c, "chat"))


async def test_after_a_day_a_voice_message_is_not_tried_again(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-22."""

    def completed(message: Any) -> Any:
        raise Rejected(
            "Voice is not configured: set transcription.enabled to true and transcription.api_key."
        )

    service.completed = completed
    async with chatting(tmp_path, fake, service) as chat:
        await service.say("", media=(VOICE,))
        shown = await service.wait_text("transcription.enabled")

        def age(connection: Any) -> None:
            card = connection.execute(select(channel_cards)).mappings().one()
            found = find_card(connection, card["card_id"])
            assert found is not None
            late = to_iso(datetime.now(UTC) - timedelta(seconds=1))
            set_body(connection, found.card_id, found.body | {"until": late})

        await chat.home.store.write(age)
        assert await service.press(shown, "Retry") == EXPIRED
        assert len(service.downloads) == 1
