"""Turns from submit to end: journal, branch, order, stops (SE-7, 14, 17 … 22, 35, 39, 41)."""

import asyncio
import json
from pathlib import Path

import pytest
from support.fake_models import FakeModels
from support.patience import HANG_S, patience
from support.sessions import Place, gapless, place, writes

from bowerbird.core.errors import SessionError, StorageFull, UnknownSession
from bowerbird.core.events import TextLive
from bowerbird.sessions.live.hub import TurnMark


async def rows(home: Place, query: str) -> list[tuple[object, ...]]:
    return await home.store.read(lambda c: [tuple(row) for row in c.exec_driver_sql(query).all()])


async def test_a_turn_is_journalled_step_by_step_and_ends_with_a_snapshot(home: Place) -> None:
    """SE-7, SE-35."""
    home.fake.script(writes("a.txt", "hello"), {"text": "Written."})
    thread = await home.session()
    turn = await home.ask(thread, "write a.txt")
    assert (turn.state, turn.stop_reason) == ("done", "end_turn")
    records = await home.service.history(thread)
    assert [r.type for r in records] == [
        "turn_started", "user", "assistant", "tool_intent", "tool_outcome", "assistant", "turn_ended",
    ]  # fmt: skip
    assert gapless(records)
    started, ended = records[0].body, records[-1].body
    assert list(started) == ["n", "inbox", "kind", "model", "mode"]
    assert (started["n"], started["kind"], started["mode"]) == (1, "user", "normal")
    assert list(ended) == ["state", "stop_reason", "usage", "snapshot", "error"]
    assert ended["snapshot"] == turn.snapshot_id
    branch = await home.service.branch(thread)
    assert branch.changes().record() == {"written": ["/a.txt"], "deleted": []}
    assert [s.id for s in branch.snapshots()] == [turn.snapshot_id]
    assert not (home.project / "a.txt").exists()
    [(snapshot, seq, paths)] = await rows(home, "SELECT snapshot_id, seq, paths FROM snapshots")
    assert (snapshot, seq, paths) == (turn.snapshot_id, records[-1].seq, 1)


async def test_a_turn_without_changes_points_at_the_layer_before(home: Place) -> None:
    """SE-35."""
    home.fake.script(writes("a.txt", "x"), {"text": "1"}, {"text": "2"})
    thread = await home.session()
    first, second = await home.ask(thread), await home.ask(thread)
    assert first.snapshot_id == second.snapshot_id
    found = await rows(home, "SELECT turn_id, layer FROM snapshots ORDER BY seq")
    assert [turn for turn, _ in found] == [first.turn_id, second.turn_id]
    assert found[0][1] == found[1][1]


async def test_messages_to_one_session_run_in_order_and_sessions_side_by_side(home: Place) -> None:
    """SE-18, acceptance 3."""
    running: set[str] = set()
    most = 0

    def answer(body: dict[str, object], number: int) -> dict[str, object]:
        return {"text": "ok", "ttft_s": 0.02}

    home.fake.answer(answer)
    first, second = await home.session(), await home.session()
    receipts = [await home.service.submit(thread, f"m{i}") for i in range(6) for thread in (first, second)]
    for receipt in receipts:
        turn = await home.service.wait(receipt.turn_id)
        running.add(turn.turn_id)
        most = max(most, len(running))
    assert len(running) == 12
    for thread in (first, second):
        records = await home.service.history(thread)
        starts = [r.type for r in records if r.type in ("turn_started", "turn_ended")]
        assert starts == ["turn_started", "turn_ended"] * 6
        texts = [r.body["content"][0]["text"] for r in records if r.type == "user"]
        assert texts == [f"m{i}" for i in range(6)]
    spans = {
        thread: await rows(
            home, f"SELECT started_at, ended_at FROM turns WHERE thread_id = '{thread}' ORDER BY n"
        )
        for thread in (first, second)
    }
    assert any(a[0] < b[1] and b[0] < a[1] for a in spans[first] for b in spans[second])  # type: ignore[operator]


