"""A chat service in this process, and a channel that speaks to it as one would to Telegram.

Here: what people send and press, what the bot sent, edited and downloaded. Not here: the router, whose real code
the tests run; nothing of it is replaced.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, place

from bowerbird.channels.admission import Role
from bowerbird.channels.claude.mode import ClaudeRules
from bowerbird.channels.contract import (
    Button,
    ChannelError,
    Deliver,
    IncomingMessage,
    Media,
    SendResult,
)
from bowerbird.channels.facts import SkillFact
from bowerbird.channels.house import House, Rules, Surroundings
from bowerbird.channels.part import Channels
from bowerbird.sessions.values import NewSession
from bowerbird.store.rows.sessions import SessionRow

NAME = "chat"
PART = 400


@dataclass
class Shown:
    """One message of the bot, as people see it now."""

    message_id: str
    chat_id: str
    text: str
    buttons: Sequence[Sequence[Button]] = ()
    reply_to: str | None = None
    is_silent: bool = False
    is_plain: bool = False
    edits: int = 0

    def button(self, label: str) -> Button:
        return next(one for row in self.buttons for one in row if label in one.label)

    @property
    def labels(self) -> list[str]:
        return [one.label for row in self.buttons for one in row]


@dataclass
class ChatService:
    """A `Channel` and the service behind it; what it keeps outlives a restart of the bot."""

    name: str = NAME
    edits: bool = True
    buttons: bool = True
    files: bool = True
    voice: bool = True
    max_text: int = PART
    shown: dict[str, Shown] = field(default_factory=dict[str, Shown])
    sent: list[Shown] = field(default_factory=list[Shown])
    acknowledged: list[str] = field(default_factory=list[str])
    downloads: list[Media] = field(default_factory=list[Media])
    sent_files: list[tuple[str, str, bytes]] = field(default_factory=list[tuple[str, str, bytes]])
    failures: list[ChannelError | BaseException] = field(default_factory=list[Any])
    start_failures: list[Exception] = field(default_factory=list[Exception])
    starts: int = 0
    completed: Callable[[IncomingMessage], IncomingMessage] = lambda message: message
    deliver: Deliver | None = None
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    # ------------------------------------------------------------ the channel

    async def start(self, deliver: Deliver) -> None:
        self.starts += 1
        self._tell()
        if self.start_failures:
            raise self.start_failures.pop(0)
        self.deliver = deliver
        self._tell()

    async def stop(self) -> None:
        self.deliver = None

    def parts(self, text: str) -> Sequence[str]:
        return [text[at : at + PART] for at in range(0, len(text), PART)] or [""]

    async def send(
        self,
        chat_id: str,
        text: str,
        *,
        reply_to_message_id: str | None = None,
        disable_notification: bool = False,
        buttons: Sequence[Sequence[Button]] = (),
        edit_message_id: str | None = None,
        is_plain: bool = False,
    ) -> SendResult | None:
        if self.failures:
            raise self.failures.pop(0)
        assert len(text) <= self.max_text, "a part is too long"
        assert all(len(b.data.encode()) <= 64 for row in buttons for b in row)
        if edit_message_id is not None:
            message = self.shown[edit_message_id]
            message.text, message.buttons, message.edits = text, buttons, message.edits + 1
        else:
            number = f"b{next(self._numbers)}"
            message = Shown(
                number, chat_id, text, buttons, reply_to_message_id, disable_notification, is_plain
            )
            self.shown[number] = message
            self.sent.append(message)
        self._tell()
        return SendResult(message.message_id)

    async def send_file(self, chat_id: str, path: Path, caption: str = "") -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.sent_files.append((chat_id, path.name, path.read_bytes()))
        self._tell()

    async def complete(self, message: IncomingMessage) -> IncomingMessage:
        self.downloads += message.media
        return self.completed(message)

    async def acknowledge(self, message: IncomingMessage, said: str = "") -> None:
        if message.kind == "button":
            self.acknowledged.append(said)
            self._tell()

    # ------------------------------------------------------------ people

    async def say(
        self, text: str, *, user: str = "1", chat: str | None = None, **values: Any
    ) -> IncomingMessage:
        """Send a message, or a command, as a person does; returns when it is accepted."""
        message = self.message(text, user=user, chat=chat, **values)
        await self.arrive(message)
        return message

    def message(
        self, text: str, *, user: str = "1", chat: str | None = None, **values: Any
    ) -> IncomingMessage:
        number = next(self._numbers)
        kind = values.pop("kind", "command" if text.startswith("/") else "message")
        return IncomingMessage(
            channel=self.name, chat_id=chat or user, user_id=user, text=text, kind=kind,
            user_name=values.pop("name", "Ann"), is_private=values.pop("is_private", (chat or user) == user),
            message_id=values.pop("message_id", f"p{number}"), dedupe_key=values.pop("key", f"u{number}"),
            received_at="2026-11-20T05:12:00+00:00", **values,
        )  # fmt: skip

    async def press(self, shown: Shown, label: str, *, user: str = "1", chat: str | None = None) -> str:
        """Press a button; returns what is shown to whoever pressed it."""
        return await self.press_data(shown.button(label).data, shown, user=user, chat=chat)

    async def press_data(self, data: str, shown: Shown, *, user: str = "1", chat: str | None = None) -> str:
        before = len(self.acknowledged)
        await self.arrive(
            self.message(
                data, user=user, chat=chat or shown.chat_id, kind="button", message_id=shown.message_id
            )
        )
        await self.until(lambda: len(self.acknowledged) > before)
        return self.acknowledged[-1]

    async def arrive(self, message: IncomingMessage) -> None:
        assert self.deliver is not None, "the channel was not started"
        await self.deliver(message)

    # ------------------------------------------------------------ waiting

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(HANG_S):
            while not (found := condition()):
                self._news.clear()
                await self._news.wait()
        return found

    async def wait_text(self, text: str, *, chat: str | None = None) -> Shown:
        """Wait for a message of the bot that holds a text."""
        return await self.until(
            lambda: next(
                (one for one in self.shown.values() if text in one.text and chat in (None, one.chat_id)), None
            )
        )

    @property
    def outgoing(self) -> int:
        """Everything that went out."""
        return len(self.sent) + len(self.acknowledged) + len(self.sent_files) + len(self.downloads)

    def _tell(self) -> None:
        self._news.set()


@dataclass
class PlainFacts:
    """Facts of a process without a settings tree."""

    names: tuple[str, ...] = ("lite", "pro")
    found: tuple[SkillFact, ...] = ()

    def model(self, session: SessionRow | None) -> str:
        return str(session.flags.get("model", "fake")) if session is not None else "fake"

    def tiers(self) -> Sequence[str]:
        return self.names

    async def skills(self, session: SessionRow | None) -> Sequence[SkillFact]:
        return self.found


@dataclass
class Chatting:
    """An open service with one running channel."""

    home: Place
    service: ChatService
    channels: Channels

    @property
    def house(self) -> House:
        return self.channels.houses[0]


@asynccontextmanager
async def chatting(
    directory: Path,
    fake: FakeModels,
    service: ChatService,
    *,
    users: dict[str, Role] | None = None,
    trigger: str = "@Bowerbird",
    policy: str = "review",
    extra: Callable[[str], Any] = lambda _: (),
    is_started: bool = True,
    claude: Callable[[], ClaudeRules] | None = None,
    claude_file: Path | None = None,
    **options: Any,
) -> AsyncIterator[Chatting]:
    """Open sessions with a channel; opening it twice in a row is a restart."""
    listed: dict[str, Role] = {"1": "owner", "2": "guest"} if users is None else users
    project = str(directory / "project")
    rules = Rules(lambda: listed, lambda: trigger)
    held: list[Channels] = []

    def parts(sessions: Any) -> list[Any]:
        defaults = NewSession(workspace=project, policy=policy)
        around = Surroundings(
            sessions, PlainFacts(), lambda: msgspec.structs.replace(defaults), extra, claude_file=claude_file
        )
        if claude is not None:
            around = replace(around, claude=claude)
        held.append(Channels(lambda: [(service, rules)], lambda: around, pause_s=0.01))
        return held

    async with place(directory, fake, parts=parts, **options) as home:
        if is_started:
            await service.until(lambda: service.deliver)
        yield Chatting(home, service, held[0])
