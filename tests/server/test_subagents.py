"""Subagents, tournaments, agents and the board over HTTP (SV-62, DE-6 … DE-8, DE-21 … DE-26, DE-43)."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call
from support.children import play, replaced, wrote
from support.fake_models import FakeModels
from support.live_server import LiveServer, events, live_server, one, say, types
from support.patience import HANG_S, patience

SPAWN = {"tools": [call("spawn_subagents", tasks=["paint red", "paint blue"])]}
PAINTERS = {
    "make": [SPAWN, {"text": "made"}],
    "red": [wrote("red.txt"), {"text": "red is there"}],
    "blue": [wrote("blue.txt"), {"text": "blue is there"}],
}


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models


@pytest.fixture
async def live(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, sandbox__tier="none") as opened:
        yield opened


async def painted(live: LiveServer) -> str:
    """A conversation with two subagents that have ended."""
    play(live.fake, PAINTERS)
    conversation = await live.conversation()
    answer = await live.http.post(
        f"/api/conversations/{conversation}/messages?wait=60", json={"content": "make them"}
    )
    assert answer.json()["text"] == "made", answer.text
    return conversation


async def test_subagents_are_listed_and_shown_with_patch_and_transcript(live: LiveServer) -> None:
    """DE-4, DE-8, DE-17."""
    conversation = await painted(live)
    base = f"/api/conversations/{conversation}/subagents"
    first, second = (await live.http.get(base)).json()
    assert list(first) == [
        "handle", "session", "parent_branch", "fork", "snapshot", "task", "agent_type", "model", "state", "result",
        "error", "usage", "depth", "created", "ended", "agent",
    ]  # fmt: skip
    assert [first["handle"], second["handle"]] == ["subagent_0", "subagent_1"]
    assert (first["state"], first["result"]) == ("finished", "red is there")
    shown = (await live.http.get(f"{base}/subagent_0")).json()
    assert {key: shown[key] for key in first} == first
    assert [row["path"] for row in shown["diff"]["written"]] == ["/red.txt"]
    assert "+x" in shown["diff"]["patch"]
    assert [row["role"] for row in shown["transcript"]] == ["user", "assistant", "tool", "assistant"]
    assert shown["transcript"][0]["content"] == "paint red"
    made, result, said = shown["transcript"][1:]
    assert made["tool_calls"][0]["tool"] == "write_file"
    assert (result["tool"], result["id"], result["status"]) == (
        "write_file",
        made["tool_calls"][0]["id"],
        "ok",
    )
    assert said["content"] == "red is there"
    later = await live.http.get(f"{base}/subagent_0", params={"after": result["cursor"]})
    assert [row["content"] for row in later.json()["transcript"]] == ["red is there"]
    for handle in ("subagent_7", "x", "..%2F", "%00"):
        assert (await live.http.get(f"{base}/{handle}")).status_code == 404, handle


async def test_one_is_merged_and_the_other_discarded(live: LiveServer) -> None:
    """DE-6, DE-7, DE-12: a repeated merge is empty; viewers are told."""
    conversation = await painted(live)
    base = f"/api/conversations/{conversation}/subagents"
    async with live.socket(conversation, "v=2") as socket:
        assert (await one(socket))["type"] == "hello"
        merged = await live.http.post(f"{base}/subagent_0/merge", json={"paths": ["red.txt", "none.txt"]})
        assert merged.json() == {
            "written": ["/red.txt"], "deleted": [], "conflicts": [], "skipped": [], "merged": [],
            "unknown": ["/none.txt"],
        }  # fmt: skip
        notice = (await events(socket, "notice"))[-1]
        assert notice["message"] == "merged 1 paths of subagent_0"
    again = await live.http.post(f"{base}/subagent_0/merge")
    assert not any(again.json().values())
    shown = (await live.http.get(f"/api/conversations/{conversation}")).json()
    assert shown["changed_files"] == 1
    assert (await live.http.post(f"{base}/subagent_1/discard")).json() == {"status": "discarded"}
    assert [row["state"] for row in (await live.http.get(base)).json()] == ["merged"]
    for verb in ("merge", "discard"):
        gone = await live.http.post(f"{base}/subagent_1/{verb}")
        assert (gone.status_code, gone.json()["detail"]) == (404, "unknown subagent handle: 'subagent_1'")
    wrong = await live.http.post(f"{base}/subagent_0/merge", json={"path": "red.txt"})
    assert wrong.status_code == 422


async def test_a_conflict_is_listed_and_forced_only_when_asked(live: LiveServer) -> None:
    """DE-12."""
    workspace = Path(live.context.settings.workspace)
    (workspace / "a.txt").write_text("one\n")
    lead = [
        {"tools": [call("spawn_subagents", tasks=["edit red"])]},
        replaced("one", "mine"),
        {"text": "made"},
    ]
    play(live.fake, {"make": lead, "red": [replaced("one", "theirs"), {"text": "done"}]})
    conversation = await live.conversation()
    await live.http.post(f"/api/conversations/{conversation}/messages?wait=60", json={"content": "make"})
    url = f"/api/conversations/{conversation}/subagents/subagent_0/merge"
    refused = (await live.http.post(url)).json()
    assert refused["conflicts"] == refused["skipped"] == ["/a.txt"] and refused["written"] == []
    forced = (await live.http.post(url, json={"force": True})).json()
    assert (forced["conflicts"], forced["skipped"], forced["written"]) == (["/a.txt"], [], ["/a.txt"])
    branch = await live.sessions.branch(conversation)
    assert (await branch.read_file("a.txt"))["content"].strip().endswith("theirs")


async def test_nothing_is_merged_into_a_branch_that_a_turn_works_on(live: LiveServer) -> None:
    conversation = await painted(live)
    live.fake.script({"hang": True})
    before = live.fake.request_count
    await live.http.post(f"/api/conversations/{conversation}/messages", json={"content": "go on"})
    await live.fake.wait_requests(before + 1)
    url = f"/api/conversations/{conversation}/subagents/subagent_0/merge"
    refused = await live.http.post(url)
    assert (refused.status_code, refused.json()["code"]) == (409, "turn_running")
    key = {"Idempotency-Key": "merge-once"}
    await live.http.post(f"/api/conversations/{conversation}/cancel")
    async with asyncio.timeout(HANG_S):
        while (merged := await live.http.post(url, headers=key)).status_code == 409:
            key = {"Idempotency-Key": key["Idempotency-Key"] + "x"}
    assert merged.json()["written"] == ["/red.txt"]
    assert (await live.http.post(url, headers=key)).json() == merged.json()  # SV-3: the first answer


# ---------------------------------------------------------------- questions of subagents


async def frames_until_done(socket: Any, decisions: list[str]) -> list[dict[str, Any]]:
    """Read to the end, answering each question as a client that knows no ids does."""
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(HANG_S):
        while not seen or seen[-1]["type"] != "done":
            seen.append(json.loads(await socket.recv()))
            if seen[-1]["type"] == "tool_approval_request":
                await socket.send(
                    json.dumps({"type": "tool_approval_response", "decision": decisions.pop(0)})
                )
    return seen


@pytest.fixture
async def asking(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    rules = [{"tool": "write_file", "decision": "ask"}]
    async with live_server(tmp_path, fake, sandbox__tier="none", approval__rules=rules) as opened:
        yield opened


async def test_a_plain_client_answers_what_subagents_ask(asking: LiveServer) -> None:
    """SV-37, SV-39, DE-3: the requests of children reach the parent's viewers, who answer there."""
    play(asking.fake, PAINTERS)
    conversation = await asking.conversation()
    async with asking.socket(conversation) as socket:
        await say(socket, "make them")
        seen = await frames_until_done(socket, ["approve", "deny"])
    requests = [event for event in seen if event["type"] == "tool_approval_request"]
    assert {request["subagent_id"] for request in requests} == {
        f"{conversation}.sub0",
        f"{conversation}.sub1",
    }
    assert all(request["tools"][0]["name"] == "write_file" for request in requests)
    results = {e["request_id"]: e["decision"] for e in seen if e["type"] == "tool_approval_result"}
    assert results == {requests[0]["request_id"]: "approved", requests[1]["request_id"]: "denied"}
    written = {row["path"] for row in await changed_by_children(asking, conversation)}
    assert written == {"/red.txt" if "sub0" in requests[0]["subagent_id"] else "/blue.txt"}


