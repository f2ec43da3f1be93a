"""What code settles for the small model: lines, definitions, values and rows that follow from a task's words (D-23)."""

import contextlib
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.local_talk import SPECS, asked, called

from bowerbird.models.local.changing import Call, Say, next_move
from bowerbird.models.local.choices import next_steps
from bowerbird.models.local.looking import first_look
from bowerbird.models.local.prompt import chat
from bowerbird.models.local.rewrite import Rewrite
from bowerbird.models.local.settled.cases import ASKED, Case, called_in, case_of
from bowerbird.models.local.settled.elements import with_element
from bowerbird.models.local.settled.headings import with_heading
from bowerbird.models.local.settled.lines import wants_numbers
from bowerbird.models.local.settled.removals import without_line
from bowerbird.models.local.settled.rows import with_row
from bowerbird.models.local.settled.sums import sum_of
from bowerbird.models.local.settled.values import with_value
from bowerbird.models.local.situation import read_situation

OFFERED = frozenset(tool.name for tool in SPECS)
FILES = ("Files:\nREADME.md\nshop/order.py\ntests/test_order.py\ndata/films.csv",)
ORDER = (
    '"""Orders of the shop."""\n\nBULK_FROM = 20\n\n\ndef fee(kg):\n    return 3 if kg < BULK_FROM else 2\n'
)
FILMS = "title,minutes,country\nStatic,101,Canada\nOlive Road,127,Greece\n"


def read(path: str, text: str) -> Any:
    return called("read_file", {"path": path, "offset": 1}, text, data={"content": text, "next_offset": None})


def found(*rows: tuple[str, int, str], **data: Any) -> Any:
    matches = [{"path": f"/{path}", "line": line, "text": text} for path, line, text in rows]
    return called("search_files", {"pattern": "x"}, "…", data={"matches": matches, **data})


def looked(task: str, *results: Any) -> Any:
    return first_look(read_situation(asked(*results, task=task, system=FILES)), OFFERED)


def changed(task: str, path: str, text: str) -> Any:
    return next_move(read_situation(asked(*read(path, text), task=task, system=FILES)), OFFERED)


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


@pytest.mark.parametrize(
    ("task", "old", "new"),
    [
        ("Set the port to 9000.", "PORT = 8000", "PORT = 9000"),
        ("People ride free below the age of 6 now.", "FREE_BELOW_AGE = 4", "FREE_BELOW_AGE = 6"),
        ("An order may have at most 12 items, not 20.", "const maxItems = 20", "const maxItems = 12"),
        (
            "Make the default width 60.",
            "pub const DEFAULT_WIDTH: u32 = 40;",
            "pub const DEFAULT_WIDTH: u32 = 60;",
        ),
        ("Set the version to 2.1.0.", '  "version": "2.0.3",', '  "version": "2.1.0",'),
        ("Use node version 22.", "    node-version: 20", "    node-version: 22"),
        ("Change MAX_USERS to 50.", "#define MAX_USERS 20", "#define MAX_USERS 50"),
        ("Change the log level to debug.", "log_level: info", "log_level: debug"),
        ("Set the theme to dark.", "theme=light  # or dark", "theme=dark  # or dark"),
        ("Turn strict on.", '  "strict": false,', '  "strict": true,'),
        ("Disable the cache.", "cache = yes", "cache = no"),
        (
            "The letters shall be bigger: make their font-size 18px.",
            "  font-size: 14px;",
            "  font-size: 18px;",
        ),
    ],
)
def test_a_value_that_a_task_sets_is_set_by_code(task: str, old: str, new: str):
    lines = ["# 3 things", "other = 7", "", old, "more: 5"]
    assert with_value(task, lines) == [*lines[:3], new, lines[4]]


def test_a_place_is_told_by_what_it_stands_in():
    sheet = "body {\n  background: ivory;\n}\n.button {\n  background: blue;\n}".split("\n")
    assert with_value("Make the background of the buttons darkgreen.", sheet) == [
        *sheet[:4],
        "  background: darkgreen;",
        "}",
    ]
    table = ["[car]", "max_speed = 120", "[van]", "max_speed = 90"]
    assert with_value("Set the maximum speed of the van to 80.", table) == [*table[:3], "max_speed = 80"]


