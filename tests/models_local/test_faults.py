"""Code that is wrong: the function that is told of, its tests run before and after, what did not help taken back (D-23)."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.local_talk import SPECS, asked, called

from bowerbird.core.messages import Message
from bowerbird.models.local.changing import Call, Say
from bowerbird.models.local.faults.checking import MOST_ROUNDS, checking_move
from bowerbird.models.local.faults.mending import as_noted, function_part, mend_question, mended_part
from bowerbird.models.local.guards import fault
from bowerbird.models.local.prompt import mending
from bowerbird.models.local.rewrite import Rewrite, edit_of
from bowerbird.models.local.situation import read_situation

OFFERED = frozenset(tool.name for tool in SPECS)
TASK = "The test of last_n fails, fix it."
WRONG = "def last_n(items, n):\n    return items[-n - 1:]\n\n\ndef first(items):\n    return items[0]\n"
TESTS = {
    "test_stock.py": "from stock import last_n, first\n\n\ndef test_last_n():\n    n = 2\n"
    "    assert last_n([1, 2, 3], n) == [2, 3]\n\n\ndef test_first():\n    assert first('ab') == 'a'\n\n\n"
    "def test_with(fixture):\n    assert 0\n",
}
RIGHT = {"old": "    return items[-n - 1:]", "new": "    return items[-n:]"}
STILL_WRONG = {"old": "    return items[-n - 1:]", "new": "    return items[n:]"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "stock.py").write_text(WRONG)
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def played(
    project: Path, edits: list[dict[str, str]], task: str = TASK, longest_s: float | None = None
) -> list[Any]:
    """Let a turn go on, with these edits for what the model would rewrite; return its moves, the answer last."""
    messages: list[Message] = []
    moves: list[Any] = []
    files = "Files:\n" + "\n".join(sorted(path.name for path in project.iterdir() if path.is_file()))
    while True:
        move = checking_move(read_situation(asked(*messages, task=task, system=(files,))), OFFERED)
        moves.append(move)
        if isinstance(move, Rewrite):
            move = Call("edit_file", {"path": move.path, **edits.pop(0)})
        if not isinstance(move, Call):
            return moves
        done, data = "Edited.", dict[str, Any]()
        is_error = False
        if move.tool == "bash":
            try:
                run = subprocess.run(
                    ["bash", "-c", f"exec {move.input['command'].partition(chr(10))[2]}"],
                    cwd=project, capture_output=True, text=True, check=False, timeout=longest_s,
                )  # fmt: skip
                done = run.stdout + run.stderr
            except subprocess.TimeoutExpired:
                done, is_error = "timed out", True
        elif move.tool == "read_file":
            done = (project / move.input["path"]).read_text()
            data = {"content": done, "next_offset": None}
        else:
            path = project / move.input["path"]
            assert path.read_text().count(move.input["old"]) == 1
            path.write_text(path.read_text().replace(move.input["old"], move.input["new"]))
        messages += called(move.tool, move.input, done, data=data, is_error=is_error)


def test_a_change_is_confirmed_by_the_test_that_failed(project: Path):
    moves = played(project, [RIGHT])
    wanted = next(move for move in moves if isinstance(move, Rewrite))
    assert wanted.lines == ("def last_n(items, n):", "    return items[-n - 1:]")
    assert "last_n([1, 2, 3], n) is [1, 2, 3], and must be [2, 3]" in mend_question(wanted)
    said = "In stock.py I changed `return items[-n - 1:]` to `return items[-n:]`. The tests pass now."
    assert moves[-1] == Say(said) and "-n:]" in (project / "stock.py").read_text()
    assert not list(project.rglob("__pycache__")), "a run leaves nothing"


def test_a_change_that_does_not_help_is_taken_back_and_another_made(project: Path):
    moves = played(project, [STILL_WRONG, RIGHT])
    tries = [move.tried for move in moves if isinstance(move, Rewrite)]
    assert tries == [0, 1] and "The tests pass now." in moves[-1].text
    assert (project / "stock.py").read_text() == WRONG.replace("-n - 1:", "-n:")


def test_a_change_whose_tests_never_end_is_taken_back(project: Path):
    """The run was killed, and the change stood and was told as made."""
    endless = {"old": "    return items[-n - 1:]", "new": "    while True:\n        pass"}
    moves = played(project, [endless, RIGHT], longest_s=2)
    assert "The tests pass now." in moves[-1].text
    assert (project / "stock.py").read_text() == WRONG.replace("-n - 1:", "-n:")


def test_when_nothing_helps_the_file_is_as_it_was_and_no_change_is_claimed(project: Path):
    moves = played(project, [STILL_WRONG] * MOST_ROUNDS)
    assert moves[-1].text.startswith(
        "I changed nothing: 3 changes of last_n did not help. last_n([1, 2, 3], n) is"
    )
    assert (project / "stock.py").read_text() == WRONG


def test_a_change_that_breaks_another_test_is_taken_back(project: Path):
    both = {"old": "    return items[-n - 1:]\n\n\ndef first(items):\n    return items[0]", "new": "    return items[-n:]\n\n\ndef first(items):\n    return items[1]"}  # fmt: skip
    played(project, [both, RIGHT])
    assert (project / "stock.py").read_text() == WRONG.replace("-n - 1:", "-n:")


@pytest.mark.parametrize("task", ["Fix last_n.", "Which test fails?", "Add a test of last_n."])
def test_other_turns_go_the_common_way(project: Path, task: str):
    assert played(project, [], task) == [None]


@pytest.mark.parametrize(
    "text",
    ["import no_such_module\n\n\ndef test_x():\n    assert 0\n", "def test_x():\n    assert 1\n", "def ("],
)
def test_tests_that_cannot_run_or_pass_decide_nothing(project: Path, text: str):
    (project / "test_stock.py").write_text(text)
    moves = played(project, [])
    assert moves[-1] is None and len(moves) == 2


def test_what_a_test_raises_is_told_and_another_run_sees_the_changed_file(project: Path):
    (project / "stock.py").write_text("def last_n(items, n):\n    return items.no\n")
    (project / "test_stock.py").write_text(
        "from stock import last_n\n\n\ndef test_last_n():\n    last_n([1], 1)\n"
    )
    moves = played(project, [{"old": "    return items.no", "new": "    return items[-n:]"}])
    wanted = next(move for move in moves if isinstance(move, Rewrite))
    assert "last_n([1], 1) raises AttributeError" in wanted.tests[0] and "pass now" in moves[-1].text


@pytest.mark.parametrize(
    ("path", "text", "task", "first"),
    [
        ("a.go", "package a\n\nfunc (q *Queue) Push(x int) bool {\n\treturn true\n}", "Fix Push.", "func (q"),
        ("A.java", "class A {\n    boolean isEmpty() {\n        return x;\n    }\n}", "isEmpty is wrong.", "class A"),
        ("a.c", "int one(void)\n{\n    return 1;\n}\n\nint level(int turned)\n{\n    return 2;\n}", "level() must never be 2.", "int level"),
        ("a.js", "let x = 1;\n\nconst total = (a) => {\n  return 1;\n};", "total is wrong.", "const total"),
    ],
)  # fmt: skip
def test_the_function_that_is_named_is_mended_alone_and_whole(path: str, text: str, task: str, first: str):
    part = mended_part(Rewrite(task, path, (), tuple(text.split("\n")), ()))
    assert part is not None and part.lines[0].startswith(first)
    assert "\n".join(part.lines).count("{") == "\n".join(part.lines).count("}")


@pytest.mark.parametrize(
    "task", ["Add a function fix.", "Rename total to sum.", "Set A to 5.", "Write a test that fails."]
)
def test_what_tells_of_no_fault_is_not_mended(task: str):
    assert mended_part(Rewrite(task, "a.py", (), ("A = 1", "def total():", "    return 0"), ())) is None
    assert mended_part(Rewrite("It is wrong.", "a.md", (), ("A", "B"), ())) is None


def test_a_test_that_fails_tells_of_a_fault_whatever_the_words():
    lines = ("def total(x):", "    return 0")
    assert (
        mended_part(Rewrite("Make the tests green.", "a.py", (), lines, (), (), ("total(1) is 0",)))
        is not None
    )
    assert mended_part(Rewrite("Make it pretty.", "a.py", (), lines, ())) is None


def test_examples_of_the_mending_are_themselves_changes_that_may_stand():
    turns = mending("?")
    assert turns[-1].text == "?"
    for asked_, answer in zip(turns[1:-1:2], turns[2:-1:2], strict=True):
        task = asked_.text.partition("\n")[0]
        path = asked_.text.partition("Code of ")[2].partition(":\n")[0]
        old, new = (
            text.split("```\n", 1)[1].removesuffix("\n```").split("\n") for text in (asked_.text, answer.text)
        )
        wanted = Rewrite(task, path, (), tuple(old), ())
        assert fault(wanted, new) is None and edit_of(wanted, new) is not None


def test_what_is_changed_beside_what_the_note_names_is_left_as_it_was():
    lines = ("def scaled(a, b, c):", "    return a * b / c", "", "print(scaled(1, 4, n))")
    part = Rewrite("It gives me less.", "a.py", (), lines, ())
    both = [lines[0], "    return a * c / b", "", "print(scaled(1, n, 4))"]
    right = [lines[0], both[1], *lines[2:]]
    assert as_noted(part, "`a * b / c` should be `a * c / b`.", both) == right
    assert as_noted(part, "`return a * b / c` divides by the wrong one.", both) == right
    assert as_noted(part, "The wrong one is divided by.", both) == both
    assert as_noted(part, "`scaled` must be `f`.", both) == both, "it stands twice"


def test_a_function_that_is_not_there_is_none():
    assert function_part(Rewrite("", "a.py", (), ("x = 1",), ()), "f") is None


def test_what_a_test_prints_is_not_taken_for_a_report(project: Path):
    (project / "test_stock.py").write_text(
        "from stock import last_n\nprint('FAILED [1, 2]')\nprint('FAILED [\"x\", 3, []]')\n\n\n"
        "def test_last_n():\n    assert last_n([1, 2, 3], 2) == [2, 3]\n"
    )
    moves = played(project, [RIGHT])
    assert "The tests pass now." in moves[-1].text