async def changed_by_children(live: LiveServer, conversation: str) -> list[dict[str, Any]]:
    base = f"/api/conversations/{conversation}/subagents"
    found: list[dict[str, Any]] = []
    for row in (await live.http.get(base)).json():
        found += (await live.http.get(f"{base}/{row['handle']}")).json()["diff"]["written"]
    return found


async def test_another_door_answers_and_a_late_viewer_is_asked(asking: LiveServer) -> None:
    """SV-29, SV-46: by REST under the parent's name; a viewer that comes later sees the open question."""
    play(
        asking.fake,
        {**PAINTERS, "make": [{"tools": [call("spawn_subagents", tasks=["red"])]}, {"text": "ok"}]},
    )
    conversation = await asking.conversation()
    url = f"/api/conversations/{conversation}/messages"
    await asking.http.post(url, json={"content": "make"})
    async with asyncio.timeout(HANG_S):
        while not (waiting := (await asking.http.get("/api/approvals")).json()):
            await asyncio.sleep(0.02)
    (question,) = waiting
    assert (question["conversation_id"], question["subagent_id"]) == (conversation, f"{conversation}.sub0")
    async with asyncio.timeout(HANG_S):
        while not (rows := (await asking.http.get("/api/conversations")).json())[0]["pending_approval"]:
            await asyncio.sleep(0.02)
    assert [row["id"] for row in rows] == [conversation]
    async with asking.socket(conversation) as socket:
        request = (await events(socket, "tool_approval_request"))[-1]
        assert (request["request_id"], request["replay"]) == (question["request_id"], True)
        # Also to one that comes back with a cursor: the question is in no record of this conversation.
        async with asking.socket(conversation, f"after={request['cursor']}") as again:
            assert (await one(again))["request_id"] == question["request_id"]
        body = {"decision": "auto_approve"}
        answer = await asking.http.post(f"/api/approvals/{question['request_id']}", json=body)
        assert answer.status_code == 200
        seen = await events(socket, "done")
        result = next(event for event in seen if event["type"] == "tool_approval_result")
        assert (result["decision"], result["request_id"]) == ("auto_approved", question["request_id"])
    # Acceptance 6: it holds for later turns of the conversation.
    play(asking.fake, {"make": [wrote("mine.txt"), {"text": "written"}]})
    told = (await asking.http.post(url + "?wait=60", json={"content": "and you"})).json()
    assert (told["state"], told["text"]) == ("done", "written")


