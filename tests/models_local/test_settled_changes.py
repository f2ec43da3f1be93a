"""What code changes without the small model: values, rows, headings, elements and lines that a task names (D-23)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.local_talk import SPECS, asked, found, read

from bowerbird.models.local.changing import Call, Calls, next_move
from bowerbird.models.local.rewrite import Rewrite
from bowerbird.models.local.settled.elements import with_element
from bowerbird.models.local.settled.headings import with_heading
from bowerbird.models.local.settled.removals import without_line
from bowerbird.models.local.settled.rows import with_row
from bowerbird.models.local.settled.values import with_value
from bowerbird.models.local.situation import read_situation

OFFERED = frozenset(tool.name for tool in SPECS)
FILES = ("Files:\nREADME.md\nshop/order.py\ntests/test_order.py\ndata/films.csv",)
ORDER = (
    '"""Orders of the shop."""\n\nBULK_FROM = 20\n\n\ndef fee(kg):\n    return 3 if kg < BULK_FROM else 2\n'
)
FILMS = "title,minutes,country\nStatic,101,Canada\nOlive Road,127,Greece\n"


def changed(task: str, path: str, text: str) -> Any:
    return next_move(read_situation(asked(*read(path, text), task=task, system=FILES)), OFFERED)


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
        ("Remove fig from the fruits.", 'FRUITS = ("fig", "pear")'),
    ],
)
def test_other_elements_are_left_to_the_model(task: str, line: str):
    assert with_element(task, "a.py", [line]) is None


def test_the_heading_that_is_misspelt_is_corrected_and_no_other():
    """The first of the page was replaced, whichever was meant."""
    lines = ["# The harbour", "", "## Tidse", "", "## Boats"]
    task = "There's a typo in a heading of a.md, it should be Tides."
    assert with_heading(task, "a.md", lines) == [*lines[:2], "## Tides", *lines[3:]]
    assert with_heading("A heading of a.md should read Ropes.", "a.md", lines) is None


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
        assert isinstance(call, Calls) and call.calls[0].input["path"] == path
    assert with_value("Listen on port 7070.", ['const address = ":6060"']) == ['const address = ":7070"']


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
