"""What code answers without the small model: lines, definitions, sums, and rules of the project (D-23)."""

import contextlib
import io
import re
from typing import Any

import pytest
from support.local_talk import SPECS, asked, called, found, read

from bowerbird.models.local.changing import Call, Say
from bowerbird.models.local.choices import next_steps
from bowerbird.models.local.looking import TABLE_LINES, first_look
from bowerbird.models.local.prompt import chat
from bowerbird.models.local.settled.cases import ASKED, Case, called_in, case_of
from bowerbird.models.local.settled.lines import wants_numbers
from bowerbird.models.local.settled.sums import sum_of
from bowerbird.models.local.situation import read_situation

OFFERED = frozenset(tool.name for tool in SPECS)
FILES = ("Files:\nREADME.md\nshop/order.py\ntests/test_order.py\ndata/films.csv",)
ORDER = (
    '"""Orders of the shop."""\n\nBULK_FROM = 20\n\n\ndef fee(kg):\n    return 3 if kg < BULK_FROM else 2\n'
)
FILMS = "title,minutes,country\nStatic,101,Canada\nOlive Road,127,Greece\n"


def looked(task: str, *results: Any) -> Any:
    return first_look(read_situation(asked(*results, task=task, system=FILES)), OFFERED)


@pytest.mark.parametrize(
    ("task", "number"),
    [
        ("In which line of shop/order.py is BULK_FROM set?", 3),
        ("On which line of shop/order.py does the function fee begin?", 6),
        ("At what line number in shop/order.py stands `return`?", 7),
    ],
)
def test_the_line_that_is_asked_for_is_found_and_not_counted_by_the_model(task: str, number: int):
    first = looked(task)
    assert isinstance(first, Call) and first.tool == "read_file" and first.input["path"] == "shop/order.py"
    said = looked(task, *read("shop/order.py", ORDER))
    assert isinstance(said, Say) and said.text.startswith(f"It is line {number} of shop/order.py: ")


def test_without_a_file_the_line_is_searched_for():
    rows = (
        ("shop/order.py", 3, "BULK_FROM = 20"),
        ("shop/order.py", 7, "    return 3 if kg < BULK_FROM else 2"),
    )
    said = looked("On which line is BULK_FROM defined?", *found(*rows))
    assert said == Say("It is line 3 of shop/order.py: `BULK_FROM = 20`")


def test_where_two_lines_hold_as_much_the_model_chooses_and_sees_their_numbers():
    task = "In which line of a.py is the fee named?"
    text = "fee = 1\nother = 2\nlate = fee\nfee = 3\n"
    talk = asked(*read("a.py", text), task=task, system=("Files:\na.py",))
    assert not isinstance(first_look(read_situation(talk), OFFERED), Say)
    told = chat(talk, [tool.name for tool in SPECS], ("a.py",))[-1].text
    assert "1: fee = 1\n2: other = 2\n" in told and "4: fee = 3" in told
    assert not wants_numbers("What is the fee?") and not wants_numbers("How long is the coast line?")


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("def fee(kg):", "Where is the function fee defined?"),
        ("func (o *Order) fee(kg int) int {", "Which file defines fee?"),
        ("pub fn fee(kg: u32) -> u32 {", "In which file is the function fee?"),
        ("    public static int fee(int kg) {", "In which file is fee declared?"),
        ("export const fee = (kg) => 3;", "Where is fee defined?"),
        ("fee() {", "Which script defines the function fee?"),
    ],
)
def test_where_a_name_is_defined_is_said_by_the_line_that_defines_it(line: str, task: str):
    rows = (
        ("shop/order.py", 6, line),
        ("README.md", 2, "The fee is low."),
        ("shop/order.py", 9, "x = fee(2)"),
        ("tests/test_order.py", 3, "def fee(kg):"),
    )
    said = looked(task, *found(*rows))
    assert said == Say(f"`fee` is defined in shop/order.py, line 6: `{line.strip()}`")
    assert not isinstance(looked(task, *found(*rows, ("b.py", 1, line))), Say)
    assert not isinstance(looked(task, *found(*rows, truncated=True)), Say)


RULE = (
    "import csv\nfrom shop.rates import BULK_FROM\n\n\ndef fee(kg):\n    return 3 if kg < BULK_FROM else 2\n\n\n"
    'with open("x.csv") as file:\n    print(list(csv.reader(file)))\n'
)


def test_a_rule_of_the_project_is_called_and_not_applied_by_the_model():
    others = {"shop/rates.py": "BULK_FROM = 20\n"}
    case = case_of("What is the fee for 25 kg?", "shop/order.py", RULE, others)
    assert case is not None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(case.code("print(fee(25))"), {})
    assert out.getvalue() == "2\n"
    assert called_in(case.code("print(fee(25))")) == "print(fee(25))" and called_in("print(2)") is None


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("Who wrote the fee?", "shop/order.py"),
        ("In which line of shop/order.py is 20 kg named?", "shop/order.py"),
        ("What colour are the 3 tiles?", "shop/order.py"),
        ("What is the fee for 25 kg?", "shop/order.go"),
    ],
)
def test_other_questions_are_no_case(task: str, path: str):
    assert case_of(task, path, RULE, {}) is None


def test_of_a_case_only_the_line_that_the_model_wrote_is_shown_again():
    task = "What is the fee for 25 kg?"
    text = RULE.partition("\n\n\nwith")[0] + "\n"
    case = looked(task, *found(("shop/order.py", 5, "def fee(kg):")), *read("shop/order.py", text))
    assert isinstance(case, Case)
    ran = called("run_python_code", {"code": case.code("print(fee(25))")}, "2", data={"stdout": "2\n"})
    talk = asked(*read("shop/order.py", text), *ran, task=task, system=FILES)
    told = chat(talk, [tool.name for tool in SPECS], ())
    assert told[-2].text == "```python\nprint(fee(25))\n```" and ASKED in told[-3].text
    assert first_look(read_situation(talk), OFFERED) is None


