"""Structured answers (AG-7, AG-37): types, validation, tries, requests."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest
from support.agent_turns import may_call, texts
from support.fake_models import FakeModels

from bowerbird.agent.turn import OutputSpec
from bowerbird.agent.turn_loop.structured import check_answer, output_spec

Run = Callable[..., Any]
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


class Wire(msgspec.Struct):
    n: int


class Model(pydantic.BaseModel):
    n: int


@dataclass
class Data:
    n: int


class Typed(TypedDict):
    n: int


def spec(schema: Any = None, model: Any = None) -> OutputSpec:
    made = output_spec(schema, model)
    assert made is not None
    return made


@pytest.mark.parametrize("kind", [Wire, Model, Data])
def test_a_type_gives_an_instance(kind: Any) -> None:
    checked = check_answer('{"n": 3}', spec(model=kind))
    assert isinstance(checked.value, kind) and checked.value.n == 3
    assert check_answer('{"n": "x"}', spec(model=kind)).problems


def test_a_typed_dict_gives_a_dict() -> None:
    assert check_answer('{"n": 3}', spec(model=Typed)).value == {"n": 3}


@pytest.mark.parametrize("text", ['{"n": 1}', '```json\n{"n": 1}\n```', 'Here:\n```\n{"n": 1}\n```\n'])
def test_json_may_stand_in_the_only_fence(text: str) -> None:
    assert check_answer(text, spec(SCHEMA)).value == {"n": 1}


def test_problems_name_path_and_reason() -> None:
    assert "n: " in check_answer('{"n": "x"}', spec(SCHEMA)).problems[0]
    assert "not JSON" in check_answer("three", spec(SCHEMA)).problems[0]


async def test_a_reply_that_validates_is_the_output_after_one_request(fake: FakeModels, turn: Run) -> None:
    """AG acceptance 1."""
    fake.script({"text": '{"n": 4}'})
    told = await turn(output=spec(SCHEMA))
    assert (told.done.output, fake.request_count) == ({"n": 4}, 1)


async def test_else_one_call_without_tools_gives_it(fake: FakeModels, turn: Run) -> None:
    """AG acceptance 1: at most two requests."""
    fake.script({"text": "it is four"}, {"text": '{"n": 4}'})
    told = await turn(tools=[], output=spec(SCHEMA))
    assert (told.done.stop_reason, told.done.output, fake.request_count) == ("completed", {"n": 4}, 2)
    assert not may_call(fake.requests[1])
    assert '"required"' in texts(fake.requests[1])[-1]


async def test_invalid_answers_are_sent_back_twice_then_output_invalid(fake: FakeModels, turn: Run) -> None:
    """AG-37."""
    fake.script({"text": "four"}, {"text": '{"n": "four"}'})
    told = await turn(output=spec(SCHEMA))
    assert told.done.stop_reason == "output_invalid"
    assert told.done.output is None and told.done.text == '{"n": "four"}'
    assert fake.request_count == 4  # the reply, the call, two more tries
    assert "n: " in texts(fake.requests[2])[-1]


async def test_the_final_call_has_its_own_instructions(fake: FakeModels, turn: Run) -> None:
    """AG-12."""
    fake.script({"text": "four"}, {"text": '{"n": 4}'})
    await turn(system=("work",), output=OutputSpec(SCHEMA, system=("only write JSON",)))
    first, second = (str(r["system"]) for r in fake.requests)
    assert "work" in first and "only write JSON" in second and "'work'" not in second
