"""What people do who mean no good, or too much at once (AS-4, AS-9, AS-11, AS-28)."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from support.chats import ChatService, chatting
from support.sessions import changed, writes

from bowerbird.agent.policy import Policy
from bowerbird.channels.review.summary import plain

LINK = "[free money](http://evil.example) <b>*x*</b> `"


async def test_five_hundred_at_once_are_answered_or_refused_with_one_word(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-9: what is taken is answered in order; of the rest the sender hears once, not five hundred times."""
    gate = asyncio.Event()
    fake.answer(lambda body, n: {"text": f"answer {n}"})
    few = changed(queue_per_session=10)
    async with chatting(tmp_path, fake, service, settings=few, change=lambda run: _held(run, gate)) as chat:
        await asyncio.gather(*(service.say(f"message {n}") for n in range(500)))
        await service.wait_text("inputs wait in this session")
        gate.set()
        turns = await chat.home.service.turns("chat_1")
        await service.until(lambda: sum(one.text.startswith("answer") for one in service.sent) == len(turns))
        said = [one.text for one in service.sent if one.text.startswith("answer")]
        assert said == [f"answer {n}" for n in range(len(said))] and 10 <= len(said) <= 12
        assert sum("inputs wait" in one.text for one in service.sent) == 1


def _held(run: Any, gate: asyncio.Event) -> Any:
    """The first model call waits until all has arrived."""

    class Waits:
        def __init__(self, model: Any) -> None:
            self._model = model

        def __getattr__(self, name: str) -> Any:
            return getattr(self._model, name)

        async def stream(self, request: Any) -> Any:
            await gate.wait()
            async for event in self._model.stream(request):
                yield event

    return msgspec.structs.replace(run, model=Waits(run.model))


async def test_a_name_formats_nothing(tmp_path: Path, fake: Any, service: ChatService) -> None:
    """AS-28: who decided is named in the chat; a name is no link, no markup, no second line."""
    fake.script(writes("a.txt", "x"), {"text": "ok"})

    def asks(run: Any) -> Any:

        return msgspec.structs.replace(run, policy=Policy.of({"ask": ["write_file"]}))

    async with chatting(tmp_path, fake, service, change=asks):
        await service.say("write", name=f"{LINK}\n**Land**")
        shown = await service.wait_text("May I?")
        pressed = service.message(
            shown.button("Approve").data, kind="button", message_id=shown.message_id, name=f"{LINK}\nx"
        )
        await service.arrive(pressed)
        await service.until(lambda: "by" in shown.text)
        last = shown.text.splitlines()[-1]
        assert last == f"**Approved by {plain(LINK + 'x')}.**" and "](http" not in last.replace("\\]", "")
