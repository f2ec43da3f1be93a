"""Turns that ask for a change: where the small model looks, what it rewrites, what may stand, what is said (D-23)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.local_talk import SPECS, asked, called

from bowerbird.core.messages import Message
from bowerbird.models.local.changing import (
    MOST_CALLS,
    NEEDS,
    SCOUTED_LINES,
    Call,
    Calls,
    Choose,
    Say,
    next_move,
    other_file,
    reading_of,
)
from bowerbird.models.local.grammar import StepGrammar
from bowerbird.models.local.guards import fault
from bowerbird.models.local.rewrite import Rewrite, edit_of, narrowed, question
from bowerbird.models.local.situation import Situation, read_situation
from bowerbird.models.local.sorting import sorted_by_words

TASK = "Set the port to 9000."
FILES = "Files:\nREADME.md\napp/server.py\nlong.txt\napp/client.py"
MOVE = "Move the port to 9000."
SERVER = 'HOST = "localhost"\nPORT = 8000\n\n\ndef run():\n    return HOST, PORT\n'
LOOKED = called(
    "search_files",
    {"pattern": "port"},
    "app/server.py:2: PORT = 8000",
    data={"matches": [{"path": "/app/server.py", "line": 2, "text": "PORT = 8000"}]},
)
READ = called(
    "read_file", {"path": "app/server.py", "offset": 1}, SERVER, data={"content": SERVER, "next_offset": None}
)


def situation(*messages: Message, task: str = TASK) -> Situation:
    return read_situation(asked(*messages, task=task, system=(FILES,)))


def move(*messages: Message, task: str = TASK) -> Any:
    return next_move(situation(*messages, task=task), frozenset(tool.name for tool in SPECS))


def rewriting(text: str, *, task: str = TASK, path: str = "app/server.py") -> Rewrite:
    return Rewrite(task, path, (), tuple(text.rstrip("\n").split("\n")), ())


def test_it_searches_for_the_tasks_words_then_chooses_a_file_then_rewrites_it_then_says_what_it_did():
    first = move()
    assert isinstance(first, Call) and first.tool == "search_files" and "port" in first.input["pattern"]
    assert move(*LOOKED) == Call("read_file", {"path": "app/server.py", "offset": 1, "limit": SCOUTED_LINES})
    wanted = move(*LOOKED, *READ, task=MOVE)
    assert isinstance(wanted, Rewrite) and wanted.whole and MOVE in question(wanted)
    edit = edit_of(wanted, SERVER.replace("8000", "9000").rstrip("\n").split("\n"))
    assert edit == {"path": "app/server.py", "old": "PORT = 8000", "new": "PORT = 9000"}
    end = move(*LOOKED, *READ, *called("edit_file", edit, "Edited."))
    assert end == Say("In app/server.py I changed `PORT = 8000` to `PORT = 9000`.")


def found(**lines: str) -> tuple[Message, Message]:
    """A search's call and result: the text found in `app/<name>.py`, or in `README.md`."""
    paths = {name: "/README.md" if name == "README" else f"/app/{name}.py" for name in lines}
    rows = [{"path": paths[name], "line": 1, "text": text} for name, text in lines.items()]
    return called("search_files", {"pattern": "port"}, "…", data={"matches": rows})


def test_which_of_several_files_is_asked_with_what_was_found_and_nothing_else():
    choice = move(*found(server="port", client="port"), task=MOVE)
    assert isinstance(choice, Choose) and set(choice.paths) >= {"app/server.py", "README.md"}
    assert choice.asked.startswith("Files:\n") and f"Task: {MOVE}\nWhich line" in choice.asked
    assert "Lines:\napp/server.py:1: port\napp/client.py:1: port\n" in choice.asked


