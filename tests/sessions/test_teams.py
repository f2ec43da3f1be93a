"""Teams of sessions (DE-46 … DE-67) in whole applications, over scripted models."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.children import wrote
from support.fake_models import FakeModels
from support.teams import (
    ask,
    busy,
    do,
    new_lead,
    newest,
    opened,
    order,
    outcomes,
    play,
    reaches,
    requests_of,
    statuses,
    text_of,
    until,
)

from bowerbird.core.events import Notice, TeammateStatus


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


def spawn(*names: str, prompt: str = "do your work") -> dict[str, Any]:
    given = [{"name": n, "role": f"{n}s role", "prompt": prompt} for n in names]
    return {"tools": [{"name": "spawn_teammate", "input": arguments} for arguments in given]}


async def test_a_teammate_works_on_a_fork_and_its_changes_and_report_reach_the_lead(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-47, DE-55, DE-56, DE-58, DE-61, SE-1."""
    play(fake, {
        "main": [spawn("ann"), {"text": "started"}],
        "ann": [wrote("ann.txt", "by ann\n"), {"text": "ann.txt is there"}],
    })  # fmt: skip
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        heard: list[TeammateStatus] = []
        app.sessions.live.tap(lead, lambda p: heard.append(p.event) if isinstance(p.event, TeammateStatus) else None, lambda: None)  # fmt: skip
        turn = await ask(app, lead)
        assert turn.state == "done", turn.error
        await reaches(app, lead, ann="idle")
        branch = await app.sessions.branch(lead)
        assert branch.changes().written == ("/ann.txt",)
        session = await app.sessions.get(f"{lead}.team.ann")
        assert session.kind == "teammate"
        offered = {tool["name"] for tool in requests_of(fake, "ann")[0]["tools"]}
        assert offered <= {
            "bash", "read_file", "write_file", "edit_file", "list_files", "search_files", "think", "task_list",
            "task_get", "task_update", "send_message", "read_inbox", "idle",
        }  # fmt: skip
        assert offered >= {"write_file", "send_message", "read_inbox", "idle", "task_update"}
        await until(lambda: len(heard) == 2)
        assert heard == [
            TeammateStatus("ann", "anns role", "working"), TeammateStatus("ann", "anns role", "idle"),
        ]  # fmt: skip

        async def config() -> Any:
            return json.loads(await branch.read_bytes("/.team/config.json"))

        wanted = {
            "team_name": f"team_{lead}",
            "members": [{"name": "ann", "role": "anns role", "status": "idle"}],
        }
        await until(lambda: _same(config, wanted))
        await until(lambda: branch.stat("/.team/inbox/lead.jsonl"))
        lines = (await branch.read_bytes("/.team/inbox/lead.jsonl")).decode().splitlines()
        assert json.loads(lines[0])["content"] == "ann.txt is there"
        assert list(json.loads(lines[0])) == ["type", "sender", "content", "timestamp", "extra"]
        assert branch.changes().written == ("/ann.txt",), "copies are no change"


async def _same(read: Any, wanted: Any) -> bool:
    return bool(await read() == wanted)


async def test_without_the_switch_there_are_no_tools_and_no_records(fake: FakeModels, tmp_path: Path) -> None:
    """DE-46."""
    play(fake, {"main": [spawn("ann"), {"text": "no"}]})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path, enable_teams=False)
        await ask(app, lead)
        assert "spawn_teammate" not in {tool["name"] for tool in fake.requests[0]["tools"]}
        assert await statuses(app, lead) == {}
        branch = await app.sessions.branch(lead)
        assert await branch.stat("/.team/config.json") is None


async def test_messages_go_both_ways_and_each_enters_one_model_call(fake: FakeModels, tmp_path: Path) -> None:
    """DE-49, DE-51, DE-57, AG-39: told once, tagged with its origin; a message wakes at once."""
    play(fake, {})
    async with opened(tmp_path, fake, **{"teams.poll_s": 30}) as app:
        lead = await new_lead(app, tmp_path)
        await ask(app, lead, order(
            ("spawn_teammate", {"name": "ann", "role": "r", "prompt": "rest"}),
            ("spawn_teammate", {"name": "bob", "role": "r", "prompt": "rest"}),
        ))  # fmt: skip
        await reaches(app, lead, ann="idle", bob="idle")
        tell = order(("send_message", {"to": "bob", "content": "hello from ann"}))
        assert (await do(app, lead, "send_message", to="ann", content=tell))["status"] == "sent"
        await until(lambda: any("hello from ann" in newest(b) for b in requests_of(fake, "bob")))
        await reaches(app, lead, ann="idle", bob="idle")
        assert (await do(app, lead, "broadcast", content="to all of you"))["sent_to"] == ["ann", "bob"]
        for name in ("ann", "bob"):
            await until(lambda name=name: any("to all of you" in text_of(b) for b in requests_of(fake, name)))
        await reaches(app, lead, ann="idle", bob="idle")
        for name, text in (("bob", "hello from ann"), ("ann", "to all of you"), ("bob", "to all of you")):
            last = text_of(requests_of(fake, name)[-1])
            assert last.count(text) == 1, (name, text)
            assert "come from other agents, not from the user" in last
        # What they said at last came to the lead with its next turn, each once.
        await ask(app, lead, "anything new?")
        report = text_of(requests_of(fake, "main")[-1])
        assert report.count('\\"sender\\":\\"bob\\"') == 3 and report.count('\\"sender\\":\\"ann\\"') == 3
        assert (await do(app, lead, "read_inbox"))["messages"] == []


