"""How teammates end: switched off, cancelled, deleted, failed (DE-41, DE-46, DE-65, DE-66)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.children import wrote
from support.fake_models import FakeModels
from support.teams import (
    ask,
    do,
    new_lead,
    opened,
    order,
    play,
    reaches,
    requests_of,
    statuses,
    text_of,
    until,
)


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


def spawn(*names: str, prompt: str = "do your work") -> dict[str, Any]:
    given = [{"name": n, "role": f"{n}s role", "prompt": prompt} for n in names]
    return {"tools": [{"name": "spawn_teammate", "input": arguments} for arguments in given]}


async def test_the_claims_of_a_teammate_that_ended_are_free_again(fake: FakeModels, tmp_path: Path) -> None:
    """DE-41: returned to pending, with a note."""
    play(fake, {"ann": [{"text": "resting"}, {"hang": True}]})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="rest")
        await do(app, lead, "task_create", subject="Never done")
        await until(lambda: len(requests_of(fake, "ann")) == 2)
        rows = (await do(app, lead, "list_teammates"))["teammates"]
        assert rows[0]["current_task"] == {"id": 1, "subject": "Never done"}
        assert await app.sessions.cancel(lead) == ""
        await reaches(app, lead, ann="interrupted")
        task = await do(app, lead, "task_get", taskId=1)
        assert (task["status"], task["owner"]) == ("pending", "")
        assert task["metadata"]["released"]["owner"] == "ann"


async def test_a_teammate_whose_model_fails_ends_with_an_error_and_the_others_go_on(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-66: status `error`, a message to the lead."""
    play(fake, {
        "ann": [wrote("half.txt"), {"status": 400, "body": {"error": {"message": "no"}}}],
    })  # fmt: skip
    async with opened(tmp_path, fake, **{"agent.llm_max_retries": 0}) as app:
        lead = await new_lead(app, tmp_path)
        await ask(app, lead, order(
            ("spawn_teammate", {"name": "ann", "role": "r", "prompt": "write"}),
            ("spawn_teammate", {"name": "bob", "role": "r", "prompt": "rest"}),
        ))  # fmt: skip
        await reaches(app, lead, ann="error", bob="idle")
        await ask(app, lead, "anything new?")
        told = text_of(requests_of(fake, "main")[-1])
        assert "ann failed and has ended" in told
        assert "The last changes of ann were not merged" in told and "subagent_0" in told
        branch = await app.sessions.branch(lead)
        assert branch.changes().written == ()
        await do(app, lead, "merge_subagent", handle="subagent_0")
        assert branch.changes().written == ("/half.txt",)


async def test_switching_teams_off_shuts_living_teammates_down_first(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-46: what they have done so far is merged; then the tools are gone."""
    play(fake, {"ann": [wrote("early.txt"), {"hang": True}]})
    async with opened(tmp_path, fake, **{"teams.wake_lead": True}) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="write")
        await until(lambda: len(requests_of(fake, "ann")) == 2)
        before = len(await app.sessions.turns(lead))
        seen: list[Any] = []
        app.sessions.live.tap(lead, lambda p: seen.append(p.event), lambda: None)
        await app.sessions.set_flags(lead, {"enable_teams": False})
        assert await statuses(app, lead) == {"ann": "shutdown"}
        kinds = [type(event).__name__ for event in seen]
        assert kinds.index("TeammateStatus") < kinds.index("ModeChange")
        assert (await app.sessions.branch(lead)).changes().written == ("/early.txt",)
        assert len(await app.sessions.turns(lead)) == before, "that is no reason to wake the lead"
        await ask(app, lead, "and now?")
        assert "spawn_teammate" not in {tool["name"] for tool in fake.requests[-1]["tools"]}


async def test_cancelling_a_session_ends_its_teammates_and_keeps_what_they_changed(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-65: status `interrupted`, streams closed; nobody is woken for it."""
    play(fake, {"main": [spawn("ann"), {"hang": True}], "ann": [wrote("early.txt"), {"hang": True}]})
    async with opened(tmp_path, fake, **{"teams.wake_lead": True}) as app:
        lead = await new_lead(app, tmp_path)
        receipt = await app.sessions.submit(lead, "go")
        await until(lambda: len(requests_of(fake, "ann")) == 2 and len(requests_of(fake, "main")) == 2)
        await app.sessions.cancel(lead)
        await fake.wait_closed(2)
        await reaches(app, lead, ann="interrupted")
        assert (await app.sessions.wait(receipt.turn_id)).state == "cancelled"
        assert len(await app.sessions.turns(lead)) == 1
        play(fake, {})
        await ask(app, lead, "what is left?")
        assert "subagent_0" in text_of(fake.requests[-1])


async def test_deleting_a_session_ends_and_deletes_its_teammates(fake: FakeModels, tmp_path: Path) -> None:
    """DE-65, SE-49."""
    play(fake, {"ann": [{"hang": True}]})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
        for name in ("ann", "bob"):
            await do(app, lead, "spawn_teammate", name=name, role="r", prompt="rest")
        await until(lambda: requests_of(fake, "ann"))
        await app.sessions.delete(lead)
        await fake.wait_closed(1)
        assert not [s for s in await app.sessions.list(kinds=("teammate",)) if s.thread_id.startswith(lead)]
        assert set((await statuses(app, lead)).values()) <= {"interrupted", "shutdown"}