async def test_a_repeated_key_returns_the_first_receipt_and_starts_nothing(home: Place) -> None:
    """SE-17."""
    home.fake.script({"text": "ok"})
    thread = await home.session()
    first = await home.service.submit(thread, "go", door="web", dedupe_key="k")
    await home.service.wait(first.turn_id)
    again = await home.service.submit(thread, "go", door="web", dedupe_key="k")
    assert (again.inbox_id, again.turn_id, again.duplicate) == (first.inbox_id, first.turn_id, True)
    assert home.fake.request_count == 1
    other = await home.service.submit(thread, "go", door="cli", dedupe_key="k")
    assert not other.duplicate
    await home.service.wait(other.turn_id)


async def test_the_next_turn_sees_the_history_of_the_one_before(home: Place) -> None:
    home.fake.script(writes("a.txt", "x"), {"text": "first answer"}, {"text": "second"})
    thread = await home.session()
    await home.ask(thread, "one")
    await home.ask(thread, "two")
    sent = json.dumps(home.fake.requests[-1]["messages"])
    for text in ("one", "first answer", "two", "tool_result"):
        assert text in sent


async def test_a_failing_model_leaves_a_failed_turn_that_resumes_under_its_id(home: Place) -> None:
    """SE-22, MO-32."""
    home.fake.script(writes("a.txt", "x"), {"status": 401, "body": "no"})
    thread = await home.session()
    turn = await home.ask(thread)
    assert (turn.state, turn.stop_reason) == ("failed", "error")
    assert turn.error is not None
    assert turn.error["type"] == "ModelError"
    home.fake.script({"text": "now it works"})
    resumed = await home.service.resume(turn.turn_id)
    assert resumed.turn_id == turn.turn_id
    turn = await home.service.wait(turn.turn_id)
    assert (turn.state, turn.attempt) == ("done", 2)
    outcomes = await home.bodies(thread, "tool_outcome")
    assert len(outcomes) == 1  # the write was not made again
    with pytest.raises(SessionError):
        await home.service.resume(turn.turn_id)


async def test_a_partial_answer_is_kept_and_not_sent_when_resumed(home: Place) -> None:
    """MO-32."""
    home.fake.script({"text": "I was about to say", "deltas": 5, "cut_after": 3}, {"text": "All of it."})
    thread = await home.session()
    turn = await home.ask(thread)
    assert turn.state == "failed"
    assert [b["stop_reason"] for b in await home.bodies(thread, "assistant")] == ["partial"]
    await home.service.resume(turn.turn_id)
    turn = await home.service.wait(turn.turn_id)
    assert turn.state == "done"
    assert "I was" not in json.dumps(home.fake.requests[-1]["messages"])


async def test_cancel_stops_within_100_ms_and_keeps_what_was_said(home: Place) -> None:
    """Law 5, AG-45."""
    home.fake.script({"text": "a b c d e f g h", "deltas": 8, "hang_after": 3}, {"text": "next"})
    thread = await home.session()
    with home.service.subscribe(thread) as viewer:
        receipt = await home.service.submit(thread, "go")
        async for published in viewer:
            if isinstance(published.event, TextLive):
                break
    begun = asyncio.get_running_loop().time()
    await home.service.cancel(thread)
    turn = await home.service.wait(receipt.turn_id)
    assert asyncio.get_running_loop().time() - begun < patience(2)
    await home.fake.wait_closed(1)
    assert (turn.state, turn.stop_reason) == ("cancelled", "cancelled")
    assert [b["stop_reason"] for b in await home.bodies(thread, "assistant")] == ["partial"]
    assert turn.snapshot_id is not None
    with pytest.raises(SessionError, match="nothing runs"):
        await home.service.cancel(thread)
    assert (await home.ask(thread, "more")).state == "done"


async def test_an_interrupt_stops_the_turn_and_its_text_goes_first(home: Place) -> None:
    """SE-19, AG-46."""
    home.fake.script({"text": "a b c", "deltas": 3, "hang_after": 1}, {"text": "second"}, {"text": "third"})
    thread = await home.session()
    first = await home.service.submit(thread, "one")
    await home.fake.wait_requests(1)
    queued = await home.service.submit(thread, "queued")
    stop = await home.service.submit(thread, "stop and do this", kind="interrupt")
    for receipt in (first, stop, queued):
        await home.service.wait(receipt.turn_id)
    assert [t.state for t in await home.service.turns(thread)] == ["interrupted", "done", "done"]
    users = [b["content"][0]["text"] for b in await home.bodies(thread, "user")]
    assert users == ["one", "stop and do this", "queued"]


