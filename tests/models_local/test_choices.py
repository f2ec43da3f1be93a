"""The rules of a small model's steps (MO-38, MO-39)."""

import pytest
from support.local_talk import SPECS, asked, called, spec

from bowerbird.core.requests import ToolSpec
from bowerbird.models.local.choices import (
    FINAL,
    MAX_CALLS,
    next_steps,
    offered_tools,
)
from bowerbird.models.local.grammar import Free, OneOf, StepGrammar
from bowerbird.models.local.situation import read_situation

FILES = "Files:\na.py\nb.py\ndata/c.csv"
READ_A = called("read_file", {"path": "a.py", "offset": 1, "limit": 150}, "LIMIT = 60\nFEE = 4\n")


def steps(*messages, tools=SPECS, choice="auto", system=(FILES,), task="Do it.", kind="") -> StepGrammar:
    grammar = next_steps(read_situation(asked(*messages, system=system, task=task)), tools, choice, kind)
    assert grammar.noted == any(use.name != "search_files" for m in messages for use in m.tool_uses)
    return StepGrammar(grammar.options)  # the note is no matter of these tests


def paths(grammar: StepGrammar, tool: str) -> set[str]:
    return {
        value
        for option in grammar.options
        if option.tool == tool
        for name, kind in option.fields
        if name == "path" and isinstance(kind, OneOf)
        for value in kind.values
    }


def test_at_most_eight_tools_are_offered():
    many = (*SPECS, spec("think"), spec("ls"), ToolSpec("my_tool", "", {"type": "object"}))
    names = [tool.name for tool in offered_tools(many, "auto", all_tools=False)]
    assert names == [
        "read_file", "list_files", "search_files", "write_file", "edit_file", "run_python_code", "bash",
    ]  # fmt: skip
    assert len(offered_tools(many, "auto", all_tools=True)) == len(many)


def test_tool_choice_none_offers_nothing_and_a_name_only_that_tool():
    assert offered_tools(SPECS, "none", all_tools=False) == ()
    assert [t.name for t in offered_tools(SPECS, "bash", all_tools=False)] == ["bash"]


def test_a_turn_does_not_begin_with_an_answer():
    assert FINAL not in steps().tools
    assert FINAL in steps(*READ_A).tools


def test_no_answer_follows_a_failed_call():
    failed = called("read_file", {"path": "b.py"}, "not found", is_error=True)
    assert FINAL not in steps(*READ_A, *failed).tools


def test_found_lines_alone_are_not_enough_for_an_answer():
    found = called("search_files", {"pattern": "fee"}, "a.py:2: FEE = 4")
    assert FINAL not in steps(*found).tools
    assert FINAL in steps(*found, *READ_A).tools


def test_the_last_step_allowed_is_the_answer():
    many = [m for n in range(MAX_CALLS) for m in called("bash", {"command": f"ls {n}"}, "ok")]
    assert steps(*many).tools == (FINAL,)


def test_required_offers_no_answer():
    assert FINAL not in steps(*READ_A, choice="required").tools


def test_without_anything_else_the_answer_is_left():
    only_read = (spec("read_file"),)
    both = (*READ_A, *called("read_file", {"path": "b.py"}, "B = 1"))
    assert steps(*both, tools=only_read, system=("Files:\na.py\nb.py",), choice="required").tools == (FINAL,)


def test_existing_paths_are_enumerated_and_files_in_sight_are_not_read_again():
    assert paths(steps(), "read_file") == {"a.py", "b.py", "data/c.csv"}
    assert paths(steps(*READ_A), "read_file") == {"b.py", "data/c.csv"}


def test_a_file_read_in_part_can_be_read_on():
    part = called("read_file", {"path": "a.py", "offset": 1}, "", data={"content": "1\n", "next_offset": 2})
    assert "a.py" in paths(steps(*part), "read_file")


def test_a_file_that_cannot_be_read_is_not_tried_again_at_once():
    failed = called("read_file", {"path": "b.py"}, "it is binary", is_error=True)
    assert "b.py" not in paths(steps(*failed), "read_file")


def test_a_path_is_free_only_where_not_all_paths_are_known():
    kinds = [k for o in steps().options if o.tool == "read_file" for _, k in o.fields]
    assert all(isinstance(kind, OneOf) for kind in kinds)
    more = steps(system=(FILES + "\n… and 300 more",))
    assert any(isinstance(k, Free) for o in more.options if o.tool == "read_file" for _, k in o.fields)


