"""What the model is told, and that what was said stays byte for byte (MO-40)."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.local_talk import SPECS, asked, called, spec

from bowerbird.agent.prompt import get_default_instructions, identity_block, system_blocks
from bowerbird.core.messages import ToolUseBlock, assistant_text, day_of, user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.models.local.calls import (
    HEAD_LINES,
    call_input,
    follow_up,
    pattern_of_search,
    words_of_search,
)
from bowerbird.models.local.grammar import as_step
from bowerbird.models.local.prompt import SYSTEM_CHARS, asking, beginning, chat
from bowerbird.models.local.results import RESULT_CHARS, tell
from bowerbird.models.local.situation import paired

NAMES = [tool.name for tool in SPECS]


def told(name, arguments, text, **more) -> str:
    (done,) = paired(called(name, arguments, text, **more))
    return tell(done)


def test_the_beginning_depends_on_the_tools_only():
    first = chat(asked(task="one", system=("Files:\na.py",)), NAMES, ["a.py"])
    other = chat(asked(task="two", system=("Files:\nb.py",)), NAMES, ["b.py"])
    assert first[:-1] == other[:-1] == beginning(NAMES) and first[-1] != other[-1]


def test_what_it_is_told_does_not_depend_on_where_the_project_lies():
    """The same job came out right or wrong by the name of the directory it ran in."""
    here = system_blocks("I", workspace="/home/ann/shop", sandbox="Commands run in tier overlay.")
    there = system_blocks("I", workspace="/srv/other", sandbox="Commands run in tier copy.", hidden=[".env"])
    first, second = (
        chat(asked(task="one", system=blocks), NAMES, ["a.py"])[-1].text for blocks in (here, there)
    )
    extra = second.removeprefix(first.partition("Files of")[0].rstrip()).partition("Files of")[0]
    assert ".env" in extra and len(extra.strip().splitlines()) == 1
    assert second.replace(extra.strip() + "\n\n", "") == first


def test_what_the_agent_says_to_any_model_is_left_out_and_what_people_say_is_not():
    own = get_default_instructions("/srv/other")
    turns = chat(asked(system=(own, "Say please.", identity_block("agent", "local:x", ""))), NAMES, ["a.py"])
    assert turns[-1].text == "Say please.\n\nFiles of this project:\na.py\n\nDo it."


def test_tools_that_are_not_offered_are_not_named():
    text = beginning(["read_file", "search_files"])[0].text
    assert "bash" not in text and "run_python_code" not in text and "edit_file" not in text


def test_a_further_step_only_adds_to_the_conversation():
    """MO-40: the engine evaluates only what is new, so nothing said before may change."""
    talk = [
        *called("search_files", {"pattern": "fee"}, "a.py:2: FEE = 4"),
        *called("read_file", {"path": "a.py", "offset": 1}, "X = 1\nFEE = 4\n"),
        *called("edit_file", {"path": "a.py", "old": "FEE = 4", "new": "FEE = 5"}, "1 replacement"),
        *called("run_python_code", {"code": "print(1)"}, "1\n"),
        *called("write_file", {"path": "n.md", "content": "hello"}, "written"),
    ]
    before = chat(asked(), NAMES, [])
    for end in range(2, len(talk) + 1, 2):
        now = chat(asked(*talk[:end]), NAMES, [])
        assert now[: len(before)] == before
        before = now


def test_a_step_is_rendered_as_the_model_wrote_it():
    call = ToolUseBlock("c1", "write_file", {"path": "n.txt", "content": "hello"})
    follow = follow_up("write_file", "n.txt")
    assert follow is not None
    turns = asking(chat(asked(), NAMES, []), as_step("write_file", path="n.txt"), follow)
    later = chat(asked(*called(call.name, call.input, "written")), NAMES, [])
    assert later[: len(turns)] == turns


def test_roles_alternate_whatever_the_history():
    talk = asked(
        user_text("more"), assistant_text("first"), assistant_text("second"), user_text("x"), dated=True
    )
    roles = [turn.role for turn in chat(talk, NAMES, [])]
    assert all(one != other for one, other in pairwise(roles))


def test_a_long_system_block_is_cut():
    request = ModelRequest((user_text("hi"),), system=("Be brief.", "word " * 5_000))
    system = chat(request, (), ())[0].text
    assert "Be brief." in system and len(system) < 2 * SYSTEM_CHARS


# ---------------------------------------------------------------- searches


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1), min_size=1))
def test_the_words_of_a_search_are_found_again_in_its_pattern(words):
    pattern = pattern_of_search(" ".join(words))
    assert pattern_of_search(words_of_search(pattern)) == pattern


def test_common_words_and_plurals_do_not_decide_a_search():
    assert pattern_of_search("how many of the prices") == "price"
    assert pattern_of_search("of the") == "of|the"


def test_only_parameters_that_the_tool_has_are_filled_in():
    step = {"tool": "search_files", "pattern": "fee"}
    assert call_input(step, spec("search_files"))["case_sensitive"] is False
    bare = type(spec("x"))("search_files", "", {"properties": {"pattern": {}}})
    assert call_input(step, bare) == {"pattern": "fee"}


def test_of_a_data_file_only_the_head_is_read():
    step = {"tool": "read_file", "path": "data/x.csv"}
    assert call_input(step, spec("read_file"))["limit"] == HEAD_LINES


# ---------------------------------------------------------------- results


def test_an_empty_search_says_what_to_try():
    assert "search for one shorter word" in told("search_files", {"pattern": "tax"}, "0 matches")


def test_matches_with_more_of_the_words_come_first():
    matches = [
        {"path": "/a.py", "line": 1, "text": "bulk"},
        {"path": "/b.py", "line": 2, "text": "BULK_DISCOUNT"},
    ]
    text = told("search_files", {"pattern": "bulk|discount"}, "", data={"matches": matches})
    assert text.splitlines()[0] == "b.py:2: BULK_DISCOUNT"


def test_a_definition_is_shown_with_its_body():
    match = {"path": "a.py", "line": 3, "text": "def fee(kg):", "after": ["    return 4", "", "def other():"]}
    text = told("search_files", {"pattern": "fee"}, "", data={"matches": [match]})
    assert text == "a.py:3: def fee(kg):\n    return 4\n"


def test_a_file_is_told_with_its_number_of_lines():
    assert told("read_file", {"path": "a.py", "offset": 1}, "X = 1\nY = 2\n").startswith("a.py, 2 lines:\n")


def test_a_head_of_data_points_to_python():
    data = {"content": "a,b\n1,2\n", "next_offset": 3, "total_lines": 900}
    text = told("read_file", {"path": "d.csv", "offset": 1}, "", data=data)
    assert text.startswith("d.csv, lines 1 to 2 of 900:") and "run_python_code" in text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"ok": True, "stdout": "42\n", "error": None}, "Output:\n42"),
        ({"ok": True, "stdout": "", "result": "42", "error": None}, "Output:\n42"),
        ({"ok": True, "stdout": "", "result": None, "error": None}, "printed nothing"),
        ({"ok": False, "stdout": "", "error": "NameError: x"}, "Correct the code"),
    ],
)
def test_python_results_say_what_to_do(data, said):
    assert said in told("run_python_code", {"code": "x"}, "", data=data)


def test_an_error_is_told_as_such():
    assert told("bash", {}, "exit 1", is_error=True).startswith("Error: exit 1")


def test_a_call_whose_result_was_replaced_is_left_out_whole():
    """MO-40: the engine reuses what follows a removed part, not what follows a changed one."""
    kept = called("read_file", {"path": "b.py"}, "B = 1")
    gone = called("read_file", {"path": "a.py"}, "[Previous: used read_file]")
    assert chat(asked(*gone, *kept), NAMES, []) == chat(asked(*kept), NAMES, [])


def test_no_result_is_longer_than_its_limit():
    assert len(told("bash", {}, "x" * 100_000)) <= RESULT_CHARS


def test_whole_paragraphs_of_instructions_are_kept_while_they_fit():
    request = ModelRequest((user_text("hi"),), system=("Be kind.\n\nAlways say please.\n\n" + "word " * 400,))
    assert chat(request, (), ())[0].text == "Be kind.\n\nAlways say please."


def test_the_day_stands_at_the_beginning_of_a_turn_only():
    """At the end of every result it would be evaluated anew in every step."""
    first = chat(asked(dated=True), NAMES, [])[-1].text
    assert first.startswith("Do it.\n\n") and day_of(asked().messages[-1])[:5] in first
    later = asked(*called("bash", {"command": "ls"}, "a.py"), dated=True)
    assert all("Date:" not in turn.text for turn in chat(later, NAMES, []))


ROWS = "number,title,minutes,guest\n01,Oolong,42,Hanne\n02,Night train,58,Yusuf\n"


def named(task: str, text: str = ROWS, path: str = "data/rows.csv", *before: Any) -> str:
    read = called("read_file", {"path": path}, text)
    turns = chat(asked(*before, *read, task=task), NAMES, [])
    return "\n".join(turn.text for turn in turns[len(beginning(NAMES)) :])


def test_the_columns_that_hold_words_of_the_task_are_named():
    """D-23: code compared a guest's name with the titles, found nothing, and that was the answer."""
    assert 'Column guest holds "Hanne".' in named("How long are the episodes with hanne in all?")
    assert 'Column title holds "Night train".' in named("How long is night train?")
    assert 'Column b holds "x y".' in named("What of x y?", "a;b\n1;x y\n")
    for task in ("How many minutes is a title?", "Which number has 42?", "Who is Hannelore?"):
        assert "Column " not in named(task)
    assert "Column " not in named("Who is Hanne?", ROWS, "notes.txt")
    assert "Column " not in named("Who is Hanne?", "[more: offset=9]")  # nothing is shown but where to go on
    assert named("Is 'x' \"?", 'a,b\n"x,\n').count("Column") == 0


def test_rows_that_a_search_found_count_as_well():
    match = {"path": "/data/rows.csv", "line": 900, "text": "99,Sleepers,60,Ravi"}
    found = called("search_files", {"pattern": "ravi"}, "…", data={"matches": [match]})
    assert 'Column guest holds "Ravi".' in named("What did ravi say?", ROWS, "data/rows.csv", *found)
    read = called("read_file", {"path": "data/rows.csv"}, ROWS)
    later = chat(asked(*read, *found, task="What did ravi say?"), NAMES, [])
    assert "Column" not in str(
        later[len(beginning(NAMES)) :]
    )  # what was said is said alike in each step (MO-40)
