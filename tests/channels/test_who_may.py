"""An unlisted person, a guest and an owner each try everything; what happened is the manual's table (AS-4 … AS-6).

`BOWERBIRD_WRITE_TABLE=1 pytest tests/channels/test_who_may.py` writes the table into the manual.
"""

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import func, select
from support.chats import ChatService, Chatting, chatting

from bowerbird.agent.policy import Policy
from bowerbird.channels.cards import NOT_FOR_YOU
from bowerbird.channels.commands import OWNER_ONLY
from bowerbird.channels.contract import Media
from bowerbird.store.channels.updates import waiting_updates
from bowerbird.store.sql.tables import outbox

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "assistant.md"
BEGIN, END = "<!-- who may: written by tests/channels/test_who_may.py -->", "<!-- end of who may -->"
PEOPLE = {"9": "not listed", "2": "guest", "1": "owner"}
GROUP = "-5"
OWED = select(func.count()).select_from(outbox).where(outbox.c.state.in_(("pending", "sending")))
REFUSALS = (NOT_FOR_YOU, OWNER_ONLY)

Try = Callable[["Desk", str], Awaitable[None]]


class Desk:
    """A group that all three are in, and what the bot shows there."""

    def __init__(self, chat: Chatting, service: ChatService, asking: list[bool]) -> None:
        self.chat, self.service, self.asking = chat, service, asking
        self._files = 0

    async def say(self, text: str, user: str, **values: Any) -> None:
        await self.service.say(text, user=user, chat=GROUP, **{"mentions_bot": True, **values})

    async def shows(self, label: str, *, asks: bool = False) -> None:
        """Have an owner's turn write a file, and wait for a button that comes of it."""
        self._files += 1
        self.asking[:] = [asks]
        before = len(self.service.sent)
        await self.say(f"write f{self._files}.txt and g{self._files}.txt", "1")
        await self.service.until(lambda: any(label in one.labels for one in self.service.sent[before:]))

    async def press(self, label: str, user: str) -> None:
        shown = next(one for one in reversed(self.service.sent) if label in one.labels)
        message = self.service.message(
            shown.button(label).data, user=user, chat=GROUP, kind="button", message_id=shown.message_id
        )
        await self.service.arrive(message)

    async def rests(self) -> None:
        """Wait until no turn runs and no update is carried out."""

        async def is_idle() -> bool:
            thread_id = await self.chat.house.desk.known(GROUP)
            turns = [] if thread_id is None else await self.chat.home.service.turns(thread_id)
            left = await self.chat.home.store.read(lambda c: waiting_updates(c, self.service.name))
            owed = await self.chat.home.store.read(lambda c: c.scalar(OWED))
            return not left and not owed and all(turn.state not in ("queued", "running") for turn in turns)

        await self.chat.home.until(is_idle)


def scripted(body: Any, _: int) -> dict[str, Any]:
    """A model that writes the files that it is asked for, then says so."""
    last = body["messages"][-1]["content"]
    text = " ".join(str(block.get("text", "")) for block in last if isinstance(block, dict))
    names = re.findall(r"[fg]\d+\.txt", text)
    if not names or any(block.get("type") == "tool_result" for block in last):
        return {"text": "an answer"}
    calls = [{"name": "write_file", "input": {"path": name, "content": "x"}} for name in names]
    return {"tools": calls}


def says(text: str, **values: Any) -> Try:
    return lambda desk, user: desk.say(text, user, **values)


def presses(label: str) -> Try:
    return lambda desk, user: desk.press(label, user)