@pytest.mark.parametrize(
    ("task", "lines"),
    [
        ("Change the tax to 21 percent.", ["TAX = 0.19"]),
        ("Let the timeout be 5 minutes.", ["TIMEOUT_SECONDS = 30"]),
        ("Give a right answer 12 points.", ["POINTS_RIGHT = 10", "RIGHT_POINTS = 3"]),
        ("Let the first wait be 5 seconds and the second 9.", ["WAIT = 3"]),
        ("Add 5 to the limits.", ["LIMITS = [3]", "limit = 3"]),
        (
            "Give the player 75 seconds in the Cellar.",
            ["SECONDS = 9", 'x = [{"name": "Cellar", "seconds": 60}]'],
        ),
        ("Set the port to 80.", ["PORT = 80"]),
        ("Set the port to 9000.", ["HTTP_PORT = 80", "TLS_PORT = 443"]),
        ("Cut the price to 4.", ["if price > 5:", "    return 3"]),
    ],
)
def test_a_value_whose_place_or_unit_is_open_is_left_to_the_model(task: str, lines: list[str]):
    assert with_value(task, lines) is None


def test_a_settled_change_is_made_without_the_model():
    made = changed("Set BULK_FROM in shop/order.py to 30.", "shop/order.py", ORDER)
    assert made == Call(
        "edit_file", {"path": "shop/order.py", "old": "BULK_FROM = 20", "new": "BULK_FROM = 30"}
    )
    assert isinstance(changed("Fix fee in shop/order.py.", "shop/order.py", ORDER), Rewrite)


@pytest.mark.parametrize(
    ("task", "row"),
    [
        ("Add a row to data/films.csv: Blue Door, 98, Japan.", "Blue Door,98,Japan"),
        ("Append the line Blue Door,98,Japan to data/films.csv.", "Blue Door,98,Japan"),
        (
            "Add a line to data/films.csv for Static II with 98 minutes, made in Greece.",
            "Static II,98,Greece",
        ),
        ("Enter a film in data/films.csv: Platform nine, 52 minutes, Canada.", "Platform nine,52,Canada"),
        ('Add "Red, Blue" from Greece to data/films.csv, it has 98 minutes.', '"Red, Blue",98,Greece'),
    ],
)
def test_a_row_is_added_by_code_in_the_tables_own_form(task: str, row: str):
    lines = FILMS.rstrip("\n").split("\n")
    assert with_row(task, "data/films.csv", lines) == [*lines, row]
    made = changed(task, "data/films.csv", FILMS)
    assert isinstance(made, Call) and made.tool == "edit_file" and made.input["new"].endswith(f"\n{row}")


@pytest.mark.parametrize(
    "task",
    [
        "Add a row to data/films.csv: Blue Door from Japan.",
        "Add a row to data/films.csv with 98 minutes for 3 people from Greece: Blue Door.",
        "Add a column rating to data/films.csv.",
        "Add a line before Static: Blue Door, 98, Japan.",
        "Remove Static from data/films.csv.",
    ],
)
def test_a_row_that_does_not_follow_is_left_to_the_model(task: str):
    assert with_row(task, "data/films.csv", FILMS.rstrip("\n").split("\n")) is None


@given(st.text(max_size=80), st.lists(st.text(max_size=30), max_size=6))
def test_any_words_and_lines_give_no_error_and_change_one_line_at_most(task: str, lines: list[str]):
    new = with_value(f"Set the port to 90. {task}", lines)
    assert new is None or sum(a != b for a, b in zip(new, lines, strict=True)) == 1
    rows = with_row(f"Add a row: {task}", "a.csv", lines)
    assert rows is None or rows[:-1] == lines


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