@pytest.mark.parametrize(("task", "lines", "path"), [
    (TASK, {"client": "port = read()", "server": "PORT = 8000", "README": "The port is 8000."}, "app/server.py"),
    ("Let it retry at most 5 times.", {"client": "at most", "server": "maxRetries = 3"}, "app/server.py"),
])  # fmt: skip
def test_a_file_is_not_asked_for_where_its_lines_hold_clearly_more_of_the_task(
    task: str, lines: dict[str, str], path: str
):
    picked = move(*found(**lines), task=task)
    assert isinstance(picked, Calls) and picked.calls[0].input["path"] == path, "the likeliest first"
    text = lines["server"]
    whole = [
        called("read_file", {"path": at}, held, data={"content": held, "next_offset": None})
        for at, held in (("app/client.py", lines["client"]), (path, text))
    ]
    edit = move(*found(**lines), *(m for pair in whole for m in pair), task=task)
    assert isinstance(edit, Call) and (edit.tool, edit.input["old"]) == ("edit_file", text)


def test_a_test_that_fails_is_not_what_is_changed():
    files = "Files:\ntests/test_stock.py\nstock.py"
    rows = [{"path": "/tests/test_stock.py", "line": 3, "text": "def test_last_n(): last_n"}]
    looked = called("search_files", {"pattern": "last"}, "…", data={"matches": rows})
    for task, tests in (("The test of last_n fails, fix it.", False), ("Add a test of last_n.", True)):
        request = read_situation(asked(*looked, task=task, system=(files,)))
        picked = next_move(request, frozenset(tool.name for tool in SPECS))
        paths = picked.paths if isinstance(picked, Choose) else (picked.input["path"],)  # type: ignore[union-attr]
        assert ("tests/test_stock.py" in paths) is tests


def test_a_turn_that_finds_nothing_to_change_ends_and_says_so():
    looked = [
        m for n in range(MOST_CALLS) for m in called("read_file", {"path": "no.py"}, f"no {n}", is_error=True)
    ]
    assert move(*looked) == Say("I changed nothing: I did not find what is to be changed.")


@pytest.mark.parametrize(("task", "new", "why"), [
    ("Remove the line that prints DEBUG.", "def last_n(n):\n    return n", "not one line is removed"),
    ("Remove the debug output.", 'def last_n(n):\n    return n\n\n\ndef low(n):\n    print("DEBUG", n)', "DEBUG"),
    ("last_n is wrong, fix it.", "def last_n(n):\n    return n\n\n\ndef low(n):\n    return n < 5", "near last_n"),
])  # fmt: skip
def test_a_rewriting_that_misses_what_the_task_names_is_none(task: str, new: str, why: str):
    old = 'def last_n(n):\n    return n\n\n\ndef low(n):\n    print("DEBUG", n)\n    return n < 5'
    found = fault(rewriting(old, task=task), new.split("\n"))
    assert found is not None and why.lower() in found.lower()
    right = {
        "DEBUG": old.replace('    print("DEBUG", n)\n', ""),
        "near last_n": old.replace("return n\n", "return n + 1\n"),
    }
    assert fault(rewriting(old, task=task), right.get(why, right["DEBUG"]).split("\n")) is None


def test_the_second_try_is_at_the_part_that_is_named():
    body = "\n".join(f"def f{n}_x(a):\n    b = a\n    return b\n\n" for n in range(8))
    part = narrowed(rewriting(body, task="Let f5_x return a + 1."))
    assert part is not None and part.lines == ("def f5_x(a):", "    b = a", "    return b")
    assert (*part.before, *part.lines, *part.after) == tuple(body.rstrip("\n").split("\n"))
    assert narrowed(rewriting(SERVER)) is None or len(narrowed(rewriting(SERVER)).lines) < 4


def test_after_a_file_that_could_not_be_changed_another_is_asked_for_once():
    one = situation(*called("search_files", {"pattern": "port"}, "…", data={"matches": [
        {"path": "/app/server.py", "line": 2, "text": "PORT = 8000"}]}), *READ, task=MOVE)  # fmt: skip
    other = other_file(one, "app/server.py")
    assert other is not None and "app/server.py" not in other.paths and "PORT" not in other.asked
    again = situation(
        *LOOKED, *READ, *called("read_file", {"path": "README.md", "offset": 1}, "x"), task=MOVE
    )
    assert other_file(again, "README.md") is None
    assert other_file(situation(*READ), "app/server.py") is None, "the task named it"


