"""Teammates beside a lead that works: commands, rollbacks, claims, models, databases (DE-41, DE-56, DE-59)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.children import wrote
from support.databases import database_url, postgres, postgres_url
from support.fake_models import FakeModels
from support.teams import (
    ask,
    busy,
    child,
    do,
    new_lead,
    newest,
    opened,
    order,
    outcomes,
    play,
    reaches,
    requests_of,
    text_of,
    until,
)

from bowerbird.app.features.boards import SessionRecords
from bowerbird.sessions.teams.teams import Teams

__all__ = ("database_url", "postgres", "postgres_url")


@pytest.fixture
def fake() -> Iterator[FakeModels]:
    with FakeModels() as server:
        yield server


async def test_what_a_teammate_merges_while_the_lead_runs_a_command_is_there_for_the_next(
    fake: FakeModels, tmp_path: Path
) -> None:
    """DE-12, DE-56: in the lead's open layer, beside what its own process writes."""
    command = "echo a > lead.txt; for i in $(seq 50); do sleep 0.05; done; echo b >> lead.txt"

    def main(body: dict[str, Any]) -> dict[str, Any]:
        if "spawn_teammate" not in text_of(body):
            spawn = {"name": "spawn_teammate", "input": {"name": "ann", "role": "r", "prompt": "write"}}
            return {"tools": [spawn]}
        if '"command"' not in text_of(body):
            return {"tools": [{"name": "bash", "input": {"command": command, "timeout": 20}}]}
        if "cat ann.txt" not in text_of(body):
            return {"tools": [{"name": "bash", "input": {"command": "cat ann.txt lead.txt"}}]}
        return {"text": "done"}

    play(fake, {"main": main, "ann": [wrote("ann.txt", "by ann\n"), {"text": "there"}]})
    async with opened(tmp_path, fake) as app:
        if (await app.sandboxes.status()).tier == "none":
            pytest.skip("no commands can run here")
        lead = await new_lead(app, tmp_path)
        receipt = await app.sessions.submit(lead, "go")
        await reaches(app, lead, ann="idle")
        branch = await app.sessions.branch(lead)
        turn = await app.sessions.wait(receipt.turn_id)
        assert turn.state == "done", turn.error
        seen = (await outcomes(app, lead, "bash"))[-1]["content"]
        assert "by ann\na\nb" in str(seen).replace("\\n", "\n"), seen
        assert {"/ann.txt", "/lead.txt"} <= set(branch.changes().written)


async def test_a_lead_taken_back_after_a_kill_has_what_was_merged_meanwhile(
    fake: FakeModels, tmp_path: Path
) -> None:
    """SE-26, DE-56, DE-66: the command's own changes are taken back, a teammate's are not lost."""
    slow = {"now": True}

    def main(body: dict[str, Any]) -> dict[str, Any]:
        if "spawn_teammate" not in text_of(body):
            spawn = {"name": "spawn_teammate", "input": {"name": "ann", "role": "r", "prompt": "write"}}
            return {"tools": [spawn]}
        if '"command"' not in text_of(body):
            command = "echo half >> log.txt; [ -e go ] || sleep 60; echo whole >> log.txt"
            return {"tools": [{"name": "bash", "input": {"command": command, "timeout": 90}}]}
        return {"text": "done"}

    def ann(body: dict[str, Any]) -> dict[str, Any]:
        if "write_file" in text_of(body):
            return {"text": "there"}
        # Only once the lead's command runs, so that its mark is older than the merge.
        began = any('"command"' in text_of(b) for b in requests_of(fake, "main"))
        return wrote("ann.txt", "by ann\n") if began or not slow["now"] else busy(body)

    play(fake, {"main": main, "ann": ann})
    async with opened(tmp_path, fake) as app:
        if (await app.sandboxes.status()).tier == "none":
            pytest.skip("no commands can run here")
        lead = await new_lead(app, tmp_path)
        project = tmp_path / "project"
    async with opened(tmp_path, fake) as watching, child(fake, tmp_path, lead) as process:

        async def running() -> bool:
            records = await watching.store.records(lead)
            return any(r.type == "tool_intent" and r.body["tool"] == "bash" for r in records)

        await until(running, 60)
        slow["now"] = False
        await reaches(watching, lead, ann="idle")
        await process.kill()
    (project / "go").write_text("")
    async with opened(tmp_path, fake) as app:
        await app.drive(lead)

        async def ended() -> bool:
            return all(turn.state == "done" for turn in await app.sessions.turns(lead))

        await until(ended, 60)
        branch = await app.sessions.branch(lead)
        assert await branch.read_bytes("/ann.txt") == b"by ann\n"
        assert await branch.read_bytes("/log.txt") == b"half\nwhole\n", "run again from where it began"


