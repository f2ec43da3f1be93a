"""Types of subagents: enforced when the tool runs, and what becomes of their changes (DE-9, DE-14)."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import call, results
from support.children import last_result, play, requests_of, wrote
from support.fake_models import FakeModels

from bowerbird.agent.policy import Policy
from bowerbird.core.errors import InvalidArgument
from bowerbird.subagents.roles import LOOKING, RESEARCHING, AgentType, agent_types


def task(kind: str, prompt: str = "small job", **more: Any) -> dict[str, Any]:
    return {"tools": [call("task", description="a small job", prompt=prompt, agent_type=kind, **more)]}


@pytest.mark.parametrize("kind", ["general", "code", "research"])
async def test_changes_of_a_completed_task_are_merged(
    fake: FakeModels, make: Any, project: Path, kind: str
) -> None:
    """DE acceptance 5."""
    play(fake, {"small": [wrote("made.txt"), {"text": "made it"}], "lead": [task(kind), {"text": "done"}]})
    agent = make(project)
    result = await agent.run("lead")
    assert result.changes.record() == {"written": ["/made.txt"], "deleted": []}
    assert last_result(requests_of(fake, "lead")[1]) == "made it"


@pytest.mark.parametrize("kind", ["explore", "plan"])
async def test_a_writing_call_of_a_looking_type_is_denied_and_changes_nothing(
    fake: FakeModels, make: Any, project: Path, kind: str
) -> None:
    """DE acceptance 5, AG acceptance 6; issue 5, must-show 8."""
    play(fake, {"small": [wrote("made.txt"), {"text": "looked"}], "lead": [task(kind), {"text": "done"}]})
    agent = make(project)
    result = await agent.run("lead")
    assert result.changes.record() == {"written": [], "deleted": []}
    denied = results(requests_of(fake, "small")[1])[0]
    assert denied["is_error"] and "not among the tools of this role" in json.dumps(denied["content"])
    assert "write_file" not in {tool["name"] for tool in requests_of(fake, "small")[0]["tools"]}
    assert last_result(requests_of(fake, "lead")[1]) == "looked"
    assert agent.subagents == {}


async def test_a_type_is_enforced_for_a_spawned_subagent_too(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """DE-14: the list holds where the tool runs, aliases included."""
    steps = [
        {"tools": [call("edit_file", path="a.txt", old_string="line 1\n", new_string="x\n")]},
        {"text": "ok"},
    ]
    play(fake, {"small": steps})
    agent = make(project)
    await agent.spawn_subagents([{"task": "small", "agent_type": "explore"}])
    assert agent.subagents["subagent_0"].changes().record() == {"written": [], "deleted": []}


async def test_a_task_that_conflicts_merges_nothing_and_gives_the_handle(
    fake: FakeModels, make: Any, project: Path
) -> None:
    """Another subagent of the same message writes the same line; what they bring is merged in call order."""
    edit = [
        call("edit_file", path="a.txt", old="line 1\n", new="child\n"),
        call("write_file", path="new.txt", content="n"),
    ]
    play(fake, {
        "slow": [{"tools": [call("edit_file", path="a.txt", old="line 1\n", new="slow\n")]},
                 {"text": "slowly", "ttft_s": 0.5}],
        "small": [{"tools": edit}, {"text": "did both"}],
        "lead": [
            {"tools": [*task("code", "slow job")["tools"], *task("code")["tools"]]},
            {"tools": [call("merge_subagent", handle="subagent_1", force=True)]},
            {"text": "done"},
        ],
    })  # fmt: skip
    agent = make(project)
    await agent.run("lead")
    first, said = (block["content"] for block in results(requests_of(fake, "lead")[1]))
    assert "slowly" in str(first) and "Nothing was merged" not in str(first)
    assert "did both" in str(said) and "Nothing was merged" in str(said)
    assert "subagent_1" in str(said) and "/a.txt" in str(said)
    assert agent.branch.read_overlay("a.txt").startswith(b"child\n")  # taken by force afterwards
    assert agent.branch.changes().written == ("/a.txt", "/new.txt")


async def test_an_unknown_type_is_an_error_that_lists_the_types(fake: FakeModels, make: Any) -> None:
    """DE-9; the alias of the parameter works."""
    play(fake, {"lead": [
        task("wizard"),
        {"tools": [call("task", description="d", prompt="small", subagent_type="explore")]},
        {"text": "done"},
    ], "small": [{"text": "found"}]})  # fmt: skip
    agent = make()
    await agent.run("lead")
    lead = requests_of(fake, "lead")
    assert "there are general, code, explore, plan, research" in last_result(lead[1])
    assert last_result(lead[2]) == "found"


async def test_plan_mode_holds_for_children(fake: FakeModels, make: Any, project: Path) -> None:
    """AG-64: only explore and plan are let start, and they only look."""
    play(fake, {
        "small": [{"tools": [call("bash", command="touch x")]}, {"text": "looked"}],
        "lead": [task("code"), task("explore"), {"text": "the plan"}],
    })  # fmt: skip
    agent = make(project, mode="plan")
    result = await agent.run("lead")
    assert result.stop_reason == "plan_ready"
    lead = requests_of(fake, "lead")
    assert "refused in plan mode" in last_result(lead[1])
    assert last_result(lead[2]) == "looked"
    assert "refused in plan mode" in last_result(requests_of(fake, "small")[1])


def test_a_custom_type_narrows_and_may_not_take_a_name() -> None:
    """DE-14; AG-60: the caller's own role list holds for its children."""
    mine = AgentType("mine", "only reads", frozenset({"read_file", "bash"}))
    assert agent_types([mine])["mine"] is mine
    assert mine.policy(Policy(role=frozenset({"bash", "think"}))).role == {"bash"}
    assert agent_types()["general"].policy(Policy(role=frozenset({"think"}))).role == {"think"}
    assert agent_types()["code"].policy(Policy(enable_approval=True)) == Policy()
    assert "write_file" in RESEARCHING and "write_file" not in LOOKING
    with pytest.raises(InvalidArgument, match="'code'"):
        agent_types([AgentType("code", "")])