def test_a_change_that_was_refused_is_not_said_to_be_made():
    edit = {"path": "app/server.py", "old": "PORT = 8000", "new": "PORT = 9000"}
    end = move(*LOOKED, *READ, *called("edit_file", edit, "the user said no\nmore", is_error=True))
    assert end == Say("I could not change app/server.py: the user said no")


def test_a_file_that_the_task_names_is_read_at_once():
    assert move(task="Set the port in app/server.py to 9000.") == Call(
        "read_file", {"path": "app/server.py", "offset": 1}
    )


def test_a_new_file_is_made_only_when_the_task_asks_for_one():
    made = move(task="Create a file notes/todo.txt that says hello.")
    assert isinstance(made, StepGrammar)
    assert made.read('{"tool": "write_file", "path": "notes/todo.txt"}')
    assert made.read('{"tool": "write_file", "path": "app/server.pyjson"}') is None
    assert not isinstance(move(task="Change the file that holds the port."), StepGrammar)
    for task, path in (
        ("Create a .gitignore with out/.", ".gitignore"),
        ("Add a Dockerfile for it.", "Dockerfile"),
    ):
        made = move(task=task)
        assert isinstance(made, StepGrammar) and made.read(json.dumps({"tool": "write_file", "path": path}))


@pytest.mark.parametrize("task", ["Which port is used?", "How many lines does long.txt have?", "Say hello."])
def test_other_turns_go_the_common_way(task: str):
    assert move(task=task) is None
    assert next_move(situation(), NEEDS - {"edit_file"}) is None
    assert next_move(Situation(task=TASK), NEEDS) is None


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("The test of last_n fails, fix it.", True),
        ("Please add mango to the list", True),
        ("Count the words; use Python.", False),
        ("Run the tests and say whether they pass.", False),
        ("Should I set it to 5, or remove it?", False),
        ("Could you let the lamp burn until 9?", True),
        ("Make bread is too long to type. Can you add a target b?", True),
        ("Would you mind renaming f to g?", True),
        ("Could you tell me which port is set?", False),
        ("Can it be changed?", False),
        ("The first hour is to be free.", True),
        ("The picture has no border. Give it one.", True),
        ("Give me the sum of the prices.", False),
        ("Write out the address of the page.", False),
        ("Append a row to the table.", True),
        ("Children now pay 6 euros.", True),
        ("A session should last 45 minutes.", True),
        ("to_feet gives wrong results: 1 metre must be 3.28 feet.", True),
        ("Tell me which tests must pass.", False),
        ("Which ports must be open, and why.", False),
        ("I must know what the port is.", False),
        ("List the files that should be ignored.", False),
        ("The test of the change we hand back is red. Make it green.", True),
        ("The courier gives up after three attempts. Let it try five times.", True),
        ("When I cook for more people it gives me less. It should be the other way round!", True),
        ("Odile has left us, take her out of the hosts.", True),
        ("leave the raisins out of the curry", True),
        ("League prints a line whenever a team is added. I don't want that any more.", True),
        ("The jazz moves to 22:00.", True),
        ("We accept parcels up to 31.5 kg from now on", True),
        ("Only use 3 onions for the soup", True),
        ("level() becomes too large when the knob is turned too far. Don't let it.", True),
        ("When is the shop open now", False),
        ("What is the limit? It should be in the settings.", False),
        ("Explain the limit. It should be short.", False),
        ("Count the rows. The cancelled ones should not be counted.", False),
        ("Sum the prices, leave the returns out.", False),
        ("Read data.csv. Make it a short summary.", False),
    ],
)
def test_a_clause_may_ask_for_the_change(task: str, expected: bool):
    assert bool(sorted_by_words(task)) is expected


