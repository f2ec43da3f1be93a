"""Where a question is looked for needs no model; what is counted in data is computed (D-23, MO-38)."""

from collections.abc import Sequence
from typing import Any

import pytest
from support.local_talk import SPECS, asked, called

from bowerbird.agent.context.compaction import SummaryPlan, summary_text
from bowerbird.core.messages import assistant_text, user_text
from bowerbird.models.local.changing import Call, Say
from bowerbird.models.local.choices import next_steps
from bowerbird.models.local.looking import LOOK_LINES, SECOND_LINES, first_look
from bowerbird.models.local.situation import read_situation

OFFERED = frozenset(tool.name for tool in SPECS)
FILES = ("Files:\nREADME.md\nshop/order.py\nshop/tax.py\ndata/rows.csv",)


def look(task: str, *results: Any) -> Call | None:
    call = first_look(read_situation(asked(*results, task=task, system=FILES)), OFFERED)
    assert not isinstance(call, Say)
    return call


def found(*rows: tuple[str, int, str]) -> Sequence[Any]:
    matches = [{"path": f"/{path}", "line": line, "text": text} for path, line, text in rows]
    return called("search_files", {"pattern": "x"}, "…", data={"matches": matches})


def read_rows() -> Sequence[Any]:
    text = "name,watt\nhall,9\n"
    return called("read_file", {"path": "data/rows.csv"}, text, data={"content": text, "next_offset": None})


def test_the_words_of_a_question_are_searched_first():
    call = look("How large is the bulk discount?")
    assert call is not None and call.tool == "search_files" and call.input["pattern"] == "bulk|discount"
    assert look("Do it?") is None and look("Set the port to 90.") is None
    assert (
        first_look(read_situation(asked(task="Which port?", system=FILES)), OFFERED - {"read_file"}) is None
    )


@pytest.mark.parametrize(
    ("task", "pattern"),
    [
        ("Which files are there in the directory shop?", "shop/**/*"),
        ("List the files.", "**/*"),
        ("How many Python files are there?", "**/*.py"),
        ("What modules does the package shop have in the directory shop?", "shop/**/*"),
    ],
)
def test_files_that_are_to_be_listed_are_listed(task: str, pattern: str):
    """It searched the text of files for the words, and took what it found for all there is."""
    call = look(task)
    assert call is not None and (call.tool, call.input) == ("list_files", {"pattern": pattern})


def listed(task: str, *paths: str, pattern: str = "shop/**/*") -> Call | Say | None:
    done = called("list_files", {"pattern": pattern}, "…", data={"files": list(paths), "truncated": False})
    return first_look(read_situation(asked(*done, task=task, system=FILES)), OFFERED)


def test_a_list_of_files_is_the_answer_where_nothing_else_is_asked():
    """A model of this size leaves some out, or says files that are not there."""
    said = listed("Which files are there in the directory shop?", "/shop/order.py", "/shop/tax.py")
    assert said == Say("2 files: `shop/order.py`, `shop/tax.py`.")
    said = listed("How many Python files are there?", "/a.py", pattern="**/*.py")
    assert said == Say("1 file: `a.py`.")
    assert listed("Which files in the directory shop are long?", "/shop/tax.py") is None
    assert listed("Which files are there in the directory shop?") is None
    assert listed("List the files in shop.", *(f"/shop/{n}.py" for n in range(41))) is None


@pytest.mark.parametrize(
    "task", ["Which file holds the tax?", "Which files mention the tax?", "Which files are changed by order?"]
)
def test_what_files_hold_is_searched(task: str):
    call = look(task)
    assert call is not None and call.tool == "search_files"


def test_a_file_that_the_question_names_is_read_first():
    call = look("What does shop/tax.py do?")
    assert call is not None and (call.tool, call.input["path"]) == ("read_file", "shop/tax.py")


def test_the_file_with_the_line_that_holds_the_question_is_read():
    rows = ("shop/tax.py", 2, "BULK = 1"), ("shop/order.py", 300, "BULK_DISCOUNT = 0.1")
    call = look("How large is the bulk discount?", *found(*rows))
    assert call is not None and (call.tool, call.input["path"]) == ("read_file", "shop/order.py")
    assert call.input["offset"] <= 300 < call.input["offset"] + LOOK_LINES


