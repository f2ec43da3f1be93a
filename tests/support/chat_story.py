"""An assistant's whole day, played against a Telegram that keeps what people see (issue 15, must show 1).

Here: the recording, the story. Not here: printing it (`benchmarks/assistant_day.py`), pictures of it
(`scripts/chat_pictures.py`).
"""

import asyncio
import json
import signal
import struct
import time
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.assistants import Assistant
from support.fake_models import FakeModels
from support.fake_telegram import Call, FakeTelegram
from support.fake_transcription import KEY, FakeTranscription

PERSON, BOT, NOTE = "Ann", "Bowerbird", "*"
CHAT = 7
SKILL = "---\nname: shopping\ndescription: How Ann likes her shopping lists.\n---\nGroup by shop.\n"
HIDDEN = "---\nname: music\ndescription: Plays music.\nrequires_env: MUSIC_KEY\n---\nPlay it.\n"


@dataclass
class Line:
    """One message of the chat as it looks in the end, or a note of what happened outside."""

    who: str
    text: str
    message_id: int = 0
    buttons: list[list[str]] = field(default_factory=list[list[str]])
    edits: int = 0
    kind: str = "text"
    at: float = 0.0


class Recording(FakeTelegram):
    """A Bot API server that keeps the chat as people see it."""

    def begin(self) -> None:
        self.lines: list[Line] = []
        self.events: list[Line] = []
        self.begun = time.monotonic()

    def note(self, text: str, who: str = NOTE, **more: Any) -> None:
        self.lines.append(Line(who, text, at=time.monotonic() - self.begun, **more))
        self.events.append(self.lines[-1])

    async def message(self, message: dict[str, Any], chat: int = CHAT, user: int = CHAT) -> int:
        kind = next((kind for kind in ("photo", "voice", "document") if kind in message), "text")
        text = str(message.get("text") or message.get("caption") or "")
        self.note(
            text, PERSON if user == CHAT else f"user {user}", kind=kind, message_id=self._next_message + 1
        )
        return await super().message(message, chat, user)

    async def _result(self, call: Call, request: Any) -> Any:
        result = await super()._result(call, request)
        rows = (call.params.get("reply_markup") or {}).get("inline_keyboard", [])
        buttons = [[str(one["text"]) for one in row] for row in rows]
        if call.method == "sendMessage":
            self.note(call.text, BOT, message_id=result["message_id"], buttons=buttons)
        elif call.method == "sendDocument":
            self.note(f"{call.file_name}", BOT, kind="document", message_id=result["message_id"])
        elif call.method == "editMessageText":
            number = int(call.params["message_id"])
            for index, line in enumerate(self.lines):
                if line.who != BOT or line.message_id != number:
                    continue
                if line.buttons:  # what it was is part of the story
                    now = time.monotonic() - self.begun
                    self.lines[index] = Line(BOT, call.text, number, buttons, kind="changed", at=now)
                    self.events.append(self.lines[index])
                else:
                    line.text, line.buttons, line.edits = call.text, buttons, line.edits + 1
        return result

    def shows(self, text: str, since: int = 0) -> Line | None:
        found = [line for line in self.lines[since:] if line.who == BOT and text in line.text]
        return found[-1] if found else None


