"""What people say while a turn waits for something: heard once, nothing is left over (D-12, server 1, 8)."""

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S
from support.sessions import Place, changed, place

from bowerbird.agent.limits import Limits
from bowerbird.core.errors import BowerbirdError
from bowerbird.sessions.values import InputKind
from bowerbird.store.rows.turns import MESSAGE_KINDS, inputs_of
from bowerbird.tools import Tool
from bowerbird.tools.plan import plan_tools

QUESTION = {"tools": [{"name": "ask_user", "input": {"question": "Which colour?"}}]}
SEND = {"tools": [{"name": "send", "input": {"text": "hi"}}]}
ASK_USER = next(tool for tool in plan_tools() if tool.name == "ask_user")
DEAR = {"input": 10_000, "output": 1_000}


async def send(text: str) -> str:
    """Send a text.

    Args:
        text: What to send.
    """
    return f"sent {text}"


TOOLS = (ASK_USER, Tool(send, effect="outside"))


async def waits(home: Place, thread: str, what: str, count: int = 1) -> None:
    async def there() -> bool:
        turns = await home.service.turns(thread)
        return len(turns) == count and (turns[-1].state, turns[-1].waiting_for) == ("waiting", what)

    await home.until(there)


async def settled(home: Place, thread: str) -> None:
    """Wait until nothing of the session runs or is about to."""

    async def over() -> bool:
        turns = await home.service.turns(thread)
        open_ones = [t for t in turns if t.state in ("queued", "running", "waiting")]
        return not open_ones or (open_ones[0].state == "waiting" and open_ones[0].stop_reason is not None)

    async with asyncio.timeout(HANG_S):
        while not await over():
            await asyncio.sleep(0.02)


async def queued(home: Place, thread: str) -> list[str]:
    rows = await home.store.read(
        lambda c: inputs_of(c, thread_id=thread, states=("queued",), kinds=MESSAGE_KINDS)
    )
    return [row.body for row in rows]


def said_to_model(fake: FakeModels, at: int = -1) -> str:
    return json.dumps(fake.requests[at]["messages"][-1])


@pytest.mark.parametrize("kind", ["message", "interrupt", "steer"])
async def test_what_is_said_while_a_plan_waits_is_the_feedback_to_it(
    tmp_path: Path, fake: FakeModels, kind: InputKind
) -> None:
    """server 1: one revision turn, with the user's words, and nothing is left in the queue."""
    fake.script({"text": "use postgres"}, {"text": "use sqlite"})
    async with place(tmp_path, fake) as home:
        thread = await home.session(flags={"enable_plan_mode": True})
        await home.ask(thread, "plan it")
        second = await home.ask(thread, "no, use sqlite", kind=kind)
        assert (second.state, second.waiting_for, second.n) == ("waiting", "plan", 2)
        assert fake.request_count == 2
        assert "no, use sqlite" in said_to_model(fake)
        first, _ = await home.service.turns(thread)
        assert (first.state, first.stop_reason) == ("done", "plan")
        assert await queued(home, thread) == []
        [answer] = await home.bodies(thread, "answer")
        assert (answer["decision"], answer["feedback"]) == ("reject", "no, use sqlite")
        assert [run["mode"] for run in await home.bodies(thread, "turn_started")] == ["plan", "plan"]


async def test_cancel_while_a_plan_waits_calls_no_model(tmp_path: Path, fake: FakeModels) -> None:
    """server 1: the waiting plan is over, and the conversation goes on with the next message."""
    fake.script({"text": "a plan"}, {"text": "another"})
    async with place(tmp_path, fake) as home:
        thread = await home.session(flags={"enable_plan_mode": True})
        await home.ask(thread, "plan it")
        await home.service.cancel(thread)
        await settled(home, thread)
        [turn] = await home.service.turns(thread)
        assert (turn.state, turn.stop_reason) == ("cancelled", "cancelled")
        assert fake.request_count == 1
        assert (await home.service.get(thread)).flags["enable_plan_mode"] is True
        assert await home.service.pending(thread) == []
        assert (await home.ask(thread, "again")).waiting_for == "plan"


@pytest.mark.parametrize("by", ["message", "reject"])
async def test_plan_mode_that_was_switched_off_stays_off(tmp_path: Path, fake: FakeModels, by: str) -> None:
    """server 1: neither a message nor a rejection switches it on again."""
    fake.script({"text": "a plan"}, {"text": "done"})
    async with place(tmp_path, fake) as home:
        thread = await home.session(flags={"enable_plan_mode": True})
        await home.ask(thread, "plan it")
        await home.service.set_flags(thread, {"enable_plan_mode": False})
        if by == "message":
            assert (await home.ask(thread, "just do it")).state == "done"
        else:
            await home.service.answer(None, "reject", thread_id=thread, feedback="just do it")
            await settled(home, thread)
        turns = await home.service.turns(thread)
        assert [turn.state for turn in turns] == ["done", "done"]
        assert (await home.service.get(thread)).flags["enable_plan_mode"] is False
        assert [run["mode"] for run in await home.bodies(thread, "turn_started")] == ["plan", "normal"]