@pytest.mark.parametrize(
    ("task", "path", "old", "new"),
    [
        ("Add plum to the list of fruits.", "a.py", 'FRUITS = ["fig", "pear"]', 'FRUITS = ["fig", "pear", "plum"]'),
        ('Add "Gull Rock" to the harbours.', "a.js", "const harbours = ['Skerry'];", "const harbours = ['Skerry', 'Gull Rock'];"),
        ("Remove sms from the channels of alerts.json.", "a.json", '  "channels": ["mail", "sms"],', '  "channels": ["mail"],'),
        ("Add M81 to the targets.", "a.py", 'TARGETS = ("M31", "M42")', 'TARGETS = ("M31", "M42", "M81")'),
        ("Add green to the filters of the camera.", "a.yaml", "filters:\n  - red\n  - blue", "filters:\n  - red\n  - blue\n  - green"),
        ("Remove red from the filters.", "a.yml", "filters:\n  - red\n  - blue", "filters:\n  - blue"),
    ],
)  # fmt: skip
def test_an_element_of_a_list_of_texts_is_added_or_taken_out_by_code(
    task: str, path: str, old: str, new: str
):
    assert with_element(task, path, ["other: 1", *old.split("\n"), "rest: 2"]) == [
        "other: 1",
        *new.split("\n"),
        "rest: 2",
    ]


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ("Add tea for 2.2 to the items.", 'ITEMS = ["tea"]'),
        ("Add fig to the fruits.", 'FRUITS = ["fig"]'),
        ("Add a function to the fruits.", 'FRUITS = ["fig"]'),
        ("Add plum to the fruits.", 'FRUITS = ["fig", ["pear"]]'),
        ("Add plum to the fruits.", "FRUITS = [3, 4]"),
        ("Add plum to the nuts.", 'FRUITS = ["fig"]'),
    ],
)
def test_other_elements_are_left_to_the_model(task: str, line: str):
    assert with_element(task, "a.py", [line]) is None


def test_a_heading_is_worded_anew_in_its_place():
    page = "<html>\n<head>\n  <title>Ferry</title>\n</head>\n  <h1>Departures</h1>\n<h2>Today</h2>\n"
    files = ("Files:\nREADME.md\nweb/board.html\nweb/list.html",)
    task = "Change the heading of the board to Boats today."
    first = next_move(read_situation(asked(task=task, system=files)), OFFERED)
    assert first == Call("read_file", {"path": "web/board.html", "offset": 1})
    made = next_move(read_situation(asked(*read("web/board.html", page), task=task, system=files)), OFFERED)
    assert isinstance(made, Call) and made.input["new"].strip() == "<h1>Boats today</h1>"
    lines = page.split("\n")
    assert with_heading("The title of the page should read Boats.", "a.html", lines) == [
        *lines[:2],
        "  <title>Boats</title>",
        *lines[3:],
    ]
    assert with_heading("Change the heading Today to Now.", "a.html", lines) == [
        *lines[:5],
        "<h2>Now</h2>",
        "",
    ]
    assert with_heading("Change the heading to Menu.", "a.md", ["# Old", "", "## Part"]) == [
        "# Menu",
        "",
        "## Part",
    ]
    assert with_heading("Add a heading that says Menu.", "a.md", ["# Old"]) is None


def test_the_file_that_sets_the_value_is_read_and_the_list_that_is_added_to():
    rows = (
        ("fares.py", 6, "FREE_BELOW_AGE = 4"),
        ("fares.py", 9, "def price(age):"),
        ("timetable.py", 6, "def is_free(age, below): # from now on"),
        ("timetable.py", 1, 'HARBOURS = ["Skerry"]'),
        ("report.py", 3, "return list(harbours)"),
    )
    system = ("Files:\nfares.py\nreport.py\ntimetable.py",)
    for task, path in (
        ("People travel free below the age of 6 from now on.", "fares.py"),
        ("Add Gull Rock to the list of harbours.", "timetable.py"),
    ):
        call = next_move(read_situation(asked(*found(*rows), task=task, system=system)), OFFERED)
        assert isinstance(call, Call) and call.input["path"] == path
    assert with_value("Listen on port 7070.", ['const address = ":6060"']) == ['const address = ":7070"']


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


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ("Remove the line that prints TRACE.", '    print("TRACE", name)'),
        ("Remove the console.log line from app/menu.js.", '  console.log("looking for", name);'),
        ("Delete the debug output.", '    fmt.Println("DEBUG price", minutes)'),
        ('Remove the line that says "begins" to the log.', 'echo "it begins"'),
    ],
)
def test_the_only_line_that_prints_what_is_said_is_taken_out_by_code(task: str, line: str):
    lines = ["one", "    " + line.strip(), "    return name", "printer = 3"]
    assert without_line(task, lines) == [lines[0], *lines[2:]]
    assert without_line(task, [*lines, line]) is None
    assert without_line(task, ["one", "    return name"]) is None


def test_a_line_that_python_cannot_do_without_is_left_to_the_model():
    text = "def f(x):\n    print('TRACE', x)\n"
    assert isinstance(
        changed("Remove the line that prints TRACE in shop/order.py.", "shop/order.py", text), Rewrite
    )
