"""Sessions whose turns run commands: what is offered, recorded, told and kept (SB-6, SB-37, TO-29, WS-41)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import result_of, results, texts
from support.fake_models import FakeModels
from support.patience import HANG_S

from bowerbird.app import Application, open_application
from bowerbird.app.sandboxes import sandbox_settings
from bowerbird.config import load_settings
from bowerbird.core.events import BackgroundResult, Egress
from bowerbird.sessions import NewSession

MODEL = "anthropic:claude-sonnet-4-5"


class Place:
    def __init__(self, directory: Path, fake: FakeModels, application: Application) -> None:
        self.application, self.fake, self.project = application, fake, directory / "project"
        self.thread = ""

    async def ask(self, text: str = "go", **flags: Any) -> Any:
        sessions = self.application.sessions
        if not self.thread:
            new = NewSession(workspace=str(self.project), flags=flags)
            self.thread = (await sessions.create(new)).thread_id
        await self.application.drive(self.thread)
        receipt = await sessions.submit(self.thread, text)
        async with asyncio.timeout(HANG_S):
            return await sessions.wait(receipt.turn_id)

    async def bodies(self, kind: str) -> list[dict[str, Any]]:
        history = await self.application.sessions.history(self.thread)
        return [record.body for record in history if record.type == kind]


@asynccontextmanager
async def place(
    directory: Path, fake: FakeModels, env: Mapping[str, str] | None = None
) -> AsyncIterator[Place]:
    """Open an application; opening it twice in a row is a restart."""
    (directory / "project").mkdir(exist_ok=True)
    (directory / "home").mkdir(exist_ok=True)
    chosen = {
        "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": fake.anthropic_url, "HOME": str(directory / "home"),
        **(env or {}),
    }  # fmt: skip
    loaded = load_settings(
        {"agent.data_dir": str(directory / "data")}, kind="cli", env=chosen, cwd=str(directory),
        home=str(directory / "home"), workspace=directory / "project",
    )  # fmt: skip
    async with open_application(loaded, workspace=directory / "project", model=MODEL) as application:
        status = await application.sandboxes.status()
        if status.tier != "overlay" and not env:
            pytest.skip(f"this host gives the tier {status.tier}: {status.reasons}")
        yield Place(directory, fake, application)


@pytest.fixture
def fake() -> Any:
    with FakeModels() as models:
        yield models


def step(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


async def test_a_command_of_a_turn_works_on_the_branch_and_its_intent_has_a_mark_of_it(tmp_path, fake):
    async with place(tmp_path, fake) as here:
        (here.project / "a.txt").write_text("one\n")
        fake.script(step("bash", command="cat a.txt; echo made > b.txt; exit 3"), {"text": "done"})
        assert (await here.ask()).state == "done"
        offered = [tool["name"] for tool in fake.requests[0]["tools"]]
        assert {"bash", "check_background"} <= {*offered} and "run_python" not in offered
        assert any("tier overlay" in block["text"] for block in fake.requests[0]["system"])
        assert result_of(results(fake.requests[1])[0]) == "one\n[exit code 3]"
        [intent] = await here.bodies("tool_intent")
        assert intent["class"] == "branch" and intent["mark"].startswith("m_")
        assert not (here.project / "b.txt").exists()
        branch = await here.application.sessions.branch(here.thread)
        assert branch.changes().record() == {"written": ["/b.txt"], "deleted": []}
        assert [row["via"] for row in branch.journal()] == ["process"]


async def test_commands_of_one_message_run_in_their_order_each_with_a_mark_of_its_own(tmp_path, fake):
    async with place(tmp_path, fake) as here:
        fake.script(
            {"tools": [{"name": "bash", "input": {"command": f"ls; echo {n} > f{n}"}} for n in (1, 2)]},
            {"text": "done"},
        )
        await here.ask()
        marks = {intent["mark"] for intent in await here.bodies("tool_intent")}
        assert len(marks) == 2
        assert "f1" in result_of(results(fake.requests[1])[-1])
        branch = await here.application.sessions.branch(here.thread)
        assert branch.changes().written == ("/f1", "/f2")


async def test_the_user_s_edit_between_two_turns_is_what_the_next_command_sees(tmp_path, fake):
    """Sandbox acceptance 7."""
    async with place(tmp_path, fake) as here:
        (here.project / "a.txt").write_text("old\n")
        fake.script(
            step("bash", command="cat a.txt"), {"text": "1"}, step("bash", command="cat a.txt"), {"text": "2"}
        )
        await here.ask()
        (here.project / "a.txt").write_text("a longer line\n")
        await here.ask()
        assert result_of(results(fake.requests[3])[-1]) == "a longer line"


async def test_a_command_in_the_background_is_started_and_stopped_by_the_tools_that_are_offered(
    tmp_path, fake
):
    async with place(tmp_path, fake) as here:
        fake.script(
            step("bash", command="echo begun; sleep 1000", run_in_background="true"), {"text": "started"}
        )
        await here.ask()
        branch = await here.application.sessions.branch(here.thread)
        [row] = (await here.application.sandboxes.sandbox(branch)).background.poll_all()
        fake.script(step("check_background", task_id=row["task_id"], stop=True), {"text": "stopped"})
        await here.ask()
        assert "killed" in result_of(results(fake.requests[-1])[-1]).split("\n")[0]
        assert [intent["tool"] for intent in await here.bodies("tool_intent")] == [
            "background_run", "cancel_background",
        ]  # fmt: skip


async def test_a_rule_about_the_background_holds_for_a_command_that_is_to_run_there(tmp_path, fake):
    async with place(tmp_path, fake, {"BOWERBIRD_APPROVAL__RULES": '["deny background_run"]'}) as here:
        fake.script(step("bash", command="touch made", run_in_background=True), {"text": "denied"})
        await here.ask()
        [outcome] = await here.bodies("tool_outcome")
        assert outcome["status"] == "denied" and await here.bodies("tool_intent") == []


async def test_what_a_person_opens_of_the_network_is_told_and_commands_that_have_it_taint(tmp_path, fake):
    async with place(tmp_path, fake) as here:
        fake.script(step("bash", command="curl -sS --max-time 5 http://b.test; echo $?"), {"text": "done"})
        await here.ask(network="a.test,registries")
        assert "network only to a.test, packages" in str(fake.requests[0]["system"])
        [outcome] = await here.bodies("tool_outcome")
        assert outcome["tainted"] and "\n0" not in outcome["content"]
        [intent] = await here.bodies("tool_intent")
        assert intent["class"] == "external"  # a crash does not repeat it


async def test_a_background_run_goes_on_over_turns_and_its_end_is_told_once(tmp_path, fake):
    """SB-37, DE-29."""
    async with place(tmp_path, fake) as here:
        wait = "until [ -e go ]; do sleep 0.01; done; echo finished; exit 4"
        fake.script(
            step("background_run", command=wait), {"text": "started"},
            step("write_file", path="go", content=""), {"text": "now"}, {"text": "later"}, {"text": "last"},
        )  # fmt: skip
        await here.ask()
        [outcome] = await here.bodies("tool_outcome")
        task = outcome["data"]["task_id"]
        with here.application.sessions.subscribe(here.thread) as news:
            await here.ask()
            async with asyncio.timeout(HANG_S):
                async for published in news:
                    if isinstance(published.event, BackgroundResult):
                        break
        [row] = published.event.notifications
        assert row == {"task_id": task, "status": "error", "command": wait[:80], "result": "finished"}
        for _ in range(2):
            await here.ask()
        told = [text for body in fake.requests for text in texts(body) if f'task_id="{task}"' in text]
        assert told and 'status="error" exit_code=4' in told[0]
        injected = [b for b in await here.bodies("injected") if b["source"] == "background"]
        assert len(injected) == 1


async def test_runs_that_a_restart_ended_are_lost_and_told_once(tmp_path, fake):
    """DE-30."""
    async with place(tmp_path, fake) as here:
        fake.script(step("background_run", command="echo begun; sleep 1000"), {"text": "started"})
        await here.ask()
        thread = here.thread
        branch = await here.application.sessions.branch(thread)
        runs = (await here.application.sandboxes.sandbox(branch)).background
        async with asyncio.timeout(HANG_S):
            while "begun" not in runs.poll_all()[0]["output"]:
                await asyncio.sleep(0.01)
    async with place(tmp_path, fake) as again:
        again.thread = thread
        fake.script({"text": "I see"})
        for _ in range(2):
            await again.ask()
        injected = [b for b in await again.bodies("injected") if b["source"] == "background"]
        assert len(injected) == 1 and "lost" in str(injected[0]) and "begun" in str(injected[0])


async def test_an_allow_list_in_settings_reaches_its_host_and_its_requests_are_events(tmp_path, fake):
    """SB-29, TO-29; the name resolves to nothing public, so the request is refused, and said."""
    env = {
        "BOWERBIRD_SANDBOX__NETWORK__MODE": "allowlist",
        "BOWERBIRD_SANDBOX__NETWORK__ALLOW": '["localhost"]',
    }
    async with place(tmp_path, fake, env) as here:
        if (await here.application.sandboxes.status()).tier != "overlay":
            pytest.skip("an allow-list needs the overlay tier")
        fake.script(step("bash", command="curl -sS --noproxy '' http://localhost/"), {"text": "done"})
        seen: list[Any] = []
        thread = (await here.application.sessions.create(NewSession(workspace=str(here.project)))).thread_id
        here.thread = thread
        with here.application.sessions.subscribe(thread) as news:
            await here.ask()
            async with asyncio.timeout(HANG_S):
                async for published in news:
                    seen.append(published.event)
                    if isinstance(published.event, Egress):
                        break
        assert (seen[-1].host, seen[-1].port) == ("localhost", 80)
        assert "address not allowed" in seen[-1].verdict
        [intent] = await here.bodies("tool_intent")
        assert intent["class"] == "external" and intent["mark"] is None
        assert any("localhost" in block["text"] for block in fake.requests[0]["system"])


async def test_below_the_minimum_a_command_is_refused_with_the_reason(tmp_path, fake):
    """SB-5."""
    env = {"BOWERBIRD_SANDBOX__TIER": "none"}
    async with place(tmp_path, fake, env) as here:
        fake.script(step("execute", command="id"), {"text": "done"})
        await here.ask()
        assert "bash" not in [tool["name"] for tool in fake.requests[0]["tools"]]
        assert "execute is not available" in result_of(results(fake.requests[1])[0])
        assert "sandbox.minimum" in result_of(results(fake.requests[1])[0])


def test_settings_become_values_of_the_sandbox(tmp_path):
    env = {
        "BOWERBIRD_SANDBOX__NETWORK__ALLOW": '["a.test"]',
        "BOWERBIRD_SANDBOX__MEMORY_BYTES": "123456789",
        "BOWERBIRD_SANDBOX__COPY__MAX_FILES": "7",
    }
    made = sandbox_settings(load_settings({}, env=env, cwd=str(tmp_path), home=str(tmp_path)).settings)
    assert made.allow == (), "a list without its mode opens nothing"
    assert (made.limits.memory_bytes, made.copy_max_files) == (123456789, 7)