@pytest.mark.parametrize(
    ("tool", "arguments", "again"),
    [
        ("search_files", {"pattern": "fee|tax"}, '{"tool": "search_files", "pattern": "fee tax"}'),
        ("list_files", {"pattern": "*.py"}, '{"tool": "list_files", "pattern": "*.py"}'),
        ("bash", {"command": "ls"}, '{"tool": "bash", "command": "ls"}'),
        ("write_file", {"path": "n.txt", "content": "x"}, '{"tool": "write_file", "path": "n.txt"}'),
    ],
)
def test_the_call_just_made_is_excluded(tool, arguments, again):
    assert steps(*READ_A).read(again) is not None
    assert steps(*READ_A, *called(tool, arguments, "ok")).read(again) is None


def test_after_two_searches_something_else_is_done():
    two = [m for word in ("one", "two") for m in called("search_files", {"pattern": word}, "0 matches")]
    assert "search_files" not in steps(*two).tools


def test_a_tool_of_ones_own_takes_its_schema():
    mine = ToolSpec("count_words", "", {"type": "object", "properties": {"text": {"type": "string"}}})
    assert steps(tools=(mine,)).read('{"tool": "count_words", "input": {"text": "a b"}}')


def test_after_a_search_that_found_something_it_is_looked_at():
    found = called("search_files", {"pattern": "fee"}, "a.py:2: FEE = 4\n[1 match]")
    nothing = called("search_files", {"pattern": "fee"}, "[0 matches]")
    assert "search_files" not in steps(*found).tools
    assert "search_files" in steps(*nothing).tools


def test_a_file_that_exists_is_not_overwritten():
    step = '{"tool": "write_file", "path": "a.py"}'
    assert steps().read(step) is None
    assert steps(*READ_A).read(step) is None
    looked = called("read_file", {"path": "b.py"}, "B = 1")
    assert steps(*looked).read(step) is None
    assert steps(*looked).read('{"tool": "write_file", "path": "new.py"}')
    assert steps(*looked).read('{"tool": "write_file", "path": "new.py, line 3"}') is None


def test_nothing_is_done_before_a_file_was_looked_at():
    doing = {"write_file", "run_python_code", "bash"}
    assert not doing & set(steps().tools)
    found = called("search_files", {"pattern": "fee"}, "a.py:2: FEE = 4\n[1 match]")
    assert not doing & set(steps(*found).tools)
    assert doing <= set(steps(*READ_A).tools)
    assert doing <= set(steps(system=()).tools)
    assert steps(tools=(spec("bash"),)).tools == ("bash",)


def test_a_file_whose_text_is_forgotten_is_read_again_but_not_for_ever():
    forgotten = called("read_file", {"path": "a.py", "offset": 1}, "[Previous: used read_file]")
    assert "a.py" in paths(steps(*forgotten), "read_file")
    twice = (*forgotten, *called("read_file", {"path": "a.py", "offset": 1}, "[Previous: used read_file]"))
    assert "a.py" not in paths(steps(*twice), "read_file")


def test_the_beginning_of_a_data_file_is_not_answered_from_while_code_can_look_at_all():
    part = called(
        "read_file", {"path": "data/c.csv", "offset": 1, "limit": 8}, "a,b\n1,2\n… 900 more lines; offset 9"
    )
    assert FINAL not in steps(*part).tools and "run_python_code" in steps(*part).tools
    without = tuple(tool for tool in SPECS if tool.name != "run_python_code")
    assert FINAL in steps(*part, tools=without).tools


@pytest.mark.parametrize("kind", ["question", "computation"])
def test_a_question_changes_no_file_and_runs_no_command(kind: str):
    assert not {"write_file", "edit_file", "bash"} & set(steps(*READ_A, kind=kind).tools)


def test_a_computation_is_not_answered_before_python_has_computed():
    assert steps(*READ_A, kind="computation").tools == ("run_python_code",)
    coded = called("run_python_code", {"code": "print(1)"}, "1")
    assert FINAL in steps(*READ_A, *coded, kind="computation").tools
    assert FINAL in steps(*READ_A, kind="question").tools


@pytest.mark.parametrize("task", ["How many seats are there in total?", "Sum a.py.", "Add up b.py", "Do it."])
def test_no_word_of_the_task_decides_what_a_step_may_be(task: str):
    for talk in ((), READ_A):
        assert steps(*talk, task=task) == steps(*talk, task="Hello.")