async def test_each_task_is_claimed_by_one_of_two_idle_teammates(
    fake: FakeModels, tmp_path: Path, database_url: str
) -> None:
    """DE-41, DE-59, acceptance 9, with their lives and on both databases."""

    def mate(body: dict[str, Any]) -> dict[str, Any]:
        last = newest(body)
        if "You have claimed task #" in last:
            number = int(last.split("You have claimed task #")[-1].split(" ")[0])
            return {"tools": [{"name": "task_update", "input": {"taskId": number, "status": "completed"}}]}
        return {"text": "done"}

    play(fake, {"ann": mate, "bob": mate})
    async with opened(tmp_path, fake, **{"store.url": database_url, "teams.phases": 100}) as app:
        lead = await new_lead(app, tmp_path)
        for name in ("ann", "bob"):
            await do(app, lead, "spawn_teammate", name=name, role="r", prompt="rest")
        await reaches(app, lead, ann="idle", bob="idle")
        boards = app.sessions.part(SessionRecords).boards
        key = await boards.key_of(lead)
        for number in range(1, 9):
            await boards.create(key, f"task {number}")

        async def completed() -> bool:
            return all(t["status"] == "completed" for t in (await boards.state(key)).tasks)

        await until(completed)
        await reaches(app, lead, ann="idle", bob="idle")
        claims: list[str] = []
        for name in ("ann", "bob"):
            records = await app.sessions.history(f"{lead}.team.{name}")
            texts = [str(r.body["content"]) for r in records if r.type == "user"]
            claims += [text.split("task #")[1].split(" ")[0] for text in texts if "claimed task #" in text]
        assert sorted(map(int, claims)) == list(range(1, 9))


async def test_teammates_have_their_own_model_and_temperature(fake: FakeModels, tmp_path: Path) -> None:
    """DE-67, MO-47: `TEAMMATE_MODEL`, or the main one; `TEAMMATE_TEMPERATURE`."""
    fake.without.add("no temperature")
    flags = {"agent.teammate_model": "anthropic:claude-haiku-4-5", "agent.teammate_temperature": 0.25}
    async with opened(tmp_path, fake, **flags) as app:
        play(fake, {})
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="rest")
        await reaches(app, lead, ann="idle")
    (asked,) = requests_of(fake, "ann")
    assert asked["model"] == "claude-haiku-4-5" and asked["temperature"] == 0.25
    assert requests_of(fake, "main")[0]["model"] == "claude-sonnet-4-5"


async def test_in_the_servers_own_workspace_the_copies_are_real_files(
    fake: FakeModels, tmp_path: Path
) -> None:
    """Architecture, law 2; DE-57: appended to, one line per message; in no diff."""
    own = {"agent.workspace": str(tmp_path / "project")}
    play(fake, {})
    async with opened(tmp_path, fake, **own) as app:
        lead = await new_lead(app, tmp_path)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="rest")
        await reaches(app, lead, ann="idle")
        inbox = tmp_path / "project/.team/inbox/ann.jsonl"
        await do(app, lead, "send_message", to="ann", content="one")
        await until(inbox.exists)
        first = inbox.read_bytes()
        await do(app, lead, "send_message", to="ann", content="two")
        await until(lambda: len(inbox.read_bytes().splitlines()) == 2)
        assert inbox.read_bytes().startswith(first)
        assert (tmp_path / "project/.team/config.json").exists()
        await reaches(app, lead, ann="idle")
        branch = await app.sessions.branch(lead)
        assert branch.changes().record() == {"written": [], "deleted": []}
        assert await ask(app, lead, order(("list_files", {"pattern": "**/*"})))
        assert ".team" not in str((await outcomes(app, lead, "list_files"))[-1]["content"])


async def test_other_team_settings_count_from_the_next_call_on(fake: FakeModels, tmp_path: Path) -> None:
    """CF-13: `agent.max_teammates` and the teammates' temperature, without a restart."""
    fake.without.add("no temperature")
    play(fake, {})
    async with opened(tmp_path, fake) as app:
        lead, teams = await new_lead(app, tmp_path), app.sessions.part(Teams)
        await do(app, lead, "spawn_teammate", name="ann", role="r", prompt="rest")
        teams.use(msgspec.structs.replace(teams.hub.rules, max_teammates=1), model=None, temperature=0.125)
        await ask(app, lead, order(("spawn_teammate", {"name": "bob", "role": "r", "prompt": "p"})))
        found = (await outcomes(app, lead, "spawn_teammate"))[-1]
        assert found["status"] == "error" and "MAX_TEAMMATES 1" in found["data"]["error"]
        await reaches(app, lead, ann="idle")
        await do(app, lead, "send_message", to="ann", content="go on")
        await until(lambda: requests_of(fake, "ann")[-1].get("temperature") == 0.125)
