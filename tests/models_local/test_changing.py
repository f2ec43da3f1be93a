"""What the embedded agent says it did is what it did: each turn on a real branch, with a scripted engine."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_engine import scripted

from bowerbird.api import Agent
from bowerbird.core.messages import user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.models.local.choices import EXISTING, NEW
from bowerbird.models.local.grammar import SOME_TEXT
from bowerbird.models.local.prompt import REWRITE, beginning
from bowerbird.models.local.rewriting import LOST, Rewrite, around, edit_of, excerpt, fault
from bowerbird.models.protocol import complete

CODE = "def last_n(items, n):\n    return items[-n - 1:]\n"
TESTS = (
    "import unittest\n\nfrom stock import last_n\n\n\nclass Stock(unittest.TestCase):\n"
    "    def test_last_n(self):\n        self.assertEqual(last_n([1, 2, 3], 2), [2, 3])\n"
)
WRONG, RIGHT = "    return items[n:]", "    return items[-n:]"
NEVER = "    while True:\n        pass"
COMMAND = '{"tool": "bash", "command": '


def sorted_as(kind: str) -> str:
    return json.dumps({"choice": kind})


def file_chosen(path: str) -> tuple[str, ...]:
    return sorted_as("change"), sorted_as(EXISTING), sorted_as(path)


def new_file(path: str) -> tuple[str, ...]:
    return sorted_as("change"), sorted_as(NEW), json.dumps({"tool": "file", "path": path})


def fenced(text: str) -> str:
    return f"```\n{text}\n```"


def function(body: str) -> str:
    return fenced(f"def last_n(items, n):\n{body}")


async def turn(project: Path, task: str, *replies: str) -> tuple[str, dict[str, str], int]:
    """Return the answer, the files of the branch afterwards, and how many tokens the model wrote."""
    model, engine = scripted(*replies)
    agent: Agent[Any] = Agent(workdir=project, data_dir=":memory:", language_model=model, max_iterations=20)
    with agent:
        result = await agent.run(task)
        seen = project.parent / f"seen-{len(list(project.parent.iterdir()))}"
        agent.branch.export(seen, "dir")
    assert not engine.replies, "the model was asked less than the test expects"
    files = {str(p.relative_to(seen)): p.read_text() for p in seen.rglob("*") if p.is_file()}
    return result.text, files, result.usage.output_tokens


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    root = tmp_path / "settings"
    root.mkdir()
    (root / "app.py").write_text("PORT = 8000\nDEBUG = False\n")
    (root / "notes.txt").write_text("The port is told here.\n")
    return root


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    root = tmp_path / "stock"
    root.mkdir()
    (root / "stock.py").write_text(CODE)
    (root / "test_stock.py").write_text(TESTS)
    return root


async def test_the_model_sorts_chooses_and_writes_and_the_answer_is_made_from_the_edit(settings: Path):
    text, files, tokens = await turn(
        settings, "Set the port to 9000.", *file_chosen("app.py"),
        fenced("PORT = 9000\nDEBUG = False"),
    )  # fmt: skip
    assert text == "In app.py I changed `PORT = 8000` to `PORT = 9000`."
    assert files["app.py"] == "PORT = 9000\nDEBUG = False\n" and tokens > 0


@pytest.mark.parametrize(
    "task", ["Set the port to 9000.", "Never enable debug.", "Remove DEBUG.", "Rename PORT to port."]
)
async def test_no_word_of_a_request_makes_a_change_that_the_model_did_not_sort_as_one(
    settings: Path, task: str
):
    text, files, _ = await turn(
        settings, task, sorted_as("question"), '{"tool": "read_file", "path": "app.py"}',
        '{"seen": "it", "tool": "final_answer", "answer": "I did it."}',
    )  # fmt: skip
    assert files["app.py"] == (settings / "app.py").read_text()
    assert text == "I did it.\n\n(No file was changed and no command was run for this answer.)"


async def test_after_three_rewritings_that_cannot_be_right_nothing_is_changed_and_that_is_said(
    settings: Path,
):
    text, files, _ = await turn(
        settings, "Set the port to 9000.", *file_chosen("app.py"),
        fenced("PORT = 8000\nDEBUG = False"), fenced("PORT = = 9\nDEBUG = False"), "no block at all",
    )  # fmt: skip
    assert text == "I changed nothing. My rewriting of app.py cannot be right: it did not end."
    assert files["app.py"] == (settings / "app.py").read_text()


@pytest.mark.parametrize(("answer", "stands"), [("yes", True), ("no", False)])
async def test_lines_go_only_where_the_model_says_that_something_is_removed(
    settings: Path, answer: str, stands: bool
):
    rest = [] if stands else [fenced("PORT = 8000"), sorted_as("no")] * 2
    text, files, _ = await turn(
        settings, "Remove DEBUG.", *file_chosen("app.py"), fenced("PORT = 8000"),
        sorted_as(answer), *rest,
    )  # fmt: skip
    assert (files["app.py"] == "PORT = 8000\n") is stands
    assert text.startswith("In app.py I removed" if stands else "I changed nothing.")


async def test_a_file_is_created_only_beside_those_that_exist(settings: Path):
    text, files, _ = await turn(
        settings, "Create VERSION with 0.4.0.", *new_file("VERSION"),
        fenced("0.4.0"),
    )  # fmt: skip
    assert text == "I wrote VERSION, 1 line." and files["VERSION"] == "0.4.0\n"
    text, files, _ = await turn(settings, "Create app.py.", *new_file("app.py"))
    assert text.startswith("I changed nothing") and files["app.py"] == (settings / "app.py").read_text()


async def test_a_change_of_code_is_told_with_what_the_tests_say_of_it(stock: Path):
    task = "The test of last_n fails, fix it."
    text, files, _ = await turn(stock, task, *file_chosen("stock.py"), sorted_as("yes"), function(RIGHT))
    assert text.startswith("In stock.py I changed `return items[-n - 1:]` to `return items[-n:]`.")
    assert "The project's tests pass: " in text and RIGHT in files["stock.py"]


async def test_a_change_that_the_tests_refuse_is_taken_back_and_tried_once_more(stock: Path):
    (stock / "stock.py").write_text(f"def last_n(items, n):\n{RIGHT}\n")
    text, files, _ = await turn(
        stock, "Write last_n shorter.", *file_chosen("stock.py"), function(WRONG),
        function("    return items[-n:] if n else []"),
    )  # fmt: skip
    assert "The project's tests pass: " in text and "if n else []" in files["stock.py"]


@pytest.mark.parametrize("second", [WRONG + "  # again", "    return None"])
async def test_nothing_of_two_failed_tries_stays_on_the_branch(stock: Path, second: str):
    (stock / "stock.py").write_text(f"def last_n(items, n):\n{RIGHT}\n")
    text, files, _ = await turn(
        stock, "Write last_n shorter.", *file_chosen("stock.py"), function(WRONG),
        function(second),
    )  # fmt: skip
    assert text.startswith("I changed nothing: after each of 2 tries the project's tests failed:")
    assert files["stock.py"] == (stock / "stock.py").read_text()


@pytest.mark.parametrize(("mends", "stands"), [("no", True), ("yes", False)])
async def test_where_tests_failed_before_the_model_says_whether_they_had_to_pass(
    stock: Path, mends: str, stands: bool
):
    once = [sorted_as(mends), function(WRONG), sorted_as(mends)]
    text, files, _ = await turn(
        stock,
        "Change it.",
        *file_chosen("stock.py"),
        *once,
        *([] if stands else once[1:]),
    )
    assert (WRONG in files["stock.py"]) is stands
    assert ("failed before, and still fail" in text) is stands


@pytest.mark.parametrize(("body", "said"), [(RIGHT, "they pass"), (WRONG, "they do not pass")])
async def test_whether_the_tests_pass_is_said_from_the_exit_code_of_a_run(stock: Path, body: str, said: str):
    (stock / "stock.py").write_text(f"def last_n(items, n):\n{body}\n")
    task = "Run the tests and tell me whether they pass."
    text, _, tokens = await turn(stock, task, sorted_as("command"), '{"tool": "run_tests"}')
    assert (
        text.startswith(f"I ran the project's tests: exit code {int(body == WRONG)}, {said}.") and tokens > 0
    )


async def test_tests_that_no_command_ran_are_not_said_to_pass(stock: Path):
    text, _, _ = await turn(
        stock, "Run the tests and tell me whether they pass.", sorted_as("question"),
        '{"tool": "read_file", "path": "test_stock.py"}',
        '{"seen": "it", "tool": "final_answer", "answer": "The tests passed."}',
    )  # fmt: skip
    assert text.endswith("(No file was changed and no command was run for this answer.)")


async def test_a_command_is_told_with_its_exit_code_and_the_end_of_its_output(settings: Path):
    text, _, _ = await turn(settings, "Look.", sorted_as("command"), f'{COMMAND}"echo OK; exit 3"}}')
    assert text == "I ran `echo OK; exit 3`: exit code 3. OK"


async def test_a_program_that_is_not_there_gives_the_model_one_more_try(settings: Path):
    text, _, _ = await turn(
        settings, "Lint it.", sorted_as("command"), f'{COMMAND}"no-such-linter"}}', f'{COMMAND}"echo fine"}}'
    )
    assert text == "I ran `echo fine`: exit code 0. fine"


# ---------------------------------------------------------------- lines and guards


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("A = 1", "A = 1", "it changes nothing"),
        ("def f():\n    return 1", "def f(:\n    return 2", "it does not parse"),
        ("a = 1\nb = 2\nc = 3", "a = 9\nc = 3", LOST),
        ("\n".join(f"a{n} = {n}" for n in range(30)), "x = 1\n" * 30, "it changes far more"),
        ("def f(:\n    pass", "def f(:\n    return 1", None),
    ],
)
def test_what_may_not_stand_is_refused(old: str, new: str, why: str | None):
    said = fault(Rewrite("Do it.", "a.py", (), tuple(old.split("\n")), ()), new.rstrip("\n").split("\n"))
    assert said is None if why is None else (said or "").startswith(why)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.yaml", "port: 80\nb:\n  - c", "port: 9000\nb: [c"),
        ("a.yaml", "a: 1", "[0, []]: x"),
        ("a.js", "let port = f(80);", "let port = f(9000;"),
        ("a.toml", "a = 1", "a ="),
    ],
)
def test_what_does_not_parse_may_not_stand(path: str, old: str, new: str):
    said = fault(Rewrite("Do it.", path, (), tuple(old.split("\n")), ()), new.split("\n"))
    assert said is not None and said.startswith("it does not parse") and "\n" not in said


_LINES = st.lists(st.sampled_from(["a", "b", "  a", "", "x = 1"]), min_size=1, max_size=12)


@given(_LINES, _LINES, _LINES, _LINES)
def test_the_edit_makes_exactly_the_new_text_and_can_be_taken_back(
    before: list[str], old: list[str], new: list[str], after: list[str]
):
    """All else stays byte for byte, also where lines occur several times or go away."""
    wanted = Rewrite("Do it.", "f.txt", tuple(before), tuple(old), tuple(after))
    edit = edit_of(wanted, new) if old != new else None
    if edit is None:
        return  # the place cannot be told apart: nothing is changed
    text = "\n".join([*before, *old, *after])
    made = "\n".join([*before, *new, *after])
    assert text.count(edit["old"]) == 1 and text.replace(edit["old"], edit["new"]) == made
    assert made.count(edit["new"]) == 1 and made.replace(edit["new"], edit["old"]) == text


def test_a_long_file_is_rewritten_around_the_line_that_shares_most_with_the_task():
    lines = [f"line {n}" if n % 9 else "" for n in range(1, 151)]
    lines[119] = "the port is 8000"
    wanted = excerpt("Set the port to 9000.", "long.txt", lines, (), "", 0)
    assert "the port is 8000" in wanted.lines and len(wanted.lines) <= 40
    assert [*wanted.before, *wanted.lines, *wanted.after] == lines


def test_the_part_around_a_line_is_its_function():
    lines = "A = 1\n\n\ndef f(a):\n    b = a\n    return b\n\n\ndef g():\n    return 2".split("\n")
    begin, end = around(lines, 4)
    assert [line for line in lines[begin:end] if line] == ["def f(a):", "    b = a", "    return b"] or (
        "def f(a):" in lines[begin:end]
    )


def test_examples_of_the_rewriting_are_themselves_changes_that_may_stand():
    turns = beginning(["read_file"])[1:]
    assert len(turns) == 6
    for asked_, answer in zip(turns[::2], turns[1::2], strict=True):
        task, _, shown = asked_.text.removesuffix(f"\n{REWRITE}").partition("\n")
        path, body = shown.removeprefix("File ").split(":\n", 1)
        old, new = (text.strip("`").strip("\n").split("\n") for text in (body, answer.text))
        assert fault(Rewrite(task, path, (), tuple(old), ()), new) in (None, LOST)


# ---------------------------------------------------------------- what is evaluated


async def test_all_that_the_model_is_asked_in_a_turn_begins_alike(stock: Path):
    """What begins alike is evaluated once, and kept for the next process."""
    model, engine = scripted(*file_chosen("stock.py"), sorted_as("yes"), function(RIGHT))
    with Agent(workdir=stock, data_dir=":memory:", language_model=model) as agent:
        await agent.run("The test of last_n fails, fix it.")
    (kept,) = {json.dumps(asked.beginnings[0]) for asked in engine.asked}
    assert len(engine.asked) == 5
    assert all(list(asked.messages)[: len(json.loads(kept))] == json.loads(kept) for asked in engine.asked)


async def test_a_look_up_that_finds_its_words_everywhere_leaves_the_window_to_the_task(settings: Path):
    """Its result was so long that the turn was summed up at once, again and again, and ended with no answer."""
    rows = "".join(f"{n},the port of call number {n},Lisbon\n" for n in range(3_000))
    (settings / "calls.csv").write_text(rows)
    for n in range(40):
        (settings / f"part{n}.py").write_text("".join(f"port_{m} = {m}  # the port\n" for m in range(40)))
    text, _, _ = await turn(
        settings, "Which port is used for the call?", sorted_as("question"),
        '{"tool": "read_file", "path": "app.py"}',
        '{"seen": "it", "tool": "final_answer", "answer": "8000"}',
    )  # fmt: skip
    assert text.startswith("8000")


async def test_an_answer_without_tools_is_never_empty():
    model, engine = scripted("Hello.")
    await complete(model, ModelRequest((user_text("Hi"),)))
    assert engine.asked[0].grammar == SOME_TEXT