TRIES: dict[str, Try] = {
    "write to it": says("hello"), "a picture": says("look", media=(Media("photo", "p"),)),
    "a voice message": says("hi", media=(Media("voice", "v"),), reply_to_bot=True),
    "`/start` with a wrong code": says("/start ABCDEFGH"), "`/help`": says("/help"), "`/status`": says("/status"),
    "`/memory`": says("/memory"), "`/skills`": says("/skills"), "`/model`": says("/model"),
    "`/plan`": says("/plan"), "`/plan` again": says("/plan"), "`/compact`": says("/compact"),
    "`/stop`": says("/stop"), "`/diff`": says("/diff"), "*Diff*": presses("Diff"), "*Choose*": presses("Choose"),
    "*Land*": presses("Land"), "`/land`": says("/land"), "*Undo*": presses("Undo"), "`/undo`": says("/undo"),
    "*Discard*": presses("Discard"), "`/discard`": says("/discard"), "*Approve*": presses("Approve"),
    "`/cc`": says("/cc"), "`/new`": says("/new"),
}  # fmt: skip
CHANGED = {"*Diff*", "*Choose*", "*Land*", "`/land`", "*Discard*", "`/discard`", "`/diff`"}
LANDED = {"*Undo*", "`/undo`"}


async def test_what_each_may_is_what_the_manual_says(tmp_path: Path, fake: Any, service: ChatService) -> None:
    """AS-5, AS-6: strangers get nothing at all, guests no landing, undoing or approving."""
    rows: dict[str, list[str]] = {name: [] for name in TRIES}
    asking = [False]
    fake.answer(scripted)

    def change(run: Any) -> Any:
        return msgspec.structs.replace(run, policy=Policy.of({"ask": ["write_file"]})) if asking[0] else run

    async with chatting(tmp_path, fake, service, change=change) as chat:
        desk = Desk(chat, service, asking)
        for user in PEOPLE:
            for name, attempt in TRIES.items():
                rows[name].append(await _tried(desk, name, attempt, user))
    assert {row[0] for row in rows.values()} == {"nothing"}
    assert {name for name, row in rows.items() if row[1] == "refused"} == {
        "*Land*", "`/land`", "*Undo*", "`/undo`", "*Approve*", "*Choose*", "`/cc`"
    }  # fmt: skip
    assert {row[2] for row in rows.values()} == {"done"}
    table = _table(rows)
    text = MANUAL.read_text(encoding="utf-8")
    written = text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()
    if os.environ.get("BOWERBIRD_WRITE_TABLE"):
        MANUAL.write_text(text.replace(f"{BEGIN}\n{written}", f"{BEGIN}\n{table}"), encoding="utf-8")
        written = table
    assert written == table


async def _tried(desk: Desk, name: str, attempt: Try, user: str) -> str:
    """Return what came of one attempt."""
    service = desk.service
    if name in CHANGED:
        await desk.shows("Land")
    elif name in LANDED:
        await desk.shows("Land")
        await desk.press("Land", "1")
        await service.until(lambda: any("Undo" in one.labels for one in service.sent[-3:]))
    elif name == "*Approve*":
        await desk.shows("Approve", asks=True)
    await (desk.rests() if name != "*Approve*" else service.until(lambda: True))
    begin, before = len(service.sent), service.outgoing
    acknowledged = len(service.acknowledged)
    await attempt(desk, user)
    if user == "9":
        await desk.say("/model", "1")  # whatever was to come came before the answer to this
        await service.until(lambda: service.outgoing > before)
        found = "nothing" if service.outgoing == before + 1 else "something"
    else:
        await service.until(lambda: service.outgoing > before)
        said = [one.text for one in service.sent[begin:]] + service.acknowledged[acknowledged:]
        found = "refused" if any(word in text for text in said for word in REFUSALS) else "done"
    if name == "*Approve*":
        if found != "done":
            await desk.press("Deny", "1")
        desk.asking[:] = [False]
    await desk.rests()
    return found


def _table(rows: dict[str, list[str]]) -> str:
    lines = ["| tries | " + " | ".join(PEOPLE.values()) + " |", "|---|" + "---|" * len(PEOPLE)]
    return "\n".join([*lines, *(f"| {name} | " + " | ".join(row) + " |" for name, row in rows.items())])
