"""Turns that wait for a person: approvals, questions, plans, budgets (SE-20, 21, 42, AG-62 … 64)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.sessions import Place, changed, place

from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.core.errors import AlreadyAnswered, InvalidArgument, NoPendingRequest
from bowerbird.core.events import ApprovalRequest
from bowerbird.sessions.values import InputKind
from bowerbird.tools import Tool
from bowerbird.tools.plan import plan_tools

CALL = {"tools": [{"name": "send", "input": {"text": "hi"}}]}


class Sent:
    """An external tool that remembers what it sent."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.tool = Tool(self.send, effect="outside")

    async def send(self, text: str) -> str:
        """Send a text.

        Args:
            text: What to send.
        """
        self.texts.append(text)
        return "sent"


async def asked(home: Place, thread: str) -> ApprovalRequest:
    """Wait until the session's turn waits, and return its newest request."""

    async def waits() -> bool:
        turns = await home.service.turns(thread)
        return bool(turns) and turns[-1].state == "waiting"

    await home.until(waits)
    [*_, body] = await home.bodies(thread, "request")
    return ApprovalRequest(body["id"], body["kind"], tuple(body["calls"]), (), body.get("text", ""))


async def ended(home: Place, thread: str, count: int = 1) -> list[Any]:
    async def over() -> bool:
        turns = await home.service.turns(thread)
        return len(turns) == count and all(
            t.state in ("done", "failed", "cancelled", "interrupted") for t in turns
        )

    await home.until(over)
    return await home.service.turns(thread)


async def test_an_approved_call_runs_and_a_denied_one_does_not(tmp_path: Path, fake: FakeModels) -> None:
    """AG-62."""
    sent = Sent()
    async with place(tmp_path, fake, tools=(sent.tool,)) as home:
        fake.script(CALL, {"text": "ok"}, CALL, {"text": "a pity"})
        thread = await home.session()
        await home.service.submit(thread, "go")
        request = await asked(home, thread)
        assert request.kind == "approval"
        await home.service.answer(request.id, "approve", by="me")
        [turn] = await ended(home, thread)
        assert (turn.state, sent.texts) == ("done", ["hi"])
        await home.service.submit(thread, "again")
        request = await asked(home, thread)
        await home.service.answer(None, "deny", thread_id=thread, feedback="not now")
        await ended(home, thread, 2)
        assert sent.texts == ["hi"]
        [outcome] = [b for b in await home.bodies(thread, "tool_outcome") if b["status"] == "denied"]
        assert outcome["content"] == [{"type": "text", "text": "User denied this tool call: not now"}]
        answers = await home.bodies(thread, "answer")
        assert list(answers[0]) == ["id", "decision", "by", "feedback"]
        assert [a["decision"] for a in answers] == ["approve", "deny"]


async def test_auto_approve_holds_for_the_session_and_survives_a_restart(
    tmp_path: Path, fake: FakeModels
) -> None:
    """AG-62."""
    sent = Sent()
    fake.script(CALL, {"text": "1"}, CALL, {"text": "2"})
    async with place(tmp_path, fake, tools=(sent.tool,)) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")
        await home.service.answer((await asked(home, thread)).id, "auto_approve")
        await ended(home, thread)
    async with place(tmp_path, fake, tools=(sent.tool,)) as home:
        assert (await home.ask(thread)).state == "done"
        assert sent.texts == ["hi", "hi"]
        await home.service.set_flags(thread, {"auto_approve": False})
        assert not (await home.service.get(thread)).auto_approve


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_after_the_timeout_the_turn_waits_without_a_process_and_a_late_answer_goes_on(
    tmp_path: Path, fake: FakeModels, decision: str
) -> None:
    """SE-20, SE-21: also after a restart."""
    sent = Sent()
    fake.script(CALL, {"text": "ok"})
    settings = changed(approval_timeout_s=0.05)
    async with place(tmp_path, fake, tools=(sent.tool,), settings=settings) as home:
        thread = await home.session()
        turn = await home.ask(thread)

        async def let_go() -> bool:
            return (await home.service.turn(turn.turn_id)).stop_reason == "approval_timeout"

        await home.until(let_go)
        turn = await home.service.turn(turn.turn_id)
        assert (turn.state, turn.waiting_for) == ("waiting", "approval")
        assert fake.request_count == 1
    async with place(tmp_path, fake, tools=(sent.tool,)) as home:
        assert (await home.service.turn(turn.turn_id)).state == "waiting"
        request = await asked(home, thread)
        await home.service.answer(request.id, decision)
        [turn] = await ended(home, thread)
        assert turn.state == "done"
        assert sent.texts == (["hi"] if decision == "approve" else [])
        assert len(await home.bodies(thread, "request")) == 1
        assert len(await home.bodies(thread, "answer")) == 1