async def test_a_message_from_before_the_plan_was_shown_does_not_wait_for_its_approval(
    tmp_path: Path, fake: FakeModels
) -> None:
    """server 1: what stood in the queue when the plan came is its feedback."""
    fake.script({"text": "a plan", "ttft_s": 0.3}, {"text": "a better plan"})
    async with place(tmp_path, fake) as home:
        thread = await home.session(flags={"enable_plan_mode": True})
        await home.service.submit(thread, "plan it")
        second = await home.ask(thread, "and think of Windows")
        assert (second.state, second.waiting_for) == ("waiting", "plan")
        assert "think of Windows" in said_to_model(fake)
        assert await queued(home, thread) == []


@pytest.mark.parametrize("timeout_s", [0.05, 300])
@pytest.mark.parametrize("kind", ["message", "interrupt"])
async def test_a_question_of_the_agent_is_answered_by_typing(
    tmp_path: Path, fake: FakeModels, timeout_s: float, kind: InputKind
) -> None:
    """server 8: the same turn goes on with it, whether or not a process still waits."""
    fake.script(QUESTION, {"text": "green it is"})
    settings = changed(approval_timeout_s=timeout_s)
    async with place(tmp_path, fake, tools=TOOLS, settings=settings) as home:
        thread = await home.session()
        first = await home.service.submit(thread, "paint")
        await waits(home, thread, "user")
        if timeout_s < 1:
            await settled(home, thread)
        receipt = await home.service.submit(thread, "green", kind=kind, dedupe_key="k1")
        assert receipt.turn_id == first.turn_id
        again = await home.service.submit(thread, "green", kind=kind, dedupe_key="k1")
        assert (again.duplicate, again.turn_id) == (True, first.turn_id)
        turn = await home.service.wait(first.turn_id)
        assert (turn.state, turn.stop_reason) == ("done", "end_turn")
        [outcome] = await home.bodies(thread, "tool_outcome")
        assert (outcome["status"], outcome["content"][0]["text"]) == ("ok", "green")
        assert len(await home.service.turns(thread)) == 1
        assert await queued(home, thread) == []


async def test_an_answer_with_an_image_is_not_lost(tmp_path: Path, fake: FakeModels) -> None:
    """A question takes text; a message with an image waits, and is the next turn."""
    fake.script(QUESTION, {"text": "blue it is"}, {"text": "I see"})
    async with place(tmp_path, fake, tools=TOOLS) as home:
        blob = await home.store.blobs.keep(b"\x89PNG", "image/png")
        image = {"type": "image", "media_type": "image/png", "source": {"blob": blob}}
        thread = await home.session()
        await home.service.submit(thread, "paint")
        await waits(home, thread, "user")
        receipt = await home.service.submit(
            thread, {"content": [{"type": "text", "text": "like this"}, image]}
        )
        assert receipt.open_request is not None
        await home.service.answer(receipt.open_request, "blue")
        assert (await home.service.wait(receipt.turn_id)).n == 2
        first, _ = await home.service.turns(thread)
        assert first.state == "done"
        assert await queued(home, thread) == []


async def test_an_interrupt_while_an_approval_waits_is_a_message(tmp_path: Path, fake: FakeModels) -> None:
    """It is read after the answer, in its order; only Stop ends the turn."""
    fake.script(SEND, {"text": "sent"}, {"text": "later"}, {"text": "instead"})
    async with place(tmp_path, fake, tools=TOOLS) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")
        later = await home.service.submit(thread, "queued before")
        await waits_first(home, thread)
        last = await home.service.submit(thread, "do this", kind="interrupt")
        assert last.open_request is not None
        await home.service.answer(last.open_request, "approve")
        await home.service.wait(later.turn_id)
        assert (await home.service.wait(last.turn_id)).state == "done"
        assert [t.state for t in await home.service.turns(thread)] == ["done", "done", "done"]
        assert "do this" in json.dumps(fake.requests[3]["messages"][-1])


async def waits_first(home: Place, thread: str) -> None:
    async def there() -> bool:
        return (await home.service.turns(thread))[0].state == "waiting"

    await home.until(there)


async def test_a_queue_behind_an_unanswered_approval_waits_for_it(tmp_path: Path, fake: FakeModels) -> None:
    """After `approval.timeout_s` the turn is over for viewers; the question is not."""
    fake.script(SEND, {"text": "sent"}, {"text": "next"})
    async with place(tmp_path, fake, tools=TOOLS, settings=changed(approval_timeout_s=0.2)) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")
        second = await home.service.submit(thread, "and then")

        async def is_over() -> bool:
            return (await home.service.turns(thread))[0].stop_reason == "approval_timeout"

        await home.until(is_over)
        (request,) = await home.service.pending(thread)
        await home.service.answer(request.request_id, "deny")
        assert (await home.service.wait(second.turn_id)).state == "done"
        assert [t.state for t in await home.service.turns(thread)] == ["done", "done"]