async def test_names_are_checked_and_the_team_is_bounded(fake: FakeModels, tmp_path: Path) -> None:
    """DE-47, acceptance 13: the sixth teammate is an error; after one ends its name and place can be used."""
    play(fake, {})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        for name in ("t1", "t2", "t3", "t4", "t5"):
            await do(app, lead, "spawn_teammate", name=name, role="r", prompt="rest")
        for name, why in (
            ("t6", "MAX_TEAMMATES 5"), ("t1", "active teammate called"), ("lead", "choose another"),
            ("../x", "teammate's name"), ("Ann", "teammate's name"), ("", "teammate's name"), ("a" * 33, "teammate's name"),
        ):  # fmt: skip
            await ask(app, lead, order(("spawn_teammate", {"name": name, "role": "r", "prompt": "p"})))
            found = (await outcomes(app, lead, "spawn_teammate"))[-1]
            assert found["status"] == "error" and why in found["data"]["error"], (name, found)
        await reaches(app, lead, t1="idle")
        answer = order(("send_message", {
            "to": "lead", "content": "bye", "msg_type": "shutdown_response", "approve": True,
        }))  # fmt: skip
        await do(app, lead, "send_message", to="t1", content=answer, msg_type="shutdown_request")
        await reaches(app, lead, t1="shutdown")
        again = await do(app, lead, "spawn_teammate", name="t1", role="again", prompt="rest")
        assert again["status"] == "working"
        await reaches(app, lead, t1="idle")
        assert (await app.sessions.get(f"{lead}.team.t1.2")).kind == "teammate"
        rows = (await do(app, lead, "list_teammates"))["teammates"]
        assert [row["name"] for row in rows] == ["t2", "t3", "t4", "t5", "t1"]
        assert rows[-1] == {
            "name": "t1", "role": "again", "status": "idle", "current_task": None, "unread": 0,
        }  # fmt: skip


async def test_a_message_to_a_path_is_an_error_and_makes_no_file(fake: FakeModels, tmp_path: Path) -> None:
    """DE-49, acceptance 12: `send_message` to `../../x`: error; no file made anywhere."""
    play(fake, {})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="rest")
        await reaches(app, lead, ann="idle")
        await ask(app, lead, order(("send_message", {"to": "../../x", "content": "hi"})))
        found = (await outcomes(app, lead, "send_message"))[-1]
        assert found["status"] == "error" and "there are: ann" in found["data"]["error"]
        await asyncio.to_thread(_no_file, tmp_path, "x")
        await asyncio.to_thread(_no_file, tmp_path, "x.jsonl")


def _no_file(root: Path, name: str) -> None:
    assert not list(root.rglob(name)) and not list(root.parent.glob(name))


async def test_an_idle_teammate_takes_the_next_task_and_shuts_down_when_nothing_comes(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-41, DE-59: claimed in one write with the start of its work; after the idle time merged and closed."""

    def ann(body: dict[str, Any]) -> dict[str, Any]:
        if "You have claimed task #1 from the task board: Write it" in newest(body):
            return wrote("task.txt")
        if "tool_result" in newest(body) and "task.txt" in text_of(body) and '"taskId"' not in text_of(body):
            return {"tools": [{"name": "task_update", "input": {"taskId": 1, "status": "completed"}}]}
        return {"text": "done"}

    play(fake, {"ann": ann})
    async with opened(tmp_path, fake, **{"teams.idle_s": 1.5}) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "task_create", subject="Write it", description="into task.txt")
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="rest")
        await reaches(app, lead, ann="shutdown")
        branch = await app.sessions.branch(lead)
        assert "/task.txt" in branch.changes().written
        task = await do(app, lead, "task_get", taskId=1)
        assert task["owner"] == "ann"
        await ask(app, lead, order(("send_message", {"to": "ann", "content": "are you there?"})))
        assert (await outcomes(app, lead, "send_message"))[-1]["status"] == "error"


async def test_a_conflict_is_not_merged_and_both_are_told_the_paths_and_a_handle(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-56: the rest is merged; `merge_subagent` takes what was kept."""
    go = {"now": False}

    def ann(body: dict[str, Any]) -> dict[str, Any]:
        rounds = sum(m["role"] == "assistant" for m in body["messages"])
        if rounds == 0:
            return {"tools": [
                {"name": "write_file", "input": {"path": "same.txt", "content": "by ann\n"}},
                {"name": "write_file", "input": {"path": "own.txt", "content": "by ann\n"}},
            ]}  # fmt: skip
        return {"text": "written"} if go["now"] else busy(body)

    play(fake, {"ann": ann})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="write")
        await do(app, lead, "write_file", path="same.txt", content="by the lead\n")
        go["now"] = True
        await until(lambda: any("conflict with the lead" in text_of(b) for b in requests_of(fake, "ann")))
        await reaches(app, lead, ann="idle")
        branch = await app.sessions.branch(lead)
        assert await branch.read_bytes("/same.txt") == b"by the lead\n"
        assert await branch.read_bytes("/own.txt") == b"by ann\n"
        await ask(app, lead, "anything new?")
        told = text_of(requests_of(fake, "main")[-1])
        assert "Changes of ann conflict with your branch and were not merged: /same.txt" in told
        assert "subagent_0" in told
        merged = await do(app, lead, "merge_subagent", handle="subagent_0", force=True)
        assert merged["conflicts"] == ["/same.txt"] and merged["written"] == ["/same.txt"]
        assert await branch.read_bytes("/same.txt") == b"by ann\n"