@dataclass
class Day:
    """The story; `pause` is told when a chapter ends, with its name."""

    assistant: Assistant
    bot: Recording
    fake: FakeModels
    pause: Callable[[str], Awaitable[None]]
    since: int = 0
    _offset: int = 0

    async def say(self, text: str, expects: str, **more: Any) -> Line:
        """Ann writes, and waits for an answer that holds a text."""
        self.since = len(self.bot.lines)
        entities = [{"type": "bot_command", "offset": 0, "length": len(text.split(maxsplit=1)[0])}]
        more |= {"entities": entities} if text.startswith("/") else {}
        await self.bot.say(text, **more)
        return await self.sees(expects)

    async def sees(self, text: str) -> Line:
        await self.bot.until(lambda: self.bot.shows(text, self.since))
        found = self.bot.shows(text, self.since)
        assert found is not None
        return found

    async def press(self, line: Line, label: str, expects: str) -> Line:
        """Ann presses a button of a message."""
        known = self.bot.messages[CHAT, line.message_id]
        rows = (known["markup"] or {})["inline_keyboard"]
        data = next(one["callback_data"] for row in rows for one in row if label in one["text"])
        self.bot.note(f"Ann presses [{label}]")
        before = json.dumps([vars(one) for one in self.bot.lines if one.who == BOT])

        def changed() -> bool:
            now = json.dumps([vars(one) for one in self.bot.lines if one.who == BOT])
            return now != before and self.bot.shows(expects) is not None

        await self.bot.update(
            callback_query={
                "id": f"q{len(self.bot.calls)}", "from": {"id": CHAT, "is_bot": False, "first_name": PERSON},
                "chat_instance": "1", "data": data, "message": known["message"],
            }
        )  # fmt: skip
        await self.bot.until(changed)
        found = self.bot.shows(expects)
        assert found is not None
        return found

    async def up(self) -> None:
        """Start the server, and wait until it receives."""
        polls = len(self.bot.of("getUpdates"))
        self.assistant.start()
        await self.bot.until(lambda: len(self.bot.of("getUpdates")) > polls)

    async def down(self, number: int) -> None:
        await asyncio.to_thread(self.assistant.kill, number)

    # ------------------------------------------------------------ the day

    async def play(self) -> None:
        """Play it from the first start to the last answer."""
        await self.up()
        await self._pairing()
        await self._list()
        await self._seeing_and_hearing()
        await self._asking()
        await self._morning()
        await self._memory_and_skills()
        await self._death()

    async def _pairing(self) -> None:
        await self.bot.say("let me in", user=666, chat=666)
        await self.bot.until(lambda: self.bot.offset > self.bot._next_update)
        self.bot.note("user 666 is on no list: nothing goes out, and the model is not asked")
        assert not self.fake.request_count
        said = await self.assistant.run("channels", "pair", "telegram")
        code = next(word for word in said.split() if len(word) == 8 and word.isalnum() and word.isupper())
        self.bot.note("$ bowerbird channels pair telegram")
        await self.say(f"/start {code}", "")
        await self.pause("pairing")

    async def _list(self) -> None:
        content = "# Saturday\n\n- milk\n- bread\n- two lemons\n"
        self.fake.script(
            {"tools": [_write("lists/saturday.md", content), _write("lists/budget.md", "30 €\n")]},
            {"text": "I wrote **lists/saturday.md** with three things, and put the budget beside it:\n\n"
                     "| what | where |\n|---|---|\n| milk | dairy |\n| bread | baker |\n| lemons | market |"},
        )  # fmt: skip
        await self.say(
            "Make a shopping list for Saturday: milk, bread, two lemons. At most 30 €.", "three things"
        )
        summary = await self.sees("saturday.md</code>")
        await self.pause("summary")
        landed = await self.press(summary, "Land", "Landed 2 files")
        assert (self.assistant.workspace / "lists" / "saturday.md").read_text() == content
        await self.press(landed, "Undo", "back:")
        assert not (self.assistant.workspace / "lists" / "saturday.md").exists()
        await self.say("/diff", "saturday.md")
        summary = await self.say("/land", "Landed")
        await self.pause("landed")

    async def _seeing_and_hearing(self) -> None:
        self.bot.files |= {"pic": _picture(), "words": b"OggS" + bytes(200)}
        self.fake.script(
            {"text": "That is the receipt of the **baker**: 4.20 €, on Friday. Shall I note it?"}
        )
        self.since = len(self.bot.lines)
        photo = [{"file_id": "pic", "file_unique_id": "pic", "width": 8, "height": 8, "file_size": 100}]
        await self.bot.message({"photo": photo, "caption": "What did I pay here?"})
        await self.sees("receipt of the")
        self.fake.script({"text": "Noted: the bread is bought."})
        self.since = len(self.bot.lines)
        voice = {
            "file_id": "words",
            "file_unique_id": "w",
            "duration": 3,
            "mime_type": "audio/ogg",
            "file_size": 204,
        }
        await self.bot.message({"voice": voice})
        await self.sees("the bread is bought")
        await self.pause("voice")

    async def _asking(self) -> None:
        self.fake.script(
            {
                "tools": [
                    {"name": "host_execute", "input": {"bridge": "music", "command": "echo playing Bach"}}
                ]
            },
            {"text": "Bach is playing."},
        )
        question = await self.say("Play some Bach in the kitchen", "host_execute")
        await self.pause("question")
        await self.press(question, "Approve", "Bach is playing")

    async def _morning(self) -> None:
        due = datetime.now(UTC) + timedelta(seconds=15)
        at = due.isoformat(timespec="seconds")
        self.fake.script(
            {"text": "Good morning! Today: the dentist at ten, and the shopping list is in lists/."}
        )
        made = await self.assistant.run(
            "tasks", "add", "Tell me what is due today", "--at", at, "--channel", "telegram", "--chat", str(CHAT),
        )  # fmt: skip
        assert made
        await self.say("/tasks", "due today")
        await self.pause("tasks")
        self.since = len(self.bot.lines)
        await self.down(signal.SIGTERM)
        self.bot.note("the server is stopped; the time of the task comes and goes")
        await asyncio.sleep(max(1.0, (due - datetime.now(UTC)).total_seconds() + 1))
        await self.up()
        self.bot.note("the server is back")
        await self.sees("Good morning!")
        await self.pause("morning")

    async def _memory_and_skills(self) -> None:
        (self.assistant.workspace / "MEMORY.md").write_text("Ann drinks tea, never coffee.\n")
        for name, text in (("shopping", SKILL), ("music", HIDDEN)):
            place = self.assistant.workspace / "skills" / name
            place.mkdir(parents=True)
            (place / "SKILL.md").write_text(text)
        self.fake.script({"text": "A pot of tea, as always."})
        await self.say("What shall I drink now?", "as always")
        assert "Ann drinks tea" in json.dumps(self.fake.requests[-1]["system"])
        assert "shopping" in json.dumps(self.fake.requests[-1]["system"])
        await self.say("/memory", "never coffee")
        await self.say("/skills", "MUSIC_KEY")
        await self.pause("memory")
        await self.say("/new", "new")

    async def _death(self) -> None:
        self.fake.script({"text": "Once upon a time " * 20, "deltas": 40, "gap_s": 0.1})
        await self.say("Tell me a story", "Once")
        await self.bot.until(lambda: any(line.edits for line in self.bot.lines[self.since :]))
        await self.down(signal.SIGKILL)
        self.bot.note("kill -9 of the server, in the middle of the answer")
        self.fake.script(
            {"text": "Once upon a time a bowerbird built a house, and all of it was blue. *The end.*"}
        )
        await self.up()
        story = await self.sees("The end.")
        answers = [line for line in self.bot.lines[self.since :] if line.who == BOT and "Once" in line.text]
        assert answers == [story], "one message: what showed the answer became the whole of it"
        await self.pause("story")