async def test_a_message_while_a_person_must_say_what_happened(tmp_path: Path, fake: FakeModels) -> None:
    """SE-20, SE-25: the call is not called denied, for it may have happened."""
    began = asyncio.Event()

    async def slow(text: str) -> str:
        """Send slowly.

        Args:
            text: What.
        """
        began.set()
        await asyncio.sleep(60)
        return text

    def tools() -> tuple[Tool, ...]:
        return (Tool(slow, effect="outside"),)

    fake.script({"tools": [{"name": "slow", "input": {"text": "x"}}]}, {"text": "I will look"})
    settings = changed(grace_s=0.1, resume_external="ask")
    async with place(tmp_path, fake, tools=tools(), settings=settings) as home:
        thread = await home.session()
        await home.service.set_flags(thread, {"auto_approve": True})
        await home.service.submit(thread, "go")
        await began.wait()
    async with place(tmp_path, fake, tools=tools(), settings=settings) as home:
        await waits(home, thread, "effect")
        receipt = await home.service.submit(thread, "check whether it went out")
        assert receipt.open_request is not None and fake.request_count == 1
        await home.service.cancel(thread)
        assert (await home.service.wait(receipt.turn_id)).state == "done"
        [outcome] = await home.bodies(thread, "tool_outcome")
        assert outcome["status"] == "abandoned"
        assert "may have happened" in outcome["content"][0]["text"]
        assert await queued(home, thread) == []


# ---------------------------------------------------------------- anything, in any order

WAITS: dict[str, Callable[[], dict[str, Any]]] = {
    "plan": lambda: {"text": "a plan"},
    "approval": lambda: SEND,
    "user": lambda: QUESTION,
    "budget": lambda: {"tools": [{"name": "ls", "input": {}}], "usage": DEAR},
    "both": lambda: {"tools": [*SEND["tools"], *QUESTION["tools"]]},
}
CLOSES = {"approval": "deny", "plan": "reject", "budget": "stop", "user": "blue"}
DECISIONS = ["approve", "deny", "reject", "auto_approve", "raise", "stop", "blue"]


async def act(home: Place, thread: str, draw: random.Random, n: int) -> None:
    kind = draw.choice(["message", "message", "steer", "interrupt", "cancel", "answer", "toggle", "pause"])
    with contextlib.suppress(BowerbirdError):  # refused, and said so: nothing was accepted
        if kind in ("message", "steer", "interrupt"):
            await home.service.submit(thread, f"words {n}", kind=kind)  # pyright: ignore[reportArgumentType]
        elif kind == "cancel":
            await home.service.cancel(thread)
        elif kind == "answer":
            await home.service.answer(None, draw.choice(DECISIONS), thread_id=thread, feedback="0.01")
        elif kind == "toggle":
            await home.service.set_flags(thread, {"enable_plan_mode": draw.random() < 0.5})
        else:
            await asyncio.sleep(draw.choice([0.01, 0.1, 0.3]))


@pytest.mark.parametrize("what", WAITS)
async def test_no_accepted_message_stays_queued_once_every_question_has_its_answer(
    tmp_path: Path, fake: FakeModels, what: str
) -> None:
    """Random histories of messages, steers, interrupts, cancels, answers and switches."""
    draw = random.Random(f"instead {what}")

    def reply(body: dict[str, Any], n: int) -> dict[str, Any]:
        return WAITS[what]() if draw.random() < 0.4 else {"text": f"answer {n}"}

    fake.answer(reply)
    settings = changed(approval_timeout_s=0.15, session_usd=0.06 if what == "budget" else None)
    limits = Limits(max_output_tokens=2_000)
    async with place(tmp_path, fake, tools=TOOLS, settings=settings, limits=limits) as home:

        async def history(n: int) -> None:
            thread = await home.session(flags={"enable_plan_mode": what == "plan"})
            await home.service.submit(thread, "begin")
            for step in range(8):
                await act(home, thread, draw, step)
            # What was accepted last may still be on its way: a turn that waits may go on a moment later.
            seen: tuple[Any, ...] = ()
            try:
                async with asyncio.timeout(HANG_S):
                    while True:
                        await settled(home, thread)
                        if await queued(home, thread):
                            for request in await home.service.pending(thread):
                                with contextlib.suppress(BowerbirdError):
                                    await home.service.answer(request.request_id, CLOSES[request.kind])
                        turns = await home.service.turns(thread)
                        state = (await home.service.get(thread)).status
                        left = await queued(home, thread)
                        seen = (
                            n,
                            left,
                            state,
                            [(t.kind, t.state, t.waiting_for, t.stop_reason) for t in turns],
                        )
                        if left == [] and (state == "waiting") == (turns[-1].state == "waiting"):
                            break
                        await asyncio.sleep(0.02)
            except TimeoutError:
                raise AssertionError(seen) from None

        for start in range(0, 24, 6):
            await asyncio.gather(*(history(n) for n in range(start, start + 6)))
