"""Two servers on one database and one bot: what one has accepted and begun, the other leaves alone, until it dies."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.chats import ChatService, chatting

from bowerbird.channels.contract import IncomingMessage, Media

VOICE = Media("voice", "v1", mime_type="audio/ogg", size=100)


@dataclass
class Elected(ChatService):
    """A service where one process receives at a time, and whose downloads wait to be let."""

    begun: Callable[[], Awaitable[None]] | None = None
    let: asyncio.Event = field(default_factory=asyncio.Event)

    def when_receiving(self, begun: Callable[[], Awaitable[None]]) -> None:
        self.begun = begun

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        self.downloads.append(message.media[0])
        self._tell()
        await self.let.wait()
        return replace(message, transcript="buy milk")

    async def elect(self) -> None:
        await self.until(lambda: self.begun)
        assert self.begun is not None
        await self.begun()


async def test_what_one_server_works_on_is_not_begun_by_another_until_that_one_receives(
    tmp_path: Path, fake: Any
) -> None:
    """AS-13, AS-14: a server that starts carries out nothing that another one does; who takes over carries it out once."""
    fake.script({"text": "milk it is"})
    one, two = Elected(), Elected()
    async with chatting(tmp_path, fake, two) as second:
        async with chatting(tmp_path, fake, one):
            await one.elect()
            await one.say("", media=(VOICE,))
            await one.until(lambda: one.downloads)
            await one.elect()  # its lease was lost and taken again: it has that in hand
            assert len(one.downloads) == 1 and not two.downloads
        two.let.set()
        await two.elect()
        await two.wait_text("milk it is")
        assert len(two.downloads) == 1
        assert len(await second.home.service.turns("chat_1")) == 1


async def test_a_server_that_starts_beside_another_carries_out_nothing(tmp_path: Path, fake: Any) -> None:
    """AS-14: before, each server that started began again what the first one was at."""
    fake.script({"text": "milk it is"})
    one, two = Elected(), Elected()
    async with chatting(tmp_path, fake, one) as first:
        await one.elect()
        await one.say("", media=(VOICE,))
        await one.until(lambda: one.downloads)
        async with chatting(tmp_path, fake, two):
            await two.say(
                "/status", user="2", key="other"
            )  # what would have been begun at its start came before this
            await two.until(lambda: two.sent)
            assert not two.downloads
        one.let.set()
        await one.wait_text("milk it is")
        assert len(await first.home.service.turns("chat_1")) == 1