def settings(transcription: FakeTranscription, gateway: dict[str, Any]) -> dict[str, Any]:
    """What the day needs besides a bot."""
    return {
        "transcription": {"enabled": True, "provider": "openai", "api_key": KEY, "base_url": transcription.url},
        "gateway": gateway,
    }  # fmt: skip


def readable(lines: list[Line]) -> str:
    """The chat as text."""
    from support import telegram_html

    shown: list[str] = []
    for line in lines:
        text = telegram_html.read(line.text).text if line.who == BOT else line.text
        what = {
            "photo": "[photo] ",
            "voice": "[voice message] ",
            "document": "[document] ",
            "changed": "(changed) ",
        }.get(line.kind, "")
        head = f"{line.at:6.1f} s  {line.who:>10}: "
        body = (what + text).rstrip().replace("\n", "\n" + " " * len(head))
        edits = f"   (edited {line.edits} ×)" if line.edits else ""
        shown.append(f"{head}{body}{edits}")
        shown += [" " * len(head) + "  ".join(f"[{label}]" for label in row) for row in line.buttons]
    return "\n".join(shown)


def _write(path: str, content: str) -> dict[str, Any]:
    return {"name": "write_file", "input": {"path": path, "content": content}}


def _picture() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes([200, 180, 120] * 8) for _ in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


async def play_day(place: Path, pause: Callable[[str, list[Line]], Awaitable[None]]) -> list[Line]:
    """Play the whole day in a directory; return the chat."""
    from support.fake_telegram import fake_telegram
    from support.fake_transcription import fake_transcription
    from support.gateways import TOKEN, Running

    host = place / "host"
    host.mkdir()
    bridge = {"allowed_commands": ["echo"], "token": TOKEN}
    gateway = Running(host, {"bridges": {"music": bridge}})
    url = {"enabled": True, "url": f"unix:{gateway.socket}", "bridges": {"music": bridge}}
    try:
        with FakeModels() as fake:
            async with fake_telegram(Recording) as bot, fake_transcription() as heard:
                assert isinstance(bot, Recording)
                bot.begin()
                heard.text = "By the way, I have bought the bread"
                assistant = Assistant(place, fake, bot, more=settings(heard, url))

                async def told(name: str) -> None:
                    await pause(name, bot.lines)

                try:
                    await Day(assistant, bot, fake, told).play()
                finally:
                    await asyncio.to_thread(assistant.close)
                return bot.events
    finally:
        await asyncio.to_thread(gateway.stop)
