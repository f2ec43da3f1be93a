"""Agents as plain data and back (AG-27; AG acceptance 10)."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support.sample_tools import Verdict, count_words, lower, shout

from bowerbird.agent.agent import Agent
from bowerbird.agent.limits import Limits
from bowerbird.agent.policy import Policy
from bowerbird.core.errors import InvalidArgument, NotSerializable
from bowerbird.models import ModelSettings, ProviderSettings, open_model
from bowerbird.tools import Tool


def make(tmp_path: Path) -> Agent:
    (tmp_path / "skills").mkdir()
    return Agent(
        workdir=tmp_path,
        timeout=5,
        tools=[count_words, Tool(lower, effect="read", timeout_s=3, aliases=("small",)), shout],
        data_model=Verdict,
        language_model="anthropic:claude-sonnet-4-5",
        examples=[{"input": {"a": 1}, "output": {"b": [2]}}],
        instructions="be brief",
        limits=Limits(max_cost=1.5),
        permissions=Policy.of(["deny bash(rm *)"]),
        reasoning_effort="xhigh",
        memory=("MEMORY.md",),
        skills="skills",
    )


def test_five_round_trips_are_exact(tmp_path: Path) -> None:
    agent = make(tmp_path)
    first = agent.get_config()
    json.dumps(first)
    config = first
    for _ in range(5):
        before = copy.deepcopy(config)
        agent = Agent.from_config(config)
        assert config == before  # left as given
        config = agent.get_config()
    assert config == first
    assert agent.instructions == "be brief"
    assert [t.name for t in agent._options.own_tools] == ["count_words", "lower", "shout"]
    assert agent._options.own_tools[1].timeout_s == 3
    assert "branch" not in first


def test_default_instructions_survive_without_growing(tmp_path: Path) -> None:
    """AG-11: guidance for delegation is added at run time, never stored here."""
    agent = Agent(workdir=tmp_path, max_subagent_depth=1)
    again = Agent.from_config(Agent.from_config(agent.get_config()).get_config())
    assert again.instructions == agent.instructions
    assert "spawn_subagents" not in agent.instructions


def test_no_key_is_in_a_configuration() -> None:
    settings = ModelSettings(providers={"anthropic": ProviderSettings(api_key="sk-secret-key-123456")})
    model = open_model("anthropic:claude-sonnet-4-5", settings)
    with pytest.warns(UserWarning, match="has its name 'anthropic:claude-sonnet-4-5' only"):
        config = Agent(language_model=model).get_config()
    assert "sk-secret" not in json.dumps(config)
    assert config["language_model"] == "anthropic:claude-sonnet-4-5"


def test_a_lambda_is_named() -> None:
    nameless: Any = lambda text: text  # noqa: E731 - a lambda is what is tested
    nameless.__doc__ = "Echo.\n\n    Args:\n        text: What.\n    "
    nameless.__annotations__ = {"text": str, "return": str}
    agent = Agent(tools=[Tool.from_sync(nameless, name="echo")])
    with pytest.raises(NotSerializable, match="echo"):
        agent.get_config()


def test_a_local_function_or_type_is_named() -> None:
    async def local(text: str) -> str:
        """Be local.

        Args:
            text: What.
        """
        return text

    class Inner(Verdict):
        pass

    with pytest.raises(NotSerializable, match="local"):
        Agent(tools=[local]).get_config()
    with pytest.raises(NotSerializable, match="Inner"):
        Agent(data_model=Inner).get_config()


def test_an_unknown_key_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidArgument, match="'temprature'; did you mean 'temperature'"):
        Agent.from_config({"temprature": 1})


@pytest.mark.parametrize("name", ["no.such.module:x", "json:nothing", "nonsense"])
def test_a_tool_that_cannot_be_imported_is_named(name: str) -> None:
    with pytest.raises(InvalidArgument, match=name.split(":", maxsplit=1)[0]):
        Agent.from_config({"tools": [name]})