async def test_turns_that_wait_for_a_person_keep_no_place_from_others(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-20, SE-31: with as many questions open as turns may run, everybody else waited for minutes."""
    sent = Sent()
    fake.answer(lambda body, _: CALL if "send" in str(body["messages"][-1]["content"]) else {"text": "Said."})
    settings = changed(approval_timeout_s=300, parallel_turns=2)
    async with place(tmp_path, fake, tools=(sent.tool,), settings=settings) as home:
        waiting = [await home.session() for _ in range(4)]
        for thread in waiting:
            await home.service.submit(thread, "send it")
        requests = [await asked(home, thread) for thread in waiting]
        other = await home.session()
        await home.service.submit(other, "hello")
        [turn] = await ended(home, other)
        assert turn.state == "done"
        assert sent.texts == []
        for thread, request in zip(waiting, requests, strict=True):
            await home.service.answer(request.id, "approve")
            [turn] = await ended(home, thread)
            assert turn.state == "done"
            assert len(await home.bodies(thread, "request")) == 1
        assert sent.texts == ["hi"] * 4


@pytest.mark.parametrize("timeout_s", [0.05, 300])
@pytest.mark.parametrize("kind", ["message", "interrupt", "steer"])
async def test_a_message_meanwhile_answers_nothing_and_waits_for_the_answer(
    tmp_path: Path, fake: FakeModels, timeout_s: float, kind: InputKind
) -> None:
    """Whether the turn still has its driver or waits without one; the receipt names the question."""
    sent = Sent()
    fake.script(CALL, {"text": "something else then"})
    async with place(
        tmp_path, fake, tools=(sent.tool,), settings=changed(approval_timeout_s=timeout_s)
    ) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")
        await asked(home, thread)
        if timeout_s < 1:
            await asyncio.sleep(0.2)
        (request,) = await home.service.pending(thread)
        receipt = await home.service.submit(thread, "and then", kind=kind)
        assert (receipt.open_request, receipt.position) == (request.request_id, 1)
        await asyncio.sleep(0.3)
        assert [r.request_id for r in await home.service.pending(thread)] == [request.request_id]
        assert fake.request_count == 1 and sent.texts == []
        await home.service.answer(request.request_id, "approve")
        first, second = await ended(home, thread, 2)
        assert (first.state, second.state) == ("done", "done") and sent.texts == ["hi"]
        assert [b["status"] for b in await home.bodies(thread, "tool_outcome")] == ["ok"]


async def test_what_waits_behind_a_question_goes_on_when_its_turn_is_stopped(
    tmp_path: Path, fake: FakeModels
) -> None:
    sent = Sent()
    fake.script(CALL, {"text": "something else then"})
    async with place(tmp_path, fake, tools=(sent.tool,), settings=changed(approval_timeout_s=0.05)) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")
        await asked(home, thread)
        receipt = await home.service.submit(thread, "and then")
        await home.service.cancel(thread)
        assert (await home.service.wait(receipt.turn_id)).state == "done"
        first, _ = await home.service.turns(thread)
        assert first.state == "cancelled" and sent.texts == []


async def test_what_waits_behind_a_question_goes_on_when_nobody_can_answer_it_any_more(
    tmp_path: Path, fake: FakeModels
) -> None:
    sent = Sent()
    fake.script(CALL, {"text": "something else then"})
    settings = changed(approval_timeout_s=0.3, approval_expiry_days=0)
    async with place(tmp_path, fake, tools=(sent.tool,), settings=settings) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")
        await asked(home, thread)
        receipt = await home.service.submit(thread, "and then")

        async def is_over() -> bool:
            return (await home.service.get(thread)).pending is None

        await home.until(is_over)
        assert await home.service.keepers.expired() == 1
        assert (await home.service.wait(receipt.turn_id)).state == "done" and sent.texts == []


async def test_wrong_late_and_repeated_answers_change_nothing(tmp_path: Path, fake: FakeModels) -> None:
    """SE-21: answers are never kept for later requests."""
    sent = Sent()
    fake.script(CALL, {"text": "ok"})
    async with place(tmp_path, fake, tools=(sent.tool,)) as home:
        thread = await home.session()
        with pytest.raises(NoPendingRequest):
            await home.service.answer(None, "approve", thread_id=thread)
        await home.service.submit(thread, "go")
        request = await asked(home, thread)
        with pytest.raises(InvalidArgument, match="approve, deny"):
            await home.service.answer(request.id, "yes please")
        with pytest.raises(NoPendingRequest):
            await home.service.answer("r_unknown", "approve")
        await home.service.answer(request.id, "approve")
        with pytest.raises((AlreadyAnswered, NoPendingRequest)):
            await home.service.answer(request.id, "deny")
        await ended(home, thread)
        assert sent.texts == ["hi"]
        with pytest.raises(NoPendingRequest):
            await home.service.answer(request.id, "approve")


async def test_where_nobody_can_answer_asking_is_denying(tmp_path: Path, fake: FakeModels) -> None:
    """AG-63."""
    sent = Sent()
    fake.script(CALL, {"text": "ok"})
    async with place(tmp_path, fake, tools=(sent.tool,), attended=False) as home:
        thread = await home.session()
        assert (await home.ask(thread)).state == "done"
        assert sent.texts == []
        assert [b["status"] for b in await home.bodies(thread, "tool_outcome")] == ["denied"]


async def test_cancelling_a_waiting_turn_ends_it(tmp_path: Path, fake: FakeModels) -> None:
    sent = Sent()
    fake.script(CALL, {"text": "next"})
    settings = changed(approval_timeout_s=0.05)
    async with place(tmp_path, fake, tools=(sent.tool,), settings=settings) as home:
        thread = await home.session()
        turn = await home.ask(thread)
        await asyncio.sleep(0.2)
        await home.service.cancel(thread)
        [turn] = await ended(home, thread)
        assert (turn.state, sent.texts) == ("cancelled", [])
        assert (await home.ask(thread, "next")).state == "done"


async def test_a_question_of_the_agent_waits_and_its_answer_is_the_result(
    tmp_path: Path, fake: FakeModels
) -> None:
    """TO-36, SE-20."""
    question = next(tool for tool in plan_tools() if tool.name == "ask_user")
    call = {"tools": [{"name": "ask_user", "input": {"question": "Which colour?"}}]}
    fake.script(call, {"text": "green it is"})
    settings = changed(approval_timeout_s=0.05)
    async with place(tmp_path, fake, tools=(question,), settings=settings) as home:
        thread = await home.session()
        await home.service.submit(thread, "paint")
        request = await asked(home, thread)
        assert (request.kind, request.text) == ("user", "Which colour?")
        await asyncio.sleep(0.2)
        await home.service.answer(request.id, "green")
        await ended(home, thread)
        [outcome] = await home.bodies(thread, "tool_outcome")
        assert outcome["content"][0]["text"] == "green"


@pytest.mark.parametrize(("decision", "mode"), [("approve", "normal"), ("reject", "plan")])
async def test_a_plan_waits_and_its_answer_is_the_next_turn(
    tmp_path: Path, fake: FakeModels, decision: str, mode: str
) -> None:
    """AG-64, SE-20."""
    fake.script({"text": "1. look 2. write"}, {"text": "carried on"})
    async with place(tmp_path, fake) as home:
        thread = await home.session(flags={"enable_plan_mode": True})
        turn = await home.ask(thread, "plan it")
        assert (turn.state, turn.waiting_for) == ("waiting", "plan")
        request = await asked(home, thread)
        assert request.text == "1. look 2. write"
        await home.service.answer(request.id, decision, feedback="and be quick")
        if decision == "approve":
            first, second = await ended(home, thread, 2)
            assert (first.stop_reason, second.state) == ("plan", "done")
        else:

            async def waits_again() -> bool:
                turns = await home.service.turns(thread)
                return len(turns) == 2 and turns[1].state == "waiting"

            await home.until(waits_again)
        assert [run["mode"] for run in await home.bodies(thread, "turn_started")] == ["plan", mode]
        assert "be quick" in json.dumps(fake.requests[-1]["messages"])


async def test_money_is_reserved_and_a_spent_limit_waits_for_a_person(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SE-42, MO-50: also after a restart; raising the limit goes on."""
    step = {"tools": [{"name": "ls", "input": {}}], "usage": {"input": 10_000, "output": 1_000}}
    fake.script(step, {"text": "ok", "usage": {"input": 10, "output": 10}})
    settings = changed(session_usd=0.06, approval_timeout_s=0.05)
    limits = Limits(max_output_tokens=2_000)
    async with place(tmp_path, fake, settings=settings, limits=limits) as home:
        thread = await home.session()
        turn = await home.ask(thread)
        await asyncio.sleep(0.2)
        turn = await home.service.turn(turn.turn_id)
        assert (turn.state, turn.waiting_for) == ("waiting", "budget")
        assert fake.request_count == 1
    async with place(tmp_path, fake, settings=settings, limits=limits) as home:
        assert (await home.service.turn(turn.turn_id)).state == "waiting"
        request = await asked(home, thread)
        assert request.kind == "budget"
        await home.service.answer(request.id, "raise", feedback="1.0")
        [turn] = await ended(home, thread)
        assert turn.state == "done"
        states = await home.store.read(
            lambda c: c.exec_driver_sql("SELECT DISTINCT state FROM reservations").scalars().all()
        )
        assert list(states) == ["settled"]


async def test_a_rule_that_asks_is_asked_once_for_all_calls_of_a_batch(
    tmp_path: Path, fake: FakeModels
) -> None:
    """AG-62."""
    policy = Policy.of({"ask": ["write_file"]})
    batch = {
        "tools": [
            {"name": "write_file", "input": {"path": "a", "content": "1"}},
            {"name": "write_file", "input": {"path": "b", "content": "2"}},
            {"name": "ls", "input": {}},
        ]
    }
    fake.script(batch, {"text": "ok"})
    async with place(tmp_path, fake, policy=policy) as home:
        thread = await home.session()
        await home.service.submit(thread, "go")
        request = await asked(home, thread)
        assert len(request.calls) == 2
        await home.service.answer(request.id, "approve")
        await ended(home, thread)
        branch = await home.service.branch(thread)
        assert branch.changes().written == ("/a", "/b")


async def test_approval_switched_on_by_a_call_s_time_is_asked_for_from_the_next_call_on(
    tmp_path: Path, fake: FakeModels
) -> None:
    """Whoever is told that people are asked now is told the truth, also while a turn runs."""
    ran: list[str] = []
    places: list[Any] = []

    async def first() -> str:
        """Do the first thing."""
        home, thread = places
        await home.service.set_flags(thread, {"enable_approval": True})
        ran.append("first")
        return "did"

    async def second() -> str:
        """Do the second thing."""
        ran.append("second")
        return "did"

    tools = (Tool(first, effect="branch"), Tool(second, effect="branch"))
    both = {"tools": [{"name": "first", "input": {}}, {"name": "second", "input": {}}]}
    fake.script(both, {"text": "done"})
    async with place(tmp_path, fake, tools=tools, attended=False) as home:
        thread = await home.session()
        places += [home, thread]
        await home.ask(thread)
        said = [body["status"] for body in await home.bodies(thread, "tool_outcome")]
    assert ran == ["first"] and said == ["ok", "denied"]
