"""What a program's agent made is kept where the command keeps its own (engine 3, D-19)."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call
from support.fake_models import FakeModels
from support.patience import HANG_S

import bowerbird
from bowerbird import Agent, Workspace
from bowerbird.core.errors import BowerbirdError, InvalidArgument, InvalidWorkspace, NotFound, StoreError
from bowerbird.models import Model

WRITES = {"tools": [call("write_file", path="work.txt", content="work\n")]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "home"
    found.mkdir()
    monkeypatch.setenv("HOME", str(found))
    monkeypatch.chdir(found)
    return found


async def test_after_the_block_agent_and_result_name_the_same_branch_and_it_lands(
    fake: FakeModels, model: Model, home: Path, project: Path
) -> None:
    """Engine 3: the block destroyed the work, and `agent.branch.land()` said "done" of an empty new branch."""
    fake.script(WRITES, {"text": "done"})
    with Agent(workdir=project, language_model=model) as agent:
        result = await agent.run("go")
        inside = agent.branch.id
    for branch in (agent.branch, result.branch):
        assert branch.id == inside
        assert branch.changes().record() == {"written": ["/work.txt"], "deleted": []}
        assert "+work" in branch.unified()
        assert [step["path"] for step in branch.journal()] == ["/work.txt"]
        assert (await branch.read_file("work.txt"))["content"] == "work\n"
    assert not (project / "work.txt").exists()
    landing = result.branch.land()
    assert (project / "work.txt").read_text() == "work\n"
    assert agent.branch.changes().record() == {"written": [], "deleted": []}
    landing.undo()
    assert not (project / "work.txt").exists()
    agent.close()  # a second time


async def test_a_closed_agent_runs_on_with_what_it_did(
    fake: FakeModels, model: Model, home: Path, project: Path
) -> None:
    agent = Agent(workdir=project, language_model=model)
    fake.script(WRITES, {"text": "done"})
    await agent.run("go")
    agent.close()
    fake.script({"tools": [call("read_file", path="work.txt")]}, {"text": "read"})
    again = await agent.run("read it")
    assert again.stop_reason == "completed" and again.changes.written == ("/work.txt",)
    agent.close()


async def test_the_branch_is_found_again_in_the_user_s_data_directory(
    fake: FakeModels, model: Model, home: Path, project: Path
) -> None:
    """D-19: `data_dir=None` is where the command keeps its own."""
    fake.script(WRITES, {"text": "done"})
    with Agent(workdir=project, language_model=model, name="writer") as agent:
        branch_id = (await agent.run("go")).branch.id
    with Workspace(project, data_dir="~/.bowerbird/data") as workspace:
        [info] = workspace.branches()
        assert (info.id, info.name) == (branch_id, "writer")
        workspace.open(branch_id).land()
    assert (project / "work.txt").read_text() == "work\n"


async def test_another_data_directory_and_one_that_nobody_keeps(
    fake: FakeModels, model: Model, home: Path, project: Path, tmp_path: Path
) -> None:
    fake.script(WRITES, {"text": "done"}, WRITES, {"text": "done"})
    with Agent(workdir=project, language_model=model, data_dir=tmp_path / "data") as agent:
        await agent.run("go")
    assert (tmp_path / "data" / "branches" / agent.branch.id).is_dir()
    with Agent(workdir=project, language_model=model, data_dir=":memory:") as agent:
        result = await agent.run("go")
        place = result.branch.processes().data_dir
        assert place.is_dir()
    assert not place.exists() and not (home / ".bowerbird").exists()
    for use in (agent.branch.changes, agent.branch.land, result.branch.unified, agent.branch.fork):
        with pytest.raises(NotFound, match="data_dir"):
            use()
    with pytest.raises(NotFound, match="data_dir"):
        await agent.run("again")


@pytest.mark.parametrize("data_dir", [5, "", True])
def test_a_wrong_data_directory_is_named(data_dir: Any) -> None:
    with pytest.raises(InvalidArgument, match="data_dir is"):
        Agent(data_dir=data_dir)


async def test_a_data_directory_that_cannot_be_made_says_what_to_choose(
    model: Model, home: Path, project: Path
) -> None:
    (home / ".bowerbird").write_text("a file")
    with pytest.raises(StoreError, match="data_dir="):
        await Agent(workdir=project, language_model=model).run("go")


def test_the_configuration_has_the_data_directory(tmp_path: Path) -> None:
    config = Agent(data_dir=tmp_path).get_config()
    assert config["data_dir"] == str(tmp_path) and Agent.from_config(config).get_config() == config
    assert Agent().get_config()["data_dir"] is None
    assert Agent(data_dir=":memory:").get_config()["data_dir"] == ":memory:"


async def test_what_the_command_hides_the_library_hides(
    fake: FakeModels, model: Model, home: Path, project: Path
) -> None:
    """The branch is made as the command makes its own."""
    (home / ".bowerbird").mkdir()
    (home / ".bowerbird" / "config.yaml").write_text("workspace:\n  hide: ['b.txt']\n")
    with Agent(workdir=project, language_model=model) as agent:
        assert {row["name"] for row in (await agent.branch.ls("/"))["entries"]} == {"a.txt"}


async def test_subagents_work_outlives_the_block(
    fake: FakeModels, model: Model, home: Path, project: Path
) -> None:
    fake.script(WRITES, {"text": "done"})
    with Agent(workdir=project, language_model=model, max_subagent_depth=1) as agent:
        (made,) = (await agent.spawn_subagents(["write"])).subagents
    handle = made.handle
    assert made.diff is not None and [file.path for file in made.diff.written] == ["/work.txt"]
    assert agent.subagents[handle].changes().written == ("/work.txt",)
    assert (await agent.merge_subagent(handle)).written == ("/work.txt",)
    assert agent.branch.changes().written == ("/work.txt",)


async def test_another_agent_does_not_probe_the_sandbox_again(
    fake: FakeModels, model: Model, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engine 8: "first `run` of each process 2.6 to 3.9 s": what a probe found is kept in the data directory."""
    from bowerbird.sandbox import host

    probes: list[Any] = []
    probe = host.SandboxHost._probe

    async def counted(self: Any, *given: Any) -> Any:
        probes.append(given)
        return await probe(self, *given)

    monkeypatch.setattr(host.SandboxHost, "_probe", counted)
    fake.script(*[{"text": "done"}] * 3)
    for _ in range(3):
        with Agent(workdir=project, language_model=model) as agent:
            await agent.run("go")
    assert len(probes) == 1


