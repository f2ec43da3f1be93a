"""The grammar of a step: what it lets through and what its own reading refuses (MO-38)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.models.local.grammar import (
    Free,
    Input,
    OneOf,
    Option,
    StepGrammar,
    as_step,
    read_fence,
    schema_grammar,
)

READ = Option("read_file", (("path", OneOf(("a.py", 'dir/"b" c.py'))),))
SEARCH = Option("search_files", (("pattern", Free(20, ("tax",))),))
GRAMMAR = StepGrammar((READ, SEARCH, Option("run_python_code")))


@pytest.mark.parametrize(
    "step",
    [
        {"tool": "read_file", "path": "a.py"},
        {"tool": "read_file", "path": 'dir/"b" c.py'},
        {"tool": "search_files", "pattern": "price of ☕"},
        {"tool": "run_python_code"},
    ],
)
def test_an_allowed_step_is_read_back(step: dict[str, str]):
    text = as_step(step["tool"], **{key: value for key, value in step.items() if key != "tool"})
    assert GRAMMAR.read(text) == step


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param('{"tool": "read_file", "path": "a.py"', id="cut"),
        pytest.param('{"tool": "read_file", "path": "c.py"}', id="no-such-file"),
        pytest.param('{"tool": "read_file"}', id="field-missing"),
        pytest.param('{"tool": "read_file", "path": "a.py", "x": 1}', id="field-too-many"),
        pytest.param('{"tool": "delete_file", "path": "a.py"}', id="no-such-tool"),
        pytest.param('{"tool": "search_files", "pattern": "tax"}', id="excluded"),
        pytest.param('{"tool": "search_files", "pattern": ""}', id="empty"),
        pytest.param('{"tool": "search_files", "pattern": "012345678901234567890"}', id="too-long"),
        pytest.param('["read_file"]', id="no-object"),
    ],
)
def test_what_the_grammar_would_not_write_is_no_step(text: str):
    assert GRAMMAR.read(text) is None


def test_a_grammar_without_a_tool_never_becomes_empty():
    assert "read_file" not in GRAMMAR.without("read_file").tools
    only = StepGrammar((READ,))
    assert only.without("read_file") is only


def test_the_engine_s_notation_names_each_value_as_json_text():
    lark = GRAMMAR.lark()
    assert lark.startswith("%llguidance {}\nstart: o0 | o1 | o2\n")
    assert json.dumps(json.dumps('dir/"b" c.py')) in lark
    assert 'XF1_0: "\\"tax\\""' in lark
    assert lark.endswith("\n")


def test_a_tool_of_ones_own_carries_its_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    option = Option("count", (("input", Input(schema)),))
    assert '%json {"x-guidance"' in StepGrammar((option,)).lark()
    assert option.accepts({"tool": "count", "input": {"n": 1}})
    assert not option.accepts({"tool": "count", "input": "n"})
    assert schema_grammar(schema).startswith("%llguidance {}\nstart: %json ")


@given(st.text(min_size=1, max_size=80), st.sampled_from(["```", "```python", "````"]))
def test_a_fenced_block_gives_back_its_body(body: str, opening: str):
    fence = "`" * opening.count("`")
    assert read_fence(f"{opening}\n{body}\n{fence}", opening) == body


@pytest.mark.parametrize("text", ["```python\nprint(1)", "print(1)\n```", "```python\n```", ""])
def test_a_block_that_was_not_closed_is_none(text: str):
    assert read_fence(text, "```python") is None


def test_a_noted_step_begins_with_what_was_seen():
    noted = StepGrammar((READ,), noted=True)
    text = '{"seen": "The fee is 4.", "tool": "read_file", "path": "a.py"}'
    assert noted.read(text) == {"seen": "The fee is 4.", "tool": "read_file", "path": "a.py"}
    assert noted.read(as_step("read_file", path="a.py")) is None
    assert StepGrammar((READ,)).read(text) is None
    assert noted.lark().splitlines()[2].startswith("F0_0: ") and "NOTE: /" in noted.lark()