async def test_a_steer_joins_before_the_next_model_call(home: Place) -> None:
    """SE-19."""
    home.fake.script({"tools": [{"name": "ls", "input": {}}], "ttft_s": 0.3}, {"text": "ok"})
    thread = await home.session()
    receipt = await home.service.submit(thread, "go")
    await home.fake.wait_requests(1)
    steer = await home.service.submit(thread, "in English", kind="steer")
    assert steer.turn_id == receipt.turn_id
    turn = await home.service.wait(receipt.turn_id)
    assert turn.state == "done"
    assert [(b["content"][0]["text"], b["steer"]) for b in await home.bodies(thread, "user")] == [
        ("go", False), ("in English", True),
    ]  # fmt: skip
    assert "in English" in json.dumps(home.fake.requests[1]["messages"])
    assert len(await home.service.turns(thread)) == 1


async def test_a_steer_that_comes_too_late_becomes_a_turn(home: Place) -> None:
    """SE-19: none is dropped."""
    home.fake.script({"text": "done already", "ttft_s": 0.3}, {"text": "and this"})
    thread = await home.session()
    receipt = await home.service.submit(thread, "go")
    await home.fake.wait_requests(1)
    await home.service.submit(thread, "too late", kind="steer")
    await home.service.wait(receipt.turn_id)

    async def both_done() -> bool:
        return [t.state for t in await home.service.turns(thread)] == ["done", "done"]

    await home.until(both_done)
    assert [b["content"][0]["text"] for b in await home.bodies(thread, "user")] == ["go", "too late"]


async def test_usage_is_a_row_per_model_call_and_a_sum_in_the_turn(home: Place) -> None:
    """SE-41."""
    home.fake.script(
        {**writes("a", "x"), "usage": {"input": 100, "output": 10}},
        {"text": "ok", "usage": {"input": 50, "output": 5}},
    )
    thread = await home.session()
    turn = await home.ask(thread)
    found = await rows(home, "SELECT input_tokens, output_tokens, purpose, priced FROM usage ORDER BY id")
    assert [row[:3] for row in found] == [(100, 10, "main"), (50, 5, "main")]
    assert turn.usage is not None
    assert (turn.usage["input_tokens"], turn.usage["model_calls"], turn.usage["tool_calls"]) == (150, 2, 1)


async def test_the_audit_log_has_the_text_as_typed_and_the_final_answer(home: Place) -> None:
    """SE-39."""
    home.fake.script({"text": "Looking", "tools": [{"name": "ls", "input": {}}]}, {"text": "Grüße"})
    thread = await home.session()
    await home.ask(thread, "Hallo", sender={"id": "7", "name": "Me"})
    path = home.data / "sessions" / f"{thread}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["role"], line["content"], line["user_id"]) for line in lines] == [
        ("user", "Hallo", "7"), ("assistant", "Grüße", None),
    ]  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600


async def test_lost_audit_lines_are_written_at_the_next_start(tmp_path: Path, fake: FakeModels) -> None:
    """SE-40."""
    fake.script({"text": "answer"})
    async with place(tmp_path, fake) as home:
        thread = await home.session()
        await home.ask(thread, "question")
        path = home.data / "sessions" / f"{thread}.jsonl"
        path.write_text(path.read_text().splitlines()[0] + '\n{"role":"assi')
        import os

        os.utime(path, (0, 0))
    async with place(tmp_path, fake) as home:
        fake.script({"text": "next"})
        await home.ask(thread, "at once")  # the log is compared beside it, and the torn line is no part of it
        async with asyncio.timeout(HANG_S):
            while "answer" not in path.read_text():
                await asyncio.sleep(0.01)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert sorted(line["content"] for line in lines) == ["answer", "at once", "next", "question"]
        assert path.with_name(f"{path.name}.corrupt").exists()


async def test_the_policy_turn_lands_before_the_end_is_shown_and_step_after_each_outcome(home: Place) -> None:
    """WS-57, SV-52."""
    home.fake.script(writes("a.txt", "x"), {"text": "ok"})
    thread = await home.session(policy="turn")
    assert (await home.ask(thread)).state == "done"
    assert (home.project / "a.txt").read_text() == "x"
    home.fake.script(writes("b.txt", "y"), {"status": 401, "body": ""})
    failed = await home.session(policy="turn")
    assert (await home.ask(failed)).state == "failed"
    assert not (home.project / "b.txt").exists()
    home.fake.script(writes("c.txt", "z"), {"status": 401, "body": ""})
    step = await home.session(policy="step")
    assert (await home.ask(step)).state == "failed"
    assert (home.project / "c.txt").read_text() == "z"


