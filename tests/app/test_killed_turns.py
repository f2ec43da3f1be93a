"""Points of the acceptance lists that need a real kill -9 in a turn of a configured application: a summary
under way, a switched model, a reservation (AG acceptance 5, MO acceptance 6 and 13); and interrupting what
runs (AG acceptance 8)."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from support.agent_turns import texts
from support.fake_models import FakeModels
from support.killed_app import application, killed_turn
from support.patience import HANG_S, patience

from bowerbird.app import Application
from bowerbird.sessions import NewSession

MODEL = "anthropic:claude-sonnet-4-5"


@pytest.fixture
def fake() -> Any:
    with FakeModels() as server:
        yield server


def flags_for(fake: FakeModels, **more: Any) -> dict[str, Any]:
    return {"provider.api_key": "k", "provider.base_url": fake.anthropic_url, **more}


async def new_thread(opened: Application, directory: Path) -> str:
    return (await opened.sessions.create(NewSession(workspace=str(directory / "project")))).thread_id


async def asked(opened: Application, thread: str, said: str) -> Any:
    await opened.drive(thread)
    receipt = await opened.sessions.submit(thread, said)
    async with asyncio.timeout(HANG_S):
        return await opened.sessions.wait(receipt.turn_id)


async def resumed(opened: Application, thread: str) -> Any:
    """Go on with the turn that died, whose lease its dead process may still hold for a while."""
    await opened.drive(thread)
    async with asyncio.timeout(HANG_S):
        while True:
            turn = (await opened.sessions.turns(thread))[-1]
            if turn.state in ("done", "failed"):
                return turn
            await asyncio.sleep(0.05)


def is_summary(body: dict[str, Any]) -> bool:
    return "You summarise the work" in json.dumps(body.get("system"))


async def test_nine_questions_and_answers_are_listed_after_a_kill_during_the_summary(
    fake: FakeModels, tmp_path: Path
) -> None:
    """AG acceptance 5: the summary decides what is sent, never what is kept."""
    flags = flags_for(
        fake, **{"agent.context_window": 8_000, "dispatch.lease_s": 2, "dispatch.heartbeat_s": 0.6}
    )
    filler = "word " * 230

    def answer(body: dict[str, Any], number: int) -> dict[str, Any]:
        if is_summary(body):
            return {"hang": True}
        return {"text": f"answer {number + 1} {filler}", "usage": {"input_tokens": 1_000}}

    fake.answer(answer)
    async with application(tmp_path, flags, MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
        for number in range(1, 9):
            if number == 8:  # the eighth answer says that the window is nearly full
                fake.answer(lambda b, n: {"text": f"answer 8 {filler}", "usage": {"input_tokens": 7_000}})
            await asked(opened, thread, f"question {number} {filler}")
    fake.answer(answer)
    await killed_turn(fake, tmp_path, flags, MODEL, thread, fake.request_count + 1)
    assert is_summary(fake.requests[-1])

    def finish(body: dict[str, Any], number: int) -> dict[str, Any]:
        return {"text": "a summary" if is_summary(body) else "answer 9"}

    fake.answer(finish)
    async with application(tmp_path, flags, MODEL) as opened:
        assert (await resumed(opened, thread)).state == "done"
        history = await opened.sessions.history(thread)
        said = [r.body["content"][0]["text"][:10] for r in history if r.type == "user"]
        answers = [r.body["content"][0]["text"][:8] for r in history if r.type == "assistant"]
    assert [text.split()[1] for text in said[:8]] == list("12345678") and said[8].startswith("the turn")
    assert answers == [f"answer {n}" for n in range(1, 10)]
    assert [r.type for r in history].count("compaction") == 1
    sent = json.dumps(texts(fake.requests[-1]))
    assert "a summary" in sent and "question 1 " in sent and "answer 1" not in sent


async def test_a_switched_model_goes_on_after_a_kill_and_the_next_turn_has_the_default(
    fake: FakeModels, tmp_path: Path
) -> None:
    """MO-43, MO acceptance 6."""
    key = {"base_url": fake.anthropic_url, "api_key": "k"}
    tiers = {
        "standard": {"name": "anthropic", "model": "claude-haiku-4-5", **key},
        "expert": {"name": "anthropic", "model": "claude-opus-4-5", **key},
    }
    flags = {
        "model_router.enabled": True, "model_router.tiers": tiers,
        "dispatch.lease_s": 2, "dispatch.heartbeat_s": 0.6,
    }  # fmt: skip
    switch = {"tools": [{"name": "switch_model", "input": {"tier": "expert"}}]}
    async with application(tmp_path, flags, "tier:standard") as opened:
        thread = await new_thread(opened, tmp_path)
    fake.script(switch, {"hang": True})
    await killed_turn(fake, tmp_path, flags, "tier:standard", thread, 2)
    fake.script({"text": "done"})
    async with application(tmp_path, flags, "tier:standard") as opened:
        assert (await resumed(opened, thread)).state == "done"
        await asked(opened, thread, "next")
    models = [body["model"] for body in fake.requests]
    assert models == ["claude-haiku-4-5", "claude-opus-4-5", "claude-opus-4-5", "claude-haiku-4-5"]


async def test_a_call_killed_between_reservation_and_answer_is_counted_once(
    fake: FakeModels, tmp_path: Path
) -> None:
    """MO-49, MO acceptance 13: the dead attempt's reservation becomes one estimated row of usage."""
    flags = flags_for(
        fake, **{"budgets.session_usd": 1.0, "dispatch.lease_s": 2, "dispatch.heartbeat_s": 0.6}
    )
    async with application(tmp_path, flags, MODEL) as opened:
        thread = await new_thread(opened, tmp_path)
    fake.script({"hang": True})
    await killed_turn(fake, tmp_path, flags, MODEL, thread, 1)
    fake.script({"text": "done", "usage": {"input_tokens": 1_000, "output_tokens": 10}})
    async with application(tmp_path, flags, MODEL) as opened:
        assert (await resumed(opened, thread)).state == "done"
        rows = await opened.store.read(
            lambda c: c.execute(text("SELECT estimated, input_tokens, cost FROM usage ORDER BY at")).all()
        )
        held = await opened.store.read(
            lambda c: c.execute(text("SELECT DISTINCT state FROM reservations")).all()
        )
    assert [bool(row[0]) for row in rows] == [True, False] and rows[1][1] == 1_000
    assert all(row[2] > 0 for row in rows) and "held" not in {row[0] for row in held}


