"""A name of code is renamed in every file that holds it, by search and without the model (D-23)."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from support.local_talk import SPECS, asked, called

from bowerbird.core.messages import Message, ToolResultBlock
from bowerbird.models.local.changing import Call, Say, next_move
from bowerbird.models.local.renaming import Renaming, renaming_in
from bowerbird.models.local.situation import REPLACED, read_situation
from bowerbird.models.local.task_words import new_path

TASK = "Rename the function full to is_full, also where it is called."
FILES = {
    "tanks.py": 'def full(tank):\n    """Whether it is full."""\n    return tank > 9  # full',
    "main.py": 'from tanks import full\n\nprint("full", f"{full(3)} full", full(2))',
    "README.md": "Says when a tank is full.",
}
RENAMED = {
    "tanks.py": 'def is_full(tank):\n    """Whether it is full."""\n    return tank > 9  # full',
    "main.py": 'from tanks import is_full\n\nprint("full", f"{is_full(3)} full", is_full(2))',
    "README.md": "Says when a tank is full.",
}


def walked(task: str, files: Mapping[str, str], *, kept: int = 9) -> tuple[dict[str, str], Any]:
    """Return the files after every call of the turn was done, and what came then.

    Args:
        task: what is asked for.
        files: text by path.
        kept: of how many calls the results are still sent.
    """
    files, told = dict(files), list[Message]()
    names, listed = frozenset(tool.name for tool in SPECS), "\n".join(("Files:", *files))
    while True:
        assert len(told) < 80
        sent = [*map(forgotten, told[: -2 * kept]), *told[-2 * kept :]]
        move = next_move(read_situation(asked(*sent, task=task, system=(listed,))), names)
        if not isinstance(move, Call):
            return files, move
        path = str(move.input.get("path", ""))
        data: dict[str, Any] = {}
        if move.tool == "search_files":
            data = {"matches": [{"path": f"/{name}", "line": 1, "text": ""} for name in files]}
        elif move.tool == "read_file":
            data = {"content": files[path], "next_offset": None}
        else:
            assert files[path].count(move.input["old"]) == 1
            files[path] = files[path].replace(move.input["old"], move.input["new"])
        told += called(move.tool, move.input, "done", data=data)


def forgotten(message: Message) -> Message:
    """Return a message as the agent sends it once its result was left out."""
    blocks = [
        msgspec.structs.replace(block, content=f"{REPLACED}it]", data=None)
        if isinstance(block, ToolResultBlock)
        else block
        for block in message.content
    ]
    return msgspec.structs.replace(message, content=tuple(blocks))


@pytest.mark.parametrize("kept", [1, 2, 9])
def test_a_function_is_renamed_where_it_is_made_and_where_it_is_called_and_not_in_texts(kept: int):
    files, said = walked(TASK, FILES, kept=kept)
    assert files == RENAMED
    assert said == Say("I renamed `full` to `is_full` in tanks.py and main.py.")


def test_a_name_that_is_no_word_is_renamed_in_texts_too():
    named = {"a.js": "// sumUp adds\nsumUp(1); resumUp()", "README.md": "Call `sumUp`."}
    files, _ = walked("Please rename the method `sumUp()` to `total`.", named)
    assert files == {"a.js": "// total adds\ntotal(1); resumUp()", "README.md": "Call `total`."}


def test_what_would_not_parse_any_more_is_left_to_the_common_way():
    files, said = walked("Rename the function full to class", FILES)
    assert files == FILES and not isinstance(said, Say)


@pytest.mark.parametrize(
    "task",
    ["Rename the heading Menu to Offers.", "Rename the file a.py to b.py", "Rename the function f to f."],
)
def test_other_renamings_go_the_common_way(task: str):
    assert renaming_in(task) is None


def test_a_renaming_that_cannot_be_finished_says_so():
    files, said = walked("Rename the function full to if", {"a.sh": "full", "b.py": "full = 1"})
    assert files == {"a.sh": "if", "b.py": "full = 1"}
    assert said == Say("I renamed `full` to `if` in a.sh only; other files still hold the old name.")


def test_long_texts_of_python_stay():
    old = ["def full():", '    """Says whether', "    full or not.", '    """', "    return full"]
    assert Renaming("full", "whole").lines(old) == ["def whole():", *old[1:4], "    return whole"]


@pytest.mark.parametrize(
    ("task", "made"),
    [
        ("Please write scripts/newest.sh, which prints the newest entry of log.txt.", "scripts/newest.sh"),
        ("Create notes/todo.md with two points.", "notes/todo.md"),
        ("Add seeds.html to the menu.", None),
        ("Make log.txt shorter.", None),
        ("Put a link into log.txt that leads to seeds.html.", None),
    ],
)
def test_a_file_that_is_to_be_made_need_not_be_called_a_file(task: str, made: str | None):
    assert new_path(task, ("log.txt", "a.py")) == made