async def test_a_flagged_file_never_lands_by_policy_and_the_user_is_told(home: Place) -> None:
    """WS-57, WS-58."""
    home.fake.script(writes(".github/workflows/x.yml", "on: push"), writes("ok.txt", "x"), {"text": "ok"})
    thread = await home.session(policy="turn")
    notices: list[str] = []
    with home.service.subscribe(thread) as viewer:
        await home.service.submit(thread, "go")
        async for published in viewer:
            if type(published.event).__name__ == "Notice":
                notices.append(published.event.text)  # type: ignore[union-attr]
            if isinstance(published.event, TurnMark) and published.event.has_stopped:
                break
    assert (home.project / "ok.txt").exists()
    assert not (home.project / ".github").exists()
    assert any(".github/workflows/x.yml" in notice for notice in notices)


async def test_below_the_minimum_of_free_space_nothing_is_accepted(home: Place) -> None:
    """SE-61."""
    thread = await home.session()
    home.store.space._min_free_bytes = 1 << 62
    with pytest.raises(StorageFull):
        await home.service.submit(thread, "go")
    assert await home.service.turns(thread) == []
    assert await home.service.history(thread) == []
    home.store.space._min_free_bytes = 0
    home.fake.script({"text": "ok"})
    assert (await home.ask(thread)).state == "done"


async def test_a_running_turn_stops_resumable_when_the_disk_runs_short(home: Place) -> None:
    """SE-61: the service goes on without a restart."""
    home.fake.script({**writes("a.txt", "x"), "ttft_s": 0.3}, {"text": "ok"})
    thread = await home.session()
    receipt = await home.service.submit(thread, "go")
    await home.fake.wait_requests(1)
    home.store.space._min_free_bytes = 1 << 62
    turn = await home.service.wait(receipt.turn_id)
    assert (turn.state, turn.error and turn.error["type"]) == ("failed", "StorageFull")
    assert list(home.data.glob("reserve.*")) == []
    home.store.space._min_free_bytes = 0
    await home.service.resume(turn.turn_id)
    assert (await home.service.wait(turn.turn_id)).state == "done"


async def test_a_defect_ends_its_turn_with_its_name_and_the_session_goes_on(
    tmp_path: Path, fake: FakeModels, caplog: pytest.LogCaptureFixture
) -> None:
    """Law 7."""
    async with place(tmp_path, fake) as home:
        home.maker.change = lambda run: 1 / 0  # type: ignore[assignment, return-value]
        thread = await home.session()
        turn = await home.ask(thread)
        assert turn.state == "failed"
        assert turn.error is not None
        assert turn.error["type"] == "ZeroDivisionError"
        home.maker.change = None
        fake.script({"text": "ok"})
        assert (await home.ask(thread)).state == "done"
    assert "ZeroDivisionError" in caplog.text


async def test_a_large_message_and_a_large_result_come_back_whole(home: Place) -> None:
    """SE-9."""
    text = "ä" * 150_000  # below what is summarised
    home.fake.script(writes("big.txt", text), {"text": "ok"}, {"text": "again"})
    thread = await home.session()
    await home.ask(thread, text)
    await home.ask(thread, "more")
    sent = home.fake.requests[-1]["messages"]
    assert text in json.dumps(sent, ensure_ascii=False)
    branch = await home.service.branch(thread)
    assert branch.read_overlay("big.txt") == text.encode()
    assert len(list((home.data / "blobs").iterdir())) >= 3


async def test_unknown_sessions_and_turns_are_said_so(home: Place) -> None:
    for call in (
        home.service.submit("nobody", "x"), home.service.get("nobody"), home.service.turn("t_x"),
        home.service.history("nobody"), home.service.turns("nobody"), home.service.fork("nobody"),
        home.service.delete("nobody"), home.service.rename("nobody", "x"),
    ):  # fmt: skip
        with pytest.raises(UnknownSession):
            await call