def test_a_long_file_is_read_and_rewritten_around_what_was_found():
    lines = [f"line {n}" if n % 9 else "" for n in range(1, 151)]
    lines[119] = "the port is 8000"
    text = "\n".join(lines) + "\n"
    found = called(
        "search_files", {"pattern": "port"}, "x", data={"matches": [{"path": "/long.txt", "line": 420}]}
    )
    assert reading_of("long.txt", situation(*found)) == {"path": "long.txt", "offset": 345, "limit": 150}
    read = called("read_file", {"path": "long.txt"}, text, data={"content": text, "next_offset": None})
    wanted = move(*found, *read, task=MOVE)
    assert isinstance(wanted, Rewrite) and not wanted.whole
    assert "the port is 8000" in wanted.lines and len(wanted.lines) <= 40
    assert [*wanted.before, *wanted.lines, *wanted.after] == lines


@pytest.mark.parametrize(
    ("task", "old", "new", "why"),
    [
        (TASK, "A = 1", "A = 1", "it changes nothing"),
        (TASK, "def f():\n    return 1", "def f(:\n    return 2", "it does not parse"),
        (TASK, "a = 1\nb = 2\nc = 3\nd = 4", "a = 9", "lines are lost"),
        ("Remove b.", "a = 1\nb = 2\nc = 3", "a = 1\nc = 3", None),
        (TASK, "\n".join(f"a{n} = {n}" for n in range(30)), "x = 1\n" * 30, "it changes far more"),
        (TASK, "def f(:\n    pass", "def f(:\n    return 1", None),
    ],
)
def test_what_may_not_stand_is_refused(task: str, old: str, new: str, why: str | None):
    said = fault(rewriting(old, task=task, path="a.py"), new.rstrip("\n").split("\n"))
    assert said is None if why is None else (said or "").startswith(why)


_LINES = st.lists(st.sampled_from(["a", "b", "  a", "", "x = 1"]), min_size=1, max_size=12)


@given(_LINES, _LINES, _LINES, _LINES)
def test_the_edit_makes_exactly_the_new_text(
    before: list[str], old: list[str], new: list[str], after: list[str]
):
    """All else stays byte for byte, also where lines occur several times or go away."""
    wanted = Rewrite(TASK, "f.txt", tuple(before), tuple(old), tuple(after))
    if old == new:
        return
    edit = edit_of(wanted, new)
    text = "\n".join([*before, *old, *after])
    if edit is None:
        return  # the place cannot be told apart: another way is taken
    assert text.count(edit["old"]) == 1
    assert text.replace(edit["old"], edit["new"]) == "\n".join([*before, *new, *after])


def test_the_answer_names_at_most_three_places_and_shortens_long_lines():
    old = "\n".join(f"value_{n} = 1\nkeep_{n} = 0" for n in range(5))
    edit = {"path": "app/server.py", "old": old, "new": old.replace("= 1", "= " + "2" * 200)}
    end = move(*LOOKED, *READ, *called("edit_file", edit, "Edited."))
    assert isinstance(end, Say) and "and changed 2 more places" in end.text and len(end.text) < 800


def test_examples_of_the_rewriting_are_themselves_changes_that_may_stand():
    from bowerbird.models.local.prompt import rewriting as conversation

    turns = conversation("?")
    assert turns[-1].text == "?" and [turn.role for turn in turns[:3]] == ["system", "user", "assistant"]
    for asked_, answer in zip(turns[1:-1:2], turns[2:-1:2], strict=True):
        task, _, shown = asked_.text.partition("\n")
        path, body = shown.removeprefix("File ").split(":\n", 1)
        old, new = (text.strip("`").strip("\n") for text in (body, answer.text))
        assert fault(rewriting(old, task=task, path=path), new.split("\n")) is None
        if Path(path).suffix == ".json":
            json.loads(new)