@pytest.mark.parametrize("busy", ["stream", "command"])
async def test_an_interrupt_stops_what_runs_and_its_text_is_the_next_turn(
    fake: FakeModels, tmp_path: Path, busy: str
) -> None:
    """AG-45, AG-46, AG acceptance 8: next turn within 0.5 s (here ×5 for a busy machine), nothing left behind."""
    steps = {
        "stream": {"text": "slow " * 60, "deltas": 60, "gap_s": 0.1},
        "command": {
            "tools": [{"name": "bash", "input": {"command": "echo $$ > pid; sleep 5.0625; echo late > late"}}]
        },
    }
    fake.script(steps[busy], {"text": "next"})
    async with application(tmp_path, flags_for(fake), MODEL) as opened:
        status = await opened.sandboxes.status()
        if busy == "command" and status.tier == "none":
            pytest.skip(f"no process tier here: {status.reasons}")
        thread = await new_thread(opened, tmp_path)
        await opened.drive(thread)
        first = await opened.sessions.submit(thread, "go")
        with opened.sessions.subscribe(thread) as news:
            async with asyncio.timeout(HANG_S):
                wanted = "text_delta" if busy == "stream" else "tool_intent"
                while getattr((await anext(news)).event, "type", "") != wanted:
                    pass
        if busy == "command":
            await until(lambda: sleeping() > 0)
        began = time.monotonic()
        second = await opened.sessions.submit(thread, "stop that", kind="interrupt")
        async with asyncio.timeout(HANG_S):
            await fake.wait_requests(2)
            took = time.monotonic() - began
            ended = await opened.sessions.wait(second.turn_id)
            stopped = await opened.sessions.wait(first.turn_id)
    assert took < patience(2) and (stopped.state, ended.state) == ("interrupted", "done")
    if busy == "stream":
        await fake.wait_closed(1)
    else:
        await until(lambda: sleeping() == 0)
    assert "stop that" in texts(fake.requests[1])


def sleeping() -> int:
    """How many processes of the command run on this machine."""
    found = 0
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            line = (directory / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        found += line[:2] == [b"sleep", b"5.0625"]
    return found


async def until(condition: Any) -> None:
    async with asyncio.timeout(HANG_S):
        while not condition():
            await asyncio.sleep(0.02)


async def test_what_an_agent_has_written_itself_it_may_write_over_after_a_restart(
    fake: FakeModels, tmp_path: Path
) -> None:
    flags, wrote = flags_for(fake), [""]

    def answer(body: dict[str, Any], number: int) -> dict[str, Any]:
        if number % 2:
            return {"text": "done"}
        call = {"name": "write_file", "input": {"path": "a.txt", "content": f"version {number}\n"}}
        return {"tools": [call]}

    fake.answer(answer)
    for _ in range(2):
        async with application(tmp_path, flags, MODEL) as opened:
            wrote[0] = wrote[0] or await new_thread(opened, tmp_path)
            assert (await asked(opened, wrote[0], "write it")).state == "done"
            history = await opened.sessions.history(wrote[0])
            results = [json.dumps(row.body) for row in history if row.type == "tool_outcome"]
            assert "read it, then write" not in results[-1] and "(10 bytes)" in results[-1]