async def test_a_question_that_nobody_answers_is_over_for_the_viewers_too(
    tmp_path: Path, fake: FakeModels
) -> None:
    """SV-41: `timeout`; the subagent ends and its caller goes on."""
    rules = [{"tool": "write_file", "decision": "ask"}]
    more = {"approval__rules": rules, "approval__timeout_s": 1}
    async with live_server(tmp_path, fake, sandbox__tier="none", **more) as live:
        play(
            fake, {**PAINTERS, "make": [{"tools": [call("spawn_subagents", tasks=["red"])]}, {"text": "ok"}]}
        )
        conversation = await live.conversation()
        async with live.socket(conversation) as socket:
            await say(socket, "make")
            seen = await events(socket, "done")
            names = types(seen)
            result = seen[names.index("tool_approval_result")]
            assert result["decision"] == "timeout"
            assert (
                names.index("tool_approval_result") < names.index("subagent_end") < names.index("tool_result")
            )
            await socket.send('{"type": "tool_approval_response", "decision": "approve"}')
            assert (await events(socket, "error"))[-1]["code"] == "no_pending_request"


# ---------------------------------------------------------------- tournaments


@pytest.fixture
async def judged(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake) as opened:
        status = await opened.context.sandbox_status()
        if status.tier == "none":
            pytest.skip(f"no checks can run here: {status.reasons}")
        yield opened


