"""What a small model writes anew may stand or not, and what it did in passing is undone (D-23)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.models.local.guards import doubt, fault, repaired
from bowerbird.models.local.rewrite import Rewrite

TASK = "Set the port to 9000."


def wanted(text: str, task: str = TASK, path: str = "a.py") -> Rewrite:
    return Rewrite(task, path, (), tuple(text.split("\n")), ())


@pytest.mark.parametrize(("old", "new", "right"), [
    ("port = 80\nretries = 3\na = 1", "port = 9000\nretries = 4\na = 1", "port = 9000\nretries = 3\na = 1"),
    ("port = 80\nb = 2\nc = 3", "port = 9000\nb = 2", "port = 9000\nb = 2\nc = 3"),
    ("port = 80\nb = 2\n    c = 3", "port = 9000\nb = 2\nc = 3", "port = 9000\nb = 2\n    c = 3"),
    ("a = 1\nb = 2\nport = 80", "b = 2\na = 1\nport = 9000", "b = 2\na = 1\nport = 9000"),
])  # fmt: skip
def test_what_was_done_in_passing_is_undone_and_a_line_that_moved_stays_moved(old: str, new: str, right: str):
    assert repaired(wanted(old), new.split("\n")) == right.split("\n")


def test_lines_go_where_the_task_removes_something():
    old, new = "port = 80\nb = 2\nc = 3", "b = 2"
    assert repaired(wanted(old, "Remove the port and c."), [new]) == [new]


_LINES = st.lists(st.sampled_from(["port = 1", "port = 2", "x = 1", "x = 2", "  x = 1", ""]), max_size=9)


@given(_LINES, _LINES)
def test_undoing_invents_no_line_and_keeps_what_names_the_task(old: list[str], new: list[str]):
    made = repaired(Rewrite(TASK, "a.py", (), tuple(old), ()), new)
    assert set(made) <= {*old, *new}
    assert [line for line in made if "port" in line] == [line for line in new if "port" in line]


@pytest.mark.parametrize(("task", "new", "lacks"), [
    (TASK, "port = 90", "9000"),
    (TASK, "port = 9000", None),
    ('Call it "Blue Door".', "name = 'Door'", "Blue Door"),
    ("Remove the 9000.", "port = 80", None),
])  # fmt: skip
def test_what_the_task_gives_is_missed(task: str, new: str, lacks: str | None):
    assert doubt(wanted("port = 80", task), [new]) == (f"it does not hold {lacks}" if lacks else None)


@pytest.mark.parametrize(("path", "old", "new"), [
    ("a.yaml", "port: 80\nb:\n  - c", "port: 9000\nb: [c"),
    ("a.js", "let port = f(80);", "let port = f(9000;"),
    ("a.go", "func port() int { return 80 }", "func port() int { return 9000"),
])  # fmt: skip
def test_what_does_not_parse_may_not_stand(path: str, old: str, new: str):
    said = fault(wanted(old, path=path), new.split("\n"))
    assert said is not None and said.startswith("it does not parse") and "\n" not in said
    assert fault(wanted(old, path=path), old.replace("80", "9000").split("\n")) is None
    assert fault(wanted(new, path=path), new.replace("9000", "90").split("\n")) is None, "it was wrong before"