# ---------------------------------------------------------------- handles of what was closed or discarded


async def test_a_branch_outlives_its_workspace_and_a_gone_one_says_so(project: Path, tmp_path: Path) -> None:
    """Engine 3: "raw OSError on any Branch after Workspace.close() or discard()"."""
    workspace = Workspace(project, data_dir=tmp_path / "data")
    branch = workspace.branch()
    await branch.write_file("n.txt", "1")
    workspace.close()
    await branch.write_file("m.txt", "2")
    assert branch.changes().written == ("/m.txt", "/n.txt")
    assert workspace.open(branch.id).changes() == branch.changes()
    branch.discard()
    uses: list[Any] = [
        branch.unified,
        branch.changes,
        branch.land,
        branch.fork,
        branch.mark,
        branch.snapshots,
    ]
    for use in uses:
        with pytest.raises(NotFound, match="restore_discarded"):
            use()
    with pytest.raises(NotFound, match="restore_discarded"):
        await branch.read_file("n.txt")
    workspace.restore_discarded(branch.id)
    assert branch.changes().written == ("/m.txt", "/n.txt")


async def test_a_closed_temporary_workspace_makes_no_branches_and_lists_none(project: Path) -> None:
    workspace = Workspace(project, data_dir=":memory:")
    branch, place = workspace.branch(), workspace.data_dir
    await branch.write_file("n.txt", "1")
    workspace.close()
    for use in (workspace.branch, workspace.branches, workspace.discarded):
        with pytest.raises(InvalidWorkspace, match="data_dir"):
            use()
    with pytest.raises(BowerbirdError, match="data_dir"):
        await branch.write_file("n.txt", "2")
    assert not place.exists()
    workspace.close()


def test_two_handles_that_outlive_their_workspace_see_each_other(project: Path, tmp_path: Path) -> None:
    first = Workspace(project, data_dir=tmp_path / "data")
    mine = first.branch()
    first.close()
    with Workspace(project, data_dir=tmp_path / "data") as second:
        other = second.open(mine.id)
        asyncio.run(mine.write_file("mine.txt", "1"))
        asyncio.run(other.write_file("other.txt", "2"))
        assert (
            mine.changes().record()
            == other.changes().record()
            == {"written": ["/mine.txt", "/other.txt"], "deleted": []}
        )
        mine.mark()
        assert other.snapshots() == mine.snapshots()


PROGRAM = """
import asyncio, os, signal, sys
from bowerbird import Agent

async def main():
    with Agent(workdir=sys.argv[1]) as agent:
        result = await agent.run("go")
        print(result.branch.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_kill_9_loses_nothing(fake: FakeModels, home: Path, project: Path) -> None:
    """Engine 3: "the product promise is that kill -9 loses nothing"."""
    fake.script(WRITES, {"text": "done"})
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": fake.anthropic_url,
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(project)],
        env=env, capture_output=True, text=True, timeout=HANG_S, check=False,
    )  # fmt: skip
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    with bowerbird.Workspace(project, data_dir=home / ".bowerbird" / "data") as workspace:
        branch = workspace.open(ran.stdout.strip())
        assert branch.changes().record() == {"written": ["/work.txt"], "deleted": []}
        branch.land()
    assert (project / "work.txt").read_text() == "work\n"