def compete(fake: FakeModels, *attempts: list[dict[str, Any]]) -> None:
    """Script each attempt by its name."""

    def answer(body: dict[str, Any], _n: int) -> dict[str, Any]:
        rounds = sum(message["role"] == "assistant" for message in body["messages"])
        number = next(n for n in range(len(attempts)) if f"_sub{n}." in str(body["system"]))
        return attempts[number][min(rounds, len(attempts[number]) - 1)]

    fake.answer(answer)


async def ended(live: LiveServer, conversation: str, tournament: str) -> dict[str, Any]:
    async with asyncio.timeout(patience(18)):
        while True:
            shown = (await live.http.get(f"/api/conversations/{conversation}/attempts/{tournament}")).json()
            if shown["state"] != "running":
                return shown
            await asyncio.sleep(0.05)


async def test_a_tournament_is_begun_watched_and_its_winner_merged(judged: LiveServer) -> None:
    """DE-21 … DE-25; issue 5, must show 3 over HTTP."""
    compete(judged.fake, [wrote("wrong.txt"), {"text": "a"}], [wrote("right.txt"), {"text": "b"}])
    conversation = await judged.conversation()
    base = f"/api/conversations/{conversation}"
    async with judged.socket(conversation) as socket:
        asked = {"task": "make right.txt", "attempts": 2, "checks": ["test -f right.txt"], "merge": "best"}
        begun = await judged.http.post(f"{base}/attempts", json=asked)
        assert begun.status_code == 202, begun.text
        first = begun.json()
        assert (first["state"], len(first["attempts"]), first["ranking"]) == ("running", 2, [])
        assert len(await events(socket, "subagent_end", times=2)) >= 2
        shown = await ended(judged, conversation, first["id"])
    assert (shown["state"], shown["winner"], shown["error"]) == ("finished", "subagent_1", None)
    assert [row["handle"] for row in shown["ranking"]] == ["subagent_1", "subagent_0"]
    assert list(shown["ranking"][0]) == [
        "handle", "rank", "status", "passed", "failed", "checks", "files", "added", "removed", "touched_checks",
        "cost", "tokens", "seconds", "error", "agent",
    ]  # fmt: skip
    assert shown["merged"]["written"] == ["/right.txt"]
    branch = await judged.sessions.branch(conversation)
    assert branch.changes().record() == {"written": ["/right.txt"], "deleted": []}
    listed = (await judged.http.get(f"{base}/attempts")).json()
    assert [row["id"] for row in listed] == [first["id"]] and listed[0] == shown
    for tournament in ("c_nothing", "x", "%00"):
        assert (await judged.http.get(f"{base}/attempts/{tournament}")).status_code == 404


async def test_a_tournament_goes_on_after_a_restart_and_repeats_no_finished_attempt(
    tmp_path: Path, fake: FakeModels
) -> None:
    """DE-26: the server stops while one attempt runs; the next one ends it."""
    compete(fake, [wrote("right.txt"), {"text": "first"}], [{"hang": True}])
    async with live_server(tmp_path, fake) as live:
        status = await live.context.sandbox_status()
        if status.tier == "none":
            pytest.skip(f"no checks can run here: {status.reasons}")
        conversation = await live.conversation()
        base = f"/api/conversations/{conversation}"
        asked = {"task": "make right.txt", "attempts": 2, "checks": ["test -f right.txt"]}
        tournament = (await live.http.post(f"{base}/attempts", json=asked)).json()["id"]
        async with asyncio.timeout(HANG_S):
            while (await live.http.get(f"{base}/subagents/subagent_0")).json()["state"] != "finished":
                await asyncio.sleep(0.02)
        await fake.wait_requests(3)
    asked_first = len(requests_by(fake, "_sub0."))
    compete(fake, [{"text": "never asked"}], [wrote("right.txt"), {"text": "second"}])
    async with live_server(tmp_path, fake) as live:
        shown = await ended(live, conversation, tournament)
        assert shown["state"] == "finished" and len(shown["ranking"]) == 2, shown
        assert all(row["passed"] == 1 for row in shown["ranking"])
    assert len(requests_by(fake, "_sub0.")) == asked_first