def picked(task: str, files: dict[str, str]) -> Any:
    """Return what is read first when the words of a question are searched in these files."""
    system = ("Files:\n" + "\n".join(files),)
    search = first_look(read_situation(asked(task=task, system=system)), OFFERED)
    assert isinstance(search, Call) and search.tool == "search_files"
    lines = [(path, n, line) for path, text in files.items() for n, line in enumerate(text.split("\n"), 1)]
    held = [row for row in lines if re.search(search.input["pattern"], row[2], re.IGNORECASE)]
    call = first_look(read_situation(asked(*found(*held), task=task, system=system)), OFFERED)
    assert isinstance(call, Call)
    return call.input["path"]


def test_what_is_said_in_other_words_is_found():
    files = {
        "timetable.py": 'HARBOURS = ["Skerry"]\nDEPARTURES = ["06:40", "20:05"]\n\ndef next_departure(now): ...',
        "report.py": "def busiest(day): ...\nprint('busiest day:', busiest())",
        "fares.py": "def price(age): ...\ndef family(ages): ...",
        "rows.csv": "day,seats\n9,2\n2,9",
    }
    assert picked("When does the last one of the day leave?", files) == "timetable.py"
    assert picked("What do children of 9 and 2 pay?", files) == "fares.py"


def test_a_table_is_told_by_what_its_rows_are():
    files = {
        "data/films.csv": "title,minutes\nStatic,101",
        "data/sales.csv": "film,tickets\nStatic,61",
        "schema.sql": "CREATE TABLE film (minutes INTEGER);",
    }
    assert picked("Which films are longer than 100 minutes?", files) == "data/films.csv"


SALES = "film,screen,tickets\nStatic,1,61\nPaper Moths,2,95\nPaper Moths,3,110"


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("How many tickets were sold in all by data/sales.csv?", "The sum of tickets in data/sales.csv is 266 (3 rows)."),
        ("How many tickets did Paper Moths sell over all screens?", "The sum of tickets in data/sales.csv where film is Paper Moths is 205 (2 rows)."),
        ("What is the average number of tickets of Paper Moths in data/sales.csv?", "The mean of tickets in data/sales.csv where film is Paper Moths is 102.5 (2 rows)."),
        ("How many sales of Static are there?", "1 row in data/sales.csv where film is Static."),
    ],
)  # fmt: skip
def test_a_sum_of_a_table_that_was_seen_whole_is_computed_by_code(task: str, said: str):
    assert looked(task, *found(("data/sales.csv", 2, "Static,1,61")), *read("data/sales.csv", SALES)) == Say(
        said
    )


@pytest.mark.parametrize(
    "task",
    [
        "How many tickets did Blue Door sell in data/sales.csv?",
        "How many films sold more than 90 tickets in data/sales.csv?",
        "How many tickets did Static and Paper Moths sell in data/sales.csv?",
        "Which film sold the most tickets in all?",
        "How many seats does a screen have?",
        "How many minutes does a show take in all?",
    ],
)
def test_a_sum_that_is_not_clearly_of_the_table_is_left_to_the_model(task: str):
    assert sum_of(task, "data/sales.csv", SALES.split("\n")) is None


def test_of_a_table_that_was_not_seen_whole_no_sum_is_said():
    part = called(
        "read_file", {"path": "data/sales.csv", "offset": 1}, SALES, data={"content": SALES, "next_offset": 5}
    )
    assert not isinstance(looked("How many tickets were sold in all?", *part), Say)


def test_a_question_changes_no_file():
    """Asked what somebody pays, the model wrote its sum into the file of the prices."""
    task = "What do two adults pay together?"
    request = read_situation(asked(*read("shop/order.py", ORDER), task=task, system=FILES))
    assert not {"edit_file", "write_file"} & set(next_steps(request, SPECS).tools)
    wish = read_situation(asked(*read("shop/order.py", ORDER), task="Let adults pay 5.", system=FILES))
    assert "edit_file" in next_steps(wish, SPECS).tools


def test_a_table_whose_beginning_says_that_it_may_settle_the_question_is_read_whole():
    """Its code counted the rows of a long table instead of adding them up."""
    rows = [f"{1000 + n},{'Fig' if n % 3 else 'Plum'},{n % 7},Ann" for n in range(1, 60)]
    lines = ["order,product,quantity,customer", *rows]
    task = "How many pieces of the product Plum were ordered in total? See data/sales.csv."

    def part(upto: int, limit: int, total: int = 60) -> Any:
        whole = upto == len(lines)
        data = {
            "content": "\n".join(lines[:upto]),
            "next_offset": None if whole else upto + 1,
            "total_lines": total,
        }
        return called("read_file", {"path": "data/sales.csv", "offset": 1, "limit": limit}, "…", data=data)

    search = found(("data/sales.csv", 2, rows[0]))
    for before in ((), search):
        move = looked(task, *before, *part(12, 12))
        assert isinstance(move, Call) and move.input == {
            "path": "data/sales.csv",
            "offset": 1,
            "limit": TABLE_LINES,
        }
        said = looked(task, *before, *part(12, 12), *part(60, TABLE_LINES))
        total = sum(n % 7 for n in range(1, 60) if n % 3 == 0)
        assert said == Say(
            f"The sum of quantity in data/sales.csv where product is Plum is {total} (19 rows)."
        )
    assert not isinstance(looked(task, *part(12, 12, TABLE_LINES + 1)), Say), "too long to be read"
    assert looked("Which product was ordered most?", *part(12, 12)) is None
