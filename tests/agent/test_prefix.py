"""Nothing before the new end of a turn changes between its calls: caches hold, and so does a model's reasoning."""

import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.agent_turns import ADD, call
from support.fake_models import FakeModels
from support.model_settings import NAMES, settings_for

from bowerbird.agent.agent import Agent
from bowerbird.agent.limits import Limits
from bowerbird.agent.turn import TurnRun, Who
from bowerbird.agent.turn_loop.loop import run_turn
from bowerbird.core.events import Done, ToolOutcome
from bowerbird.core.messages import user_text
from bowerbird.models import Model, open_model
from bowerbird.tools.plan import plan_tools
from bowerbird.tools.tool import Tool
from bowerbird.tools.toolset import Toolset


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def vendor(fake: FakeModels, wire: str) -> AsyncIterator[Model]:
    opened = open_model(NAMES[wire], settings_for(fake))
    yield opened
    await opened.aclose()


async def write(text: str) -> str:
    """Write.

    Args:
        text: what.
    """
    return "written"


async def talk(model: Model, **changes: Any) -> list[Any]:
    tools = Toolset((ADD, Tool(write, effect="branch"), *plan_tools()))
    run = TurnRun(
        model=model, tools=tools, system=("Be brief.",), new=(user_text("go"),), dated=True, **changes
    )
    return [event async for event in run_turn(run)]


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(part) for key, part in value.items() if key != "cache_control"}
    return [without_marks(part) for part in value] if isinstance(value, list) else value


def prefix(body: dict[str, Any]) -> tuple[str, str, list[str]]:
    """Tools, system and each message of a request as they were sent, but for cache marks."""
    body = without_marks(body)
    return (
        json.dumps(body.get("tools")),
        json.dumps(body.get("system")),
        [json.dumps(message) for message in body["messages"]],
    )


def assert_only_the_end_grows(requests: list[dict[str, Any]]) -> None:
    for earlier, later in itertools.pairwise(requests):
        tools, system, said = prefix(earlier)
        now = prefix(later)
        assert (now[0], now[1]) == (tools, system)
        assert now[2][: len(said)] == said


async def test_each_call_of_a_turn_begins_with_the_bytes_of_the_one_before(
    fake: FakeModels, vendor: Model
) -> None:
    """Through plan mode, the word that few calls are left, and the last answer without tools."""
    add = {"tools": [call("add", a=1, b=2)], "thinking": "hm"}
    fake.script(add, {"tools": [call("enter_plan_mode")]}, add, add, add, {"text": "done"})
    events = await talk(vendor, limits=Limits(max_iterations=5),
                        who=Who(identity="You are ann."))  # fmt: skip
    assert (fake.refused, events[-1].stop_reason) == ([], "max_iterations")
    assert len(fake.requests) == 6
    assert_only_the_end_grows(fake.requests)
    assert "Date: " in json.dumps(fake.requests[0]) and "model calls are left" in json.dumps(fake.requests[4])
    assert fake.requests[-1]["tool_choice"] in ("none", {"type": "none"})


async def test_what_plan_mode_does_not_allow_is_refused_and_its_way_out_is_offered(
    fake: FakeModels, vendor: Model
) -> None:
    fake.script(
        {"tools": [call("exit_plan_mode", plan="too early")]},
        {"tools": [call("enter_plan_mode")]},
        {"tools": [call("write", text="x")]},
        {"tools": [call("exit_plan_mode", plan="Write x.")]},
    )
    events = await talk(vendor)
    said = [(event.tool, event.status) for event in events if isinstance(event, ToolOutcome)]
    assert said == [
        ("exit_plan_mode", "denied"), ("enter_plan_mode", "ok"), ("write", "denied"), ("exit_plan_mode", "ok"),
    ]  # fmt: skip
    assert isinstance(events[-1], Done) and (events[-1].stop_reason, events[-1].text) == (
        "plan_ready",
        "Write x.",
    )
    assert "exit_plan_mode" in json.dumps(fake.requests[-1]["tools"])


@pytest.mark.parametrize(
    "model", ["claude-sonnet-5-5", "claude-opus-5-5", "claude-fable-5-2", "claude-sonnet-5"]
)
def test_reasoning_that_can_no_longer_stand_is_left_out_and_ends_no_session(model: str) -> None:
    from bowerbird.core.model_presets import PRESETS
    from bowerbird.core.requests import ModelRequest
    from bowerbird.models.catalog import traits_of
    from bowerbird.models.providers.anthropic_model import build_request

    traits = traits_of(PRESETS["anthropic"], model, own_host=True)
    body, _ = build_request(ModelRequest((user_text("x"),)), traits, {})
    if model == "claude-sonnet-5":
        assert "thinking" not in body
    else:
        binding = {"prefix_mismatch_behavior": "drop_block"}
        assert body["thinking"] == {"type": "adaptive", "block_binding": binding}


async def test_a_library_turn_begins_each_call_alike_too(
    fake: FakeModels, vendor: Model, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("beta\n" * 50)
    read = {"tools": [call("read_file", path="a.txt")]}
    fake.script(read, read, {"tools": [call("bash", command="echo hi")]}, read, read, {"text": "done"})
    with Agent(workdir=tmp_path, language_model=vendor) as agent:
        result = await agent.run("go")
    assert (fake.refused, result.text) == ([], "done")
    assert_only_the_end_grows(fake.requests)
