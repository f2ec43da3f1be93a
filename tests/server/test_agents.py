"""Other vendors' agents over REST: run as a stream, stopped by leaving, remembered, probed (PR-8, PR-30)."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server

from bowerbird.store.rows.tokens import make_token

NDJSON = {"Accept": "application/x-ndjson"}


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as models:
        yield models


@pytest.fixture
async def live(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, fake, sandbox__tier="none") as opened:
        yield opened


async def ran(live: LiveServer, name: str, **asked: Any) -> dict[str, Any]:
    """Run an agent and return the answer at the end of its stream."""
    answer = await live.http.post(f"/api/agents/{name}/run", json=asked, headers=NDJSON)
    assert answer.status_code == 200, answer.text
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row["kind"] for row in rows].index("done") == len(rows) - 1
    found: dict[str, Any] = rows[-1]["response"]
    assert found["content"] == "".join(row["text"] for row in rows if row["kind"] == "text")
    return found


async def test_a_run_is_a_stream_with_the_answer_at_its_end(live: LiveServer) -> None:
    """PR-8, PR-11, PR-30."""
    live.fake.script({"text": "Hello there."})
    first = await ran(live, "claude", prompt="hi", max_tokens=50)
    assert first["success"] and first["metadata"]["model"] and live.fake.requests[-1]["max_tokens"] == 50
    again = await ran(live, "claude", prompt="and?", session_id=first["session_id"])
    assert [m["role"] for m in live.fake.requests[-1]["messages"]] == ["user", "assistant", "user"]
    logs = (await live.http.get(f"/api/agents/memory/{again['session_id']}")).json()["logs"]
    assert [log["content"] for log in logs] == ["hi", "Hello there.", "and?", "Hello there."]
    memory = (await live.http.get(f"/api/agents/memory/{again['session_id']}")).json()
    assert memory["conversation_id"] is None, "it has no files"
    runs = (await live.http.get("/api/agents/runs?limit=1")).json()
    assert [(run["prompt"], run["state"], run["changes"]) for run in runs] == [("and?", "done", None)]
    plain = await live.http.post("/api/agents/claude/run", json={"prompt": "hi"})
    assert plain.headers["content-type"].startswith("text/event-stream") and plain.text.startswith("data: {")


async def test_a_run_may_name_what_the_agent_must_be_able_to_do(live: LiveServer) -> None:
    """PR-14: any name was refused as none of the enumeration."""
    live.fake.script({"text": "Yes."})
    assert (await ran(live, "claude", prompt="hi", capabilities=["streaming"]))["content"] == "Yes."
    lacking = {"prompt": "hi", "capabilities": ["cloud_storage"]}
    answer = await live.http.post("/api/agents/claude/run", json=lacking, headers=NDJSON)
    assert "cloud_storage" in answer.text and len(live.fake.requests) == 1


async def test_leaving_ends_the_run(live: LiveServer) -> None:
    """Law 5: who closes the connection stops the agent, and its session says so."""
    live.fake.script({"text": "slow", "hang": True})
    asked = {"prompt": "hi", "session_id": "left"}
    async with live.http.stream("POST", "/api/agents/claude/run", json=asked, headers=NDJSON):
        await live.fake.wait_requests(1)
    await live.fake.wait_closed(1)
    live.fake.script({"text": "quick"})
    await ran(live, "claude", prompt="again", session_id="left")  # waits for the end of the first
    logs = (await live.http.get("/api/agents/memory/left")).json()["logs"]
    assert [log["content"] for log in logs][1] == "[error] it was stopped"


REFUSED: list[tuple[str, dict[str, Any] | None, int]] = [
    ("nobody/run", {"prompt": "x"}, 404),
    ("nobody/probe", None, 404),
    ("claude/run", {"prompt": "  "}, 422),
    ("claude/run", {"prompt": "a\0b"}, 422),
    ("claude/run", {"prompt": "x", "more": 1}, 422),
    ("claude/run", {"prompt": "x", "capabilities": ["flying"]}, 422),
    ("claude/run", {"prompt": "x", "snapshot_id": "s_1"}, 422),
    ("claude/run", {"prompt": "x", "session_id": "../x"}, 422),
    ("claude/run", {"prompt": "x", "conversation_id": "0123456789ab"}, 404),
    ("claude/run", {"prompt": "x", "workspace": "elsewhere"}, 422),
    ("claude/run", {"prompt": "x", "direct": True}, 422),  # it has no files
    ("claude_code/run", {"prompt": "x", "direct": True}, 403),  # settings do not allow it
    ("claude_code/run", {"prompt": "x", "direct": True, "branch_id": "b_1"}, 422),
]


async def test_what_cannot_be_run_is_refused_before_anything_starts(live: LiveServer) -> None:
    """PR-14, PR-21, PR-33."""
    for path, body, status in REFUSED:
        answer = await live.http.post(f"/api/agents/{path}", json=body)
        assert answer.status_code == status, (path, body, answer.text)
        if status == 422 and "session_id" in (body or {}):
            assert answer.json()["detail"][0]["loc"] == ["body"], "the prompt is not what is wrong"
    assert not live.fake.requests and (await live.http.get("/api/agents/runs")).json() == []
    assert (await live.http.get("/api/agents/memory/..%2Fx")).status_code == 404


async def test_probes_and_failures_are_told(live: LiveServer) -> None:
    """PR-6, PR-20: without a tier that runs processes a program is refused with the reason."""
    probe = (await live.http.post("/api/agents/claude/probe")).json()
    assert (probe["name"], probe["status"]) == ("claude", "operative")
    answer = await live.http.post("/api/agents/codex/run", json={"prompt": "x"}, headers=NDJSON)
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert rows[-1]["response"]["metadata"]["error_type"] == "AgentAuthError"
    assert "OPENAI_API_KEY" in rows[-1]["response"]["error"] and rows[-2]["kind"] == "error"


async def test_a_run_without_review_is_for_admins(tmp_path: Path, fake: FakeModels) -> None:
    """PR-21: settings allow it, and the caller's role does not."""
    flags: dict[str, Any] = {
        "server__auth": "token",
        "providers__allow_direct": True,
        "sandbox__tier": "none",
    }
    roles: list[tuple[Any, int]] = [("user", 403), ("admin", 200)]
    async with live_server(tmp_path, fake, **flags) as live:
        for role, status in roles:
            _, secret = await live.context.store.write(
                lambda c, role=role: make_token(c, role, role, user=role)
            )
            headers = {"Authorization": f"Bearer {secret}", **NDJSON}
            asked = {"prompt": "x", "direct": True}
            answer = await live.http.post("/api/agents/claude_code/run", json=asked, headers=headers)
            assert answer.status_code == status, answer.text
