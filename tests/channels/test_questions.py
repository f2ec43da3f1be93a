"""Questions about money and about effects are asked in a chat and answered there (AS-28)."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from support.chats import ChatService, chatting
from support.sessions import changed

from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.channels.cards import NOT_FOR_YOU
from bowerbird.tools import Tool


async def test_a_spent_limit_is_raised_by_an_owner_at_a_press(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-28, SE-42: a guest cannot; the question says what is spent, and goes on with the turn."""
    step = {"tools": [{"name": "ls", "input": {}}], "usage": {"input": 10_000, "output": 1_000}}
    fake.script(step, {"text": "all done", "usage": {"input": 10, "output": 10}})
    limits = Limits(max_output_tokens=2_000)
    async with chatting(tmp_path, fake, service, settings=changed(session_usd=0.06), limits=limits) as chat:
        await service.say("look around")
        shown = await service.wait_text("The limit is reached")
        assert shown.labels == ["Raise by $0.06", "Raise by $0.6", "Stop"] and "None" not in shown.text
        assert await service.press(shown, "Raise", user="2", chat="1") == NOT_FOR_YOU
        assert fake.request_count == 1
        assert await service.press(shown, "Raise by $0.6") == "Raised"
        await service.wait_text("all done")
        assert "Raised by Ann" in shown.text and not shown.labels
        assert [turn.state for turn in await chat.home.service.turns("chat_1")] == ["done"]


async def test_a_spent_limit_can_stop_the_turn(tmp_path: Path, fake: Any, service: ChatService) -> None:
    """AS-28, AS-12: the chat is told, and shown what was changed before."""
    write = {"name": "write_file", "input": {"path": "a.txt", "content": "x"}}
    fake.script({"tools": [write], "usage": {"input": 10_000, "output": 1_000}})
    limits = Limits(max_output_tokens=2_000)
    async with chatting(tmp_path, fake, service, settings=changed(session_usd=0.06), limits=limits):
        await service.say("look around")
        shown = await service.wait_text("The limit is reached")
        assert await service.press(shown, "Stop") == "Stopped"
        assert "Stopped by Ann" in shown.text and fake.request_count == 1
        await service.wait_text("I stopped: the limit of money is reached.")
        await service.wait_text("1 file changed")


async def test_what_nobody_knows_of_a_call_is_asked_in_the_chat(
    tmp_path: Path, fake: Any, service: ChatService
) -> None:
    """AS-28: a process ended while mail was sent; the owner says that it went out, and it is not sent again."""
    begun, sent = asyncio.Event(), []

    async def send_mail(text: str) -> str:
        """Send a mail.

        Args:
            text: what it says.
        """
        sent.append(text)
        begun.set()
        await asyncio.Event().wait()
        return "sent"

    fake.script({"tools": [{"name": "send_mail", "input": {"text": "hi"}}]}, {"text": "the mail is out"})
    given: dict[str, Any] = {
        "settings": changed(resume_external="ask", grace_s=0.05),
        "tools": [Tool(send_mail, effect="outside")],
        "change": lambda run: msgspec.structs.replace(run, policy=Policy.of({"allow": ["send_mail"]})),
    }
    async with chatting(tmp_path, fake, service, **given):
        await service.say("mail Bob")
        await begun.wait()
    async with chatting(tmp_path, fake, service, **given):
        shown = await service.wait_text("What happened?")
        assert "send_mail" in shown.text
        assert shown.labels[:3] == ["It happened", "It did not", "Run it again"]
        assert await service.press(shown, "It happened", user="2", chat="1") == NOT_FOR_YOU
        assert await service.press(shown, "It happened") == "It happened"
        await service.wait_text("the mail is out")
    assert sent == ["hi"]
