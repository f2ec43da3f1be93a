"""kill -9 of a process with teammates (DE-66, acceptance 14; issue 5, must-show 2 and 6)."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.children import wrote
from support.fake_models import FakeModels
from support.teams import (
    ask,
    busy,
    child,
    do,
    new_lead,
    newest,
    opened,
    play,
    reaches,
    requests_of,
    statuses,
    text_of,
    until,
)

from bowerbird.app import Application

START = "the turn that is killed"  # what the killed process says


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


def spawns(*names: str) -> dict[str, Any]:
    given = [{"name": name, "role": "r", "prompt": f"work, {name}"} for name in names]
    return {"tools": [{"name": "spawn_teammate", "input": arguments} for arguments in given]}


async def told(app: Application, thread: str) -> list[str]:
    """Ids of the messages that the journal of a session holds, as often as it holds them."""
    records = await app.sessions.history(thread)
    return [one for r in records if r.type == "injected" for one in r.body.get("ids", [])]


async def settled(app: Application, lead: str) -> None:
    """Wait until every turn of the lead has ended."""

    async def ended() -> bool:
        return all(turn.state == "done" for turn in await app.sessions.turns(lead))

    await until(ended)


async def test_two_working_teammates_and_five_unread_messages_survive_a_kill(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE acceptance 14: after restart each message enters a model call exactly once."""
    silent = {"now": True}
    mail = [("ann", "one"), ("bob", "two"), ("ann", "three"), ("bob", "four"), ("ann", "five")]

    def main(body: dict[str, Any]) -> dict[str, Any]:
        if "spawn_teammate" not in text_of(body):
            return spawns("ann", "bob")
        if not (requests_of(fake, "ann") and requests_of(fake, "bob")):
            return busy(body)  # both have begun, so they do not know what is sent now
        if "message five" not in text_of(body):
            sent = [{"to": to, "content": f"message {word}"} for to, word in mail]
            return {"tools": [{"name": "send_message", "input": arguments} for arguments in sent]}
        return {"hang": True} if silent["now"] else {"text": "all sent"}

    def mate(body: dict[str, Any]) -> dict[str, Any]:
        return {"hang": True} if silent["now"] else {"text": "read"}

    play(fake, {"main": main, "ann": mate, "bob": mate})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
    async with child(fake, tmp_path, lead) as process:
        await until(lambda: any("message five" in text_of(b) for b in requests_of(fake, "main")), 60)
        await process.kill()
    assert not any("message" in newest(b) for name in ("ann", "bob") for b in requests_of(fake, name))
    silent["now"] = False
    before = fake.request_count
    async with opened(tmp_path, fake) as app:
        assert await statuses(app, lead) == {"ann": "working", "bob": "working"}
        await app.drive(lead)
        await reaches(app, lead, ann="idle", bob="idle")
        await settled(app, lead)
        for name, words in (("ann", ["one", "three", "five"]), ("bob", ["two", "four"])):
            found = await told(app, f"{lead}.team.{name}")
            assert len(found) == len(set(found)) == len(words)
            after = [body for body in fake.requests[before:] if body in requests_of(fake, name)]
            for word in words:
                assert text_of(after[-1]).count(f"message {word}") == 1
            assert len(await app.sessions.turns(f"{lead}.team.{name}")) == 1, "it resumed, nothing began anew"


async def test_an_idle_teammate_rests_on_after_a_kill_and_its_name_stays_usable(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-66: a new idle phase; it still hears messages; a name of one that ended is free."""

    def main(body: dict[str, Any]) -> dict[str, Any]:
        if START in newest(body) and "tool_result" not in newest(body):
            return spawns("ann", "bob")
        return {"hang": True} if silent["now"] else {"text": "ok"}

    silent = {"now": True}
    play(fake, {"main": main, "ann": [{"text": "resting"}, wrote("late.txt"), {"text": "written"}],
                "bob": [{"status": 400, "body": {"error": {"message": "no"}}}, {"text": "better"}]})  # fmt: skip
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
    async with opened(tmp_path, fake) as watching, child(fake, tmp_path, lead) as process:
        await reaches(watching, lead, ann="idle", bob="error")
        await until(lambda: len(requests_of(fake, "main")) == 2)
        await process.kill()
    silent["now"] = False
    async with opened(tmp_path, fake) as app:
        await app.drive(lead)
        await settled(app, lead)
        assert (await statuses(app, lead))["ann"] == "idle"
        play(fake, {"ann": [wrote("late.txt"), {"text": "written"}]})
        await do(app, lead, "send_message", to="ann", content="write it")
        await until(lambda: len(requests_of(fake, "ann")) == 3)
        await reaches(app, lead, ann="idle")
        assert "/late.txt" in (await app.sessions.branch(lead)).changes().written
        assert (await do(app, lead, "spawn_teammate", name="bob", role="r", prompt="rest"))[
            "status"
        ] == "working"
        await reaches(app, lead, bob="idle")


async def test_a_team_killed_at_random_instants_loses_and_repeats_nothing(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-66: each task is done once, each message told once, each change merged."""

    def ann(body: dict[str, Any]) -> dict[str, Any]:
        rounds = sum(m["role"] == "assistant" for m in body["messages"])
        if rounds < 4:
            return {**wrote(f"file{rounds}.txt", f"{rounds}\n"), "ttft_s": 0.05}
        return {"text": "written"}

    def main(body: dict[str, Any]) -> dict[str, Any]:
        if "spawn_teammate" not in text_of(body):
            return spawns("ann")
        if "hello" not in text_of(body):
            return {"tools": [{"name": "send_message", "input": {"to": "ann", "content": "hello"}}]}
        return {"text": "sent"} if "sent" not in newest(body) or done["now"] else busy(body)

    done = {"now": False}
    chance = random.Random(5)
    play(fake, {"main": main, "ann": ann})
    async with opened(tmp_path, fake) as app:
        lead = await new_lead(app, tmp_path)
    for _ in range(3):
        async with child(fake, tmp_path, lead) as process:
            seen = fake.request_count
            await until(lambda seen=seen: fake.request_count > seen or process.ended, 60)
            await asyncio.sleep(chance.uniform(0, 0.3))
            await process.kill()
    done["now"] = True
    async with opened(tmp_path, fake) as app:
        await app.drive(lead)
        await settled(app, lead)
        await reaches(app, lead, ann="idle")
        mail = await told(app, f"{lead}.team.ann")
        assert len(mail) == len(set(mail)) == 1
        branch = await app.sessions.branch(lead)
        assert list(branch.changes().written) == [f"/file{n}.txt" for n in range(4)]
        await ask(app, lead, "what is new?")
        reports = await told(app, lead)
        assert len(reports) == len(set(reports)) >= 1