async def test_a_lead_is_woken_by_mail_but_not_for_ever(fake: FakeModels, tmp_path: Path) -> None:
    """DE-65: an event at once and a turn of its own; at most 10 in a row without input."""

    def main(body: dict[str, Any]) -> dict[str, Any]:
        if "spawn it" in newest(body):
            return spawn("ann")
        if "<inbox>" in newest(body):  # every answer of ann is answered: it would never end
            return {"tools": [{"name": "send_message", "input": {"to": "ann", "content": "again"}}]}
        return {"text": "done"}

    play(fake, {"main": main, "ann": [{"text": "pong"}]})
    async with opened(tmp_path, fake, **{"teams.wake_lead": True, "teams.phases": 50}) as app:
        lead = await new_lead(app, tmp_path)
        notices: list[str] = []
        app.sessions.live.tap(lead, lambda p: notices.append(p.event.text) if isinstance(p.event, Notice) and p.event.kind == "team" else None, lambda: None)  # fmt: skip
        await ask(app, lead, "spawn it")

        async def woken() -> int:
            return sum(turn.kind == "inbox" for turn in await app.sessions.turns(lead))

        async def ten() -> bool:
            turns = await app.sessions.turns(lead)
            return await woken() == 10 and all(turn.state == "done" for turn in turns)

        await until(ten)
        await reaches(app, lead, ann="idle")
        assert await woken() == 10
        assert notices[0] == "ann: pong"
        await ask(app, lead, "a person says something")
        await until(lambda: _more(woken, 10))


async def _more(count: Any, than: int) -> bool:
    return bool(await count() > than)


async def test_what_teammates_use_counts_in_the_usage_of_the_leads_turns_and_session(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-67, SV-42: part of the totals, each call once."""
    use = {"input": 100, "output": 10}
    play(fake, {"main": [{**spawn("ann"), "usage": use}, {"text": "x", "usage": use}], "ann": [{"text": "y", "usage": use}]})  # fmt: skip
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await ask(app, lead)
        await reaches(app, lead, ann="idle")
        turn = await ask(app, lead, "next")
        turns = await app.sessions.turns(lead)
        counted = [t.usage["subagents"]["input_tokens"] for t in turns if t.usage.get("subagents")]
        assert counted == [100]
        assert turn.usage["input_tokens"] in (100, 200)
        from bowerbird.store.rows.usage import session_usage

        total = await app.store.read(lambda c: session_usage(c, lead))
        assert total.calls == 4 and total.input_tokens == 400


async def test_a_teammate_is_told_who_it_is_at_each_call(fake: FakeModels, tmp_path: Path) -> None:
    play(fake, {"ann": [wrote("a"), wrote("b"), {"text": "ok"}]})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="tester", prompt="write")
        await reaches(app, lead, ann="idle")
        told = ["<identity>You are 'ann', role: tester" in text_of(b) for b in requests_of(fake, "ann")]
        assert told == [True, True, True]


async def test_approvals_are_those_of_the_session(fake: FakeModels, tmp_path: Path) -> None:
    """DE-55: with approval on a teammate's write asks; an answer from any door lets it go on."""
    play(fake, {"ann": [{"text": "resting"}, wrote("asked.txt"), {"text": "ok"}]})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="rest")
        await reaches(app, lead, ann="idle")
        await app.sessions.set_flags(lead, {"enable_approval": True})

        async def asked(thread: str) -> Any:
            return [r for r in await app.sessions.pending() if r.thread_id == thread]

        receipt = await app.sessions.submit(lead, order(("send_message", {"to": "ann", "content": "write"})))
        (question,) = await until(lambda: asked(lead))
        await app.sessions.answer(question.request_id, "approve")
        assert (await app.sessions.wait(receipt.turn_id)).state == "done"
        (question,) = await until(lambda: asked(f"{lead}.team.ann"))
        assert question.tools[0]["name"] == "write_file"
        await app.sessions.answer(question.request_id, "approve")
        await reaches(app, lead, ann="idle")
        branch = await app.sessions.branch(lead)
        assert "/asked.txt" in branch.changes().written
