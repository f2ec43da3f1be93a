"""`landing.check` over HTTP: a command that judges a branch before it lands (UI-27)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.live_server import LiveServer, live_server
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(60))

NOTE = {"name": "write_file", "input": {"path": "/note.txt", "content": "a note\n"}}
CHECK = "test -f note.txt && echo it is here && touch left-behind.txt"


@pytest.fixture
def fake() -> Any:
    with FakeModels() as model:
        yield model


@pytest.fixture
async def judged(tmp_path: Path, fake: FakeModels) -> AsyncIterator[LiveServer]:
    (tmp_path / "workspace").mkdir()
    async with live_server(tmp_path, fake, landing__check=CHECK) as opened:
        status = await opened.context.sandbox_status()
        if status.tier == "none":
            pytest.skip(f"no checks can run here: {status.reasons}")
        yield opened


async def found(live: LiveServer, base: str) -> dict[str, Any]:
    """What the check that was begun found."""
    async with asyncio.timeout(patience(18)):
        while True:
            shown = (await live.http.get(f"{base}/check")).json()
            if shown["state"] != "running":
                return shown
            await asyncio.sleep(0.05)


async def test_a_check_judges_what_would_land_and_leaves_the_branch_as_it_is(judged: LiveServer) -> None:
    judged.fake.script({"tools": [NOTE]}, {"text": "Done."})
    conversation = await judged.conversation()
    base = f"/api/conversations/{conversation}"
    before = (await judged.http.get(f"{base}/check")).json()
    assert (before["state"], before["command"], before["plan"]) == ("none", CHECK, None)

    begun = await judged.http.post(f"{base}/check")
    assert begun.status_code == 202, begun.text
    failed = await found(judged, base)
    assert (failed["state"], failed["exit_code"]) == ("failed", 1), failed

    await judged.http.post(f"{base}/messages", params={"wait": 60}, json={"content": "Write it"})
    plan = (await judged.http.get(f"{base}/landing-plan")).json()["plan"]
    assert failed["plan"] != plan  # something changed since: it is no finding of what would land now
    await judged.http.post(f"{base}/check")
    passed = await found(judged, base)
    assert (passed["state"], passed["exit_code"], passed["plan"]) == ("passed", 0, plan), passed
    assert passed["output_tail"].strip() == "it is here" and passed["seconds"] > 0
    branch = await judged.sessions.branch(conversation)
    assert branch.changes().record() == {"written": ["/note.txt"], "deleted": []}


async def test_without_a_command_nothing_is_checked(tmp_path: Path, fake: FakeModels) -> None:
    (tmp_path / "workspace").mkdir()
    async with live_server(tmp_path, fake) as live:
        base = f"/api/conversations/{await live.conversation()}"
        assert (await live.http.get(f"{base}/check")).json()["command"] == ""
        refused = await live.http.post(f"{base}/check")
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert "landing.check" in refused.text


async def test_deleting_a_conversation_ends_its_check(tmp_path: Path, fake: FakeModels) -> None:
    (tmp_path / "workspace").mkdir()
    async with live_server(tmp_path, fake, landing__check="sleep 500") as live:
        status = await live.context.sandbox_status()
        if status.tier == "none":
            pytest.skip(f"no checks can run here: {status.reasons}")
        conversation = await live.conversation()
        row = await live.sessions.branch(conversation)
        assert (await live.http.post(f"/api/conversations/{conversation}/check")).json()["state"] == "running"
        assert (await live.http.delete(f"/api/conversations/{conversation}")).status_code == 200
        assert live.sessions.review.newest_check(row.id)["state"] == "none"