def requests_by(fake: FakeModels, name: str) -> list[dict[str, Any]]:
    return [body for body in fake.requests if name in str(body["system"])]


async def test_what_is_no_tournament_is_refused(live: LiveServer) -> None:
    conversation = await live.conversation()
    url = f"/api/conversations/{conversation}/attempts"
    for body in (
        {}, {"task": ""}, {"task": "x", "attempts": 1}, {"task": "x", "attempts": 9}, {"task": "x", "merge": "all"},
        {"task": "x", "checks": [""]}, {"task": "x", "models": ["no such:model"]}, {"task": "x", "n": 3},
    ):  # fmt: skip
        assert (await live.http.post(url, json=body)).status_code == 422, body
    without = await live.http.post(url, json={"task": "x"})  # nor are any configured
    assert (without.status_code, without.json()["code"]) == (409, "conflict") and "checks" in without.text
    # No process can run here: no check could.
    nowhere = await live.http.post(url, json={"task": "x", "checks": ["true"]})
    assert (nowhere.status_code, nowhere.json()["code"]) == (409, "session_error")
    assert (await live.http.get(f"/api/conversations/{conversation}/subagents")).json() == []


async def test_deleting_a_conversation_ends_its_tournament(judged: LiveServer) -> None:
    compete(judged.fake, [{"hang": True}], [{"hang": True}])
    conversation = await judged.conversation()
    asked = {"task": "never", "attempts": 2, "checks": ["true"]}
    await judged.http.post(f"/api/conversations/{conversation}/attempts", json=asked)
    await judged.fake.wait_requests(2)
    assert (await judged.http.delete(f"/api/conversations/{conversation}")).status_code == 200
    await judged.fake.wait_closed(2)
    assert (await judged.http.get(f"/api/conversations/{conversation}/subagents")).status_code == 404


# ---------------------------------------------------------------- agents, board


async def test_agents_are_listed_with_what_they_may_use(tmp_path: Path, fake: FakeModels) -> None:
    """DE-14: custom types too."""
    types_ = {"writer": {"description": "writes", "tools": ["write_file"], "model": "claude-haiku-4-5"}}
    async with live_server(tmp_path, fake, delegation__types=types_) as live:
        every = (await live.http.get("/api/agents")).json()
    rows = {row["name"]: row for row in every if row["type"] == "subagent"}
    assert {row["type"] for row in every} == {"subagent", "api", "cli", "local"}
    assert list(rows) == ["code", "explore", "general", "plan", "research", "writer"]
    assert rows["writer"]["tools"] == ["write_file"] and rows["writer"]["model"] == "claude-haiku-4-5"
    assert rows["general"]["tools"] is None and "write_file" not in rows["explore"]["tools"]


async def test_looking_at_a_board_takes_over_the_task_files_of_its_workspace(live: LiveServer) -> None:
    """DE-43: once, with their ids; a damaged file is named to viewers and left alone."""
    tasks = Path(live.context.settings.workspace) / ".tasks"
    tasks.mkdir(parents=True)
    (tasks / "task_3.json").write_text('{"id": 3, "subject": "Kept", "blockedBy": [], "status": "pending"}')
    (tasks / "task_4.json").write_text("{broken")
    conversation = await live.conversation()
    async with live.socket(conversation, "v=2") as socket:
        assert (await one(socket))["type"] == "hello"
        rows = (await live.http.get("/api/tasks")).json()
        assert [(row["id"], row["subject"]) for row in rows] == [(3, "Kept")]
        notice = (await events(socket, "notice"))[-1]
        assert ".tasks/task_4.json" in notice["message"]
    assert (tasks / "task_4.json").read_text() == "{broken"
    (tasks / "task_3.json").write_text('{"id": 3, "subject": "Edited"}')  # a copy is never read back
    assert (await live.http.get("/api/tasks")).json()[0]["subject"] == "Kept"
