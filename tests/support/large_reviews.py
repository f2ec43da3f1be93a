"""Reviews of the shapes that are hard to draw, made by an agent's own calls on a real server.

Here: what the directory holds before, what the agent calls, what the person edits since. Not here: opening the
page and judging it (`tests/web/test_large_reviews.py`, `benchmarks/web_reviews.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.fake_models import FakeModels
from support.live_server import LiveServer

CALLS_A_STEP = 25
STEPS_A_TURN = 10
Call = dict[str, Any]


@dataclass(frozen=True)
class LargeReview:
    """One review: files before, the agent's calls, and what the person wrote into the directory after them."""

    name: str
    before: dict[str, str]
    calls: list[Call]
    since: dict[str, str] = field(default_factory=dict)


def many_files(count: int) -> LargeReview:
    """So many modules of 60 lines, each changed in two places."""
    names = [f"many/package_{n // 25:02}/module_{n:04}.py" for n in range(count)]
    before = {name: _module(n, "plain") for n, name in enumerate(names)}
    return LargeReview(
        "many files", before, [_write(name, _module(n, "changed")) for n, name in enumerate(names)]
    )


def many_lines(count: int) -> LargeReview:
    """One file of so many lines, all of them changed."""

    def text(word: str) -> str:
        return "".join(f"{n},{word},{n * 7 % 1000}\n" for n in range(count))

    return LargeReview("many lines", {"long/data.csv": text("one")}, [_write("long/data.csv", text("two"))])


def long_line(size: int) -> LargeReview:
    """A minified script of one line of so many characters, one word of it changed."""
    text = "a=1;" * (size // 8) + "before()" + ";b=2" * (size // 8)
    calls = [_edit("line/app.min.js", "before()", "after()")]
    return LargeReview("long line", {"line/app.min.js": text}, calls)


def renames(count: int) -> LargeReview:
    """So many files that move to another directory, one line of each changed."""
    names = [f"module_{n:03}.py" for n in range(count)]
    calls: list[Call] = []
    for name in names:
        calls.append(
            {"name": "move_file", "input": {"src": f"/moved/old/{name}", "dst": f"/moved/new/{name}"}}
        )
        calls.append(_edit(f"moved/new/{name}", 'return "plain", value + 7', 'return "changed", value + 7'))
    before = {f"moved/old/{name}": _module(n, "plain") for n, name in enumerate(names)}
    return LargeReview("renames", before, calls)


def conflicts(count: int) -> LargeReview:
    """So many files in which the agent and the person changed the same line, and each another one."""
    names = [f"both/notes_{n:02}.txt" for n in range(count)]
    text = "".join(f"line {n}\n" for n in range(1, 61))
    theirs = text.replace("line 5\n", "agent 5\n").replace("line 40\n", "agent 40\n")
    mine = text.replace("line 5\n", "mine 5\n").replace("line 50\n", "mine 50\n")
    return LargeReview(
        "conflicts",
        dict.fromkeys(names, text),
        [_write(name, theirs) for name in names],
        dict.fromkeys(names, mine),
    )


async def made(server: LiveServer, fake: FakeModels, review: LargeReview) -> str:
    """Have it made in `server`'s own directory; the conversation's id."""
    place = Path(server.context.settings.workspace)
    _put(place, review.before)
    conversation = await server.conversation(title=f"Review: {review.name}")
    calls = [one for call in review.calls for one in _read_first(call, review.before)]
    steps = [calls[at : at + CALLS_A_STEP] for at in range(0, len(calls), CALLS_A_STEP)]
    for at in range(0, len(steps), STEPS_A_TURN):
        fake.answer(_turn(steps[at : at + STEPS_A_TURN]))
        done = await server.http.post(
            f"/api/conversations/{conversation}/messages",
            params={"wait": 600},
            json={"content": "Go on."},
            timeout=700,
        )
        done.raise_for_status()
    _put(place, review.since)
    return conversation


def _turn(steps: list[list[Call]]) -> Callable[[dict[str, Any], int], dict[str, Any]]:
    """Answers of one turn; a request without tools asks for a summary of the history, and takes no step."""
    usage = {"input": 100, "output": 20}  # or the budget of a turn ends it
    left = iter(steps)

    def answer(body: dict[str, Any], _number: int) -> dict[str, Any]:
        calls = next(left, None) if body.get("tools") else None
        return {"tools": calls, "usage": usage} if calls else {"text": "Done.", "usage": usage}

    return answer


def _put(place: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)


def _read_first(call: Call, before: dict[str, str]) -> list[Call]:
    """A call, behind one that reads what it writes over."""
    path = call["input"].get("path", "")
    over = call["name"] == "write_file" and path.removeprefix("/") in before
    return [{"name": "read_file", "input": {"path": path}}, call] if over else [call]


def _write(path: str, content: str) -> Call:
    return {"name": "write_file", "input": {"path": f"/{path}", "content": content}}


def _edit(path: str, old: str, new: str) -> Call:
    return {"name": "edit_file", "input": {"path": f"/{path}", "old": old, "new": new}}


def _module(number: int, word: str) -> str:
    """A module of about 60 lines; every tenth function says `word`."""
    parts = [f'"""Module {number}."""\n']
    for at in range(20):
        said = word if at % 10 == 5 else "plain"
        parts.append(f'\ndef function_{at}(value):\n    return "{said}", value + {at}\n')
    return "".join(parts)
