"""What an `Agent` refuses, and the messages that say so (AG-1 … AG-25; the issue's Must-show 6)."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bowerbird.agent.agent import Agent
from bowerbird.core.errors import InvalidArgument, InvalidWorkspace, ToolDefinitionError, ToolNameCollision
from bowerbird.tools import Tool


async def mine(text: str) -> str:
    """Do mine.

    Args:
        text: What.
    """
    return text


async def grep(text: str) -> str:
    """Collide with an alias.

    Args:
        text: What.
    """
    return text


async def _hidden(text: str) -> str:
    """Have a leading underscore.

    Args:
        text: What.
    """
    return text


async def no_line(text: str) -> str:
    """Lack a line for the parameter."""
    return text


class Point(msgspec.Struct):
    x: int


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": True}, "timeout is True"),
        ({"timeout": -1}, "timeout is -1"),
        ({"timeout": math.inf}, "timeout is inf"),
        ({"timeout": math.nan}, "timeout is nan"),
        ({"timeout": "30"}, "timeout is '30'"),
        ({"max_subagent_depth": -1}, "max_subagent_depth is -1"),
        ({"max_subagent_depth": True}, "max_subagent_depth is True"),
        ({"max_subagent_depth": 1.0}, "max_subagent_depth is 1.0"),
        ({"schema": {"type": "object"}, "data_model": Point}, "schema and data_model"),
        ({"schema": {"type": "objekt"}}, "schema is not a valid JSON Schema"),
        ({"schema": 7}, "schema is 7"),
        ({"data_model": 7}, "data_model is 7"),
        ({"prompt_template": "{inputs} {other}"}, "{other}"),
        ({"prompt_template": "{"}, "prompt_template"),
        ({"examples": [{"input": 1}]}, "examples[0]"),
        ({"temperature": 2.1}, "temperature is 2.1"),
        ({"temperature": True}, "temperature is True"),
        ({"reasoning_effort": "huge"}, "reasoning_effort is 'huge'"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"max_iterations": True}, "max_iterations is True"),
        ({"max_iterations": 3, "limits": {"max_iterations": 4}}, "max_iterations is 3"),
        ({"streaming": True, "schema": {"type": "object"}}, "agent.stream"),
        ({"streaming": True, "data_model": Point}, "agent.stream"),
        ({"name": "1st"}, "name is '1st'"),
        ({"name": "a" * 65}, "name is"),
        ({"landing": "now"}, "landing is 'now'"),
        ({"mode": "fast"}, "mode is 'fast'"),
        ({"limits": {"max_tokens": 3}}, "'max_tokens'"),
        ({"limits": {"deadline_s": 0}}, "deadline_s is 0"),
        ({"permissions": {"denny": []}}, "'denny'"),
        ({"language_model": 7}, "language_model is 7"),
        ({"language_model": "nope"}, "'nope'; use 'provider:model', say 'anthropic:nope'"),
        ({"language_model": ""}, "language_model is ''"),
        ({"skills": "/nope"}, "skills is '/nope'"),
        ({"skills": "skills"}, "skills is 'skills'"),
        ({"skills": 5}, "skills is 5"),
        ({"tools": [5]}, "tools has 5"),
        ({"branch": "x"}, "branch is 'x'; use a Branch"),
        ({"sandbox": 5}, "sandbox is 5"),
        ({"think": 1}, "think is 1"),
        ({"memory": "MEMORY.md"}, "memory is 'MEMORY.md'"),
        ({"tools": mine}, "tools is"),
        ({"branch": object(), "sandbox": object()}, "branch and sandbox"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else str(value)[:40],
)
def test_a_wrong_value_is_refused_with_its_name_and_value(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Agent(**given)
    assert said in str(refused.value)
    assert isinstance(refused.value, ValueError)


def test_a_missing_workdir_is_named(tmp_path: Path) -> None:
    """AG-2."""
    with pytest.raises(InvalidWorkspace) as refused:
        Agent(workdir=tmp_path / "no")
    assert str(refused.value) == f"workdir does not exist: {tmp_path / 'no'}"
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidWorkspace) as refused:
        Agent(workdir=tmp_path / "file")
    assert str(refused.value) == f"workdir is not a directory: {tmp_path / 'file'}"
    assert Agent(workdir=str(tmp_path)).workdir == tmp_path


@pytest.mark.parametrize(
    ("tool", "error", "said"),
    [
        (grep, ToolNameCollision, "grep"),
        (Tool(mine, name="bash"), ToolNameCollision, "bash"),
        (Tool(mine, aliases=("shell",)), ToolNameCollision, "shell"),
        (_hidden, ToolDefinitionError, "_hidden"),
        (no_line, ToolDefinitionError, "text"),
    ],
    ids=["alias", "built-in", "own-alias", "underscore", "no-line"],
)
def test_tools_that_clash_or_lack_something_are_refused(tool: Any, error: type[Exception], said: str) -> None:
    """AG-4; TO acceptance 11."""
    with pytest.raises(error, match=said):
        Agent(tools=[tool])


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolNameCollision, match="mine"):
        Agent(tools=[mine, Tool(mine)])


def test_an_agent_is_a_value() -> None:
    """AG-1."""
    agent = Agent(name="one", temperature=0.5)
    with pytest.raises(AttributeError, match=r"agent\.replace\(name"):
        agent.name = "two"  # type: ignore[misc]
    other = agent.replace(name="two")
    assert (agent.name, other.name, other.temperature) == ("one", "two", 0.5)
    with pytest.raises(TypeError):
        Agent("positional")  # type: ignore[misc]
    with pytest.raises(TypeError):
        Agent(unknown=1)  # type: ignore[call-arg]


def test_defaults_are_those_of_the_specification() -> None:
    import inspect

    defaults = {n: p.default for n, p in inspect.signature(Agent).parameters.items()}
    expected = {
        "workdir": None, "timeout": 30.0, "tools": None, "branch": None, "max_subagent_depth": 0,
        "schema": None, "data_model": None, "language_model": None, "prompt_template": None,
        "examples": None, "instructions": None, "final_instructions": None, "temperature": None,
        "use_inputs_schema": False, "use_outputs_schema": False, "reasoning_effort": None,
        "use_chain_of_thought": False, "autonomous": True, "return_inputs_with_trajectory": True,
        "max_iterations": 10, "streaming": False, "name": None, "description": None, "landing": "review",
        "mode": "normal", "skills": None, "memory": None, "think": True, "enable_approval": False,
    }  # fmt: skip
    assert expected.items() <= defaults.items()
    assert Agent().name == "agent"


def test_xhigh_is_max() -> None:
    """AG-15, MO-22."""
    assert Agent(reasoning_effort="xhigh")._options.effort == "max"


def test_limits_take_the_iterations_of_either_place() -> None:
    assert Agent(max_iterations=4)._options.effective_limits.max_iterations == 4
    assert Agent(limits={"max_iterations": 5})._options.effective_limits.max_iterations == 5
    assert Agent(limits={"max_cost": 1.0})._options.effective_limits.max_iterations == 10


def test_a_plain_class_is_no_data_model() -> None:
    @dataclass
    class Good:
        a: int

    class Bad:
        pass

    Agent(data_model=Good)
    with pytest.raises(InvalidArgument, match="data_model"):
        Agent(data_model=Bad)