@pytest.mark.parametrize(
    ("task", "rows", "path"),
    [
        ("How large is the bulk discount?", [("shop/tax.py", 9, "BULK_DISCOUNT = 2"), ("README.md", 3, "BULK")], "shop/tax.py"),
        ("How does the bulk get a tax?", [("README.md", n, "bulk") for n in range(1, 9)] + [("shop/tax.py", 3, "TAX = 1")], "shop/tax.py"),
        ("What is Ben's bulk order?", [("README.md", 3, "bulk orders"), ("shop/tax.py", 8, "OWNER = 'Ben'")], "shop/tax.py"),
        ("In which file is bulkRate?", [("README.md", 3, "rates"), ("shop/tax.py", 8, "def bulkRate(x):")], "shop/tax.py"),
        ("How many orders did Ben bulk together?", [("shop/order.py", 1, "orders together"), ("data/rows.csv", 2, "Ben,bulk")], "data/rows.csv"),
        ("How large is the bulk discount?", [("tests/test_tax.py", n, "bulk discount, bulk") for n in (1, 2)] + [("shop/tax.py", 9, "BULK_DISCOUNT = 2")], "shop/tax.py"),
    ],
    ids=["most words", "rare words", "names count twice", "names of code", "data is computed from", "no test"],
)  # fmt: skip
def test_the_file_that_holds_the_most_of_the_question_is_read(
    task: str, rows: list[tuple[str, int, str]], path: str
):
    """Of several, the model of this size chose by what it saw first, or by a note that said nothing."""
    call = look(task, *found(*rows))
    assert call is not None and (call.tool, call.input["path"]) == ("read_file", path)


def test_a_second_file_that_holds_much_alike_is_read_too():
    rows = ("shop/order.py", 3, "bulk_discount = 1"), ("shop/tax.py", 300, "bulk_discount = 2")
    first = called("read_file", {"path": "shop/order.py"}, "bulk_discount = 1")
    call = look("How large is the bulk discount?", *found(*rows), *first)
    assert call is not None and call.input["path"] == "shop/tax.py"
    assert (
        call.input["offset"]
        <= 300
        < call.input["offset"] + SECOND_LINES
        == call.input["offset"] + call.input["limit"]
    )
    assert look("How large is the bulk discount?", *found(rows[0], ("README.md", 1, "bulk")), *first) is None
    then = called("read_file", {"path": "shop/tax.py"}, "bulk_discount = 2")
    assert look("How large is the bulk discount?", *found(*rows), *first, *then) is None


@pytest.mark.parametrize(
    "rows",
    [(), (("shop/order.py", 3, "LARGE = 1"),), (("data/rows.csv", 3, "pay,child"), ("shop/tax.py", 9, "a child has to pay 5"))],
    ids=["nothing", "what says little", "data or text"],
)  # fmt: skip
def test_where_it_is_not_clear_the_model_chooses(rows: tuple[tuple[str, int, str], ...]):
    assert look("How much does a child pay?", *found(*rows)) is None


@pytest.mark.parametrize(
    ("task", "computed"),
    [
        ("How many watts do all rows in data/rows.csv have together?", True),
        ("Which row of data/rows.csv has the most watts?", True),
        ("Add up all the watts in data/rows.csv.", True),
        ("Which columns has data/rows.csv?", False),
    ],
)
def test_what_is_computed_from_data_is_computed_by_code(task: str, computed: bool):
    """Also where all of it is in sight: a model of this size sums in its head, and wrongly."""
    steps = next_steps(read_situation(asked(*read_rows(), task=task, system=FILES)), SPECS)
    assert (steps.tools == ("run_python_code",)) is computed
    ran = called("run_python_code", {"code": "print(9)"}, "9")
    steps = next_steps(read_situation(asked(*read_rows(), *ran, task=task, system=FILES)), SPECS)
    assert "final_answer" in steps.tools


@pytest.mark.parametrize(
    ("task", "computed"),
    [
        ("What does one pay for 130 minutes?", True),
        ("How much is due for 130 minutes?", True),
        ("Which prices are there beside 130?", False),
        ("What does one pay from 20 minutes on?", False),
    ],
)
def test_what_follows_from_a_number_of_the_question_is_computed(task: str, computed: bool):
    """The model of this size says the rule where a price is asked for, or a number that stands near."""
    text = "FREE_MINUTES = 20\nPER_HOUR = 180\nMOST = 1500\n"
    read = called("read_file", {"path": "shop/tax.py"}, text, data={"content": text, "next_offset": None})
    steps = next_steps(read_situation(asked(*read, task=task, system=FILES)), SPECS)
    assert (steps.tools == ("run_python_code",)) is computed


def test_a_summary_is_not_taken_for_the_task():
    """In the middle of a turn the agent may sum up what went before; it ends with what was asked."""
    asked_for = "How large is the bulk discount?"
    told = summary_text("Much was read.", SummaryPlan((), (), user_text(asked_for)), ".transcripts/x", {})
    assert read_situation(asked(task=told, system=FILES)).task == asked_for


def test_a_turn_that_was_summed_up_comes_to_its_end():
    """Searches filled the window, the turn was summed up, the model searched the same: without end."""
    told = summary_text("Much was read.", SummaryPlan((), (), user_text("Which port?")), None, {})
    three = [message for n in range(3) for message in called("search_files", {"pattern": f"x{n}"}, "…")]
    assert next_steps(read_situation(asked(*three, task=told, system=FILES)), SPECS).tools == (
        "final_answer",
    )
    assert (
        "read_file"
        in next_steps(read_situation(asked(*three, task="Which port?", system=FILES)), SPECS).tools
    )
    later = (*three, assistant_text("8000."), user_text("And which host?"))
    assert not read_situation(asked(*later, task=told, system=FILES)).summed
