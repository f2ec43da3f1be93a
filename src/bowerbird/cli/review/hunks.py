"""`land --patch` as a conversation: one hunk after the other is shown and answered (UI-44).

Here: showing and asking. Not here: which hunks, and what answers choose (`choosing.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bowerbird.cli.review.choosing import HELP, Answer, Choice, Choosing, Question, questions_of
from bowerbird.cli.review.screen import Screen
from bowerbird.cli.terminal.drawing import coloured_diff
from bowerbird.cli.terminal.exits import USAGE, CliExit
from bowerbird.cli.terminal.text import harmless_path

_WHOLE = {
    "create": "this new file", "delete": "this deletion", "chmod": "these permissions",
    "mkdir": "this new directory", "rmdir": "the directory's deletion", "symlink": "this link",
}  # fmt: skip
LONGEST = 300  # lines that a terminal is shown unasked; beyond them
BEGINNING = 100  # so many, and how to see all
LONGEST_LINE = 2_000  # characters: a file on one line has no second one to stop at


async def choose_hunks(
    screen: Screen, entries: Sequence[Mapping[str, Any]], diff: Mapping[str, Any]
) -> Choice:
    """Ask hunk by hunk; an end of input is `q`.

    Args:
        entries: of the plan. diff: of the same paths, which has the hunks' texts.

    Raises:
        CliExit: nobody can be asked.
    """
    if not screen.can_ask:
        raise CliExit(USAGE, "--patch asks for each hunk and needs a terminal; name paths instead")
    choosing = Choosing(questions_of(entries, diff))
    last = ""
    while (question := choosing.question) is not None:
        if question.path != last:
            flags = f"  [{', '.join(question.flags)}]" if question.flags else ""
            screen.tell(f"{question.op} {harmless_path(question.path.lstrip('/'))}{flags}", "bold")
            last = question.path
        if question.text:
            _show(screen, question.text)
        choosing.answer(await _answer(screen, question))
    return choosing.choice


def _show(screen: Screen, text: str) -> None:
    shown, more = beginning(text) if screen.stream.is_terminal else (text, 0)
    screen.draw(coloured_diff(shown + "\n", screen.stream))
    if more:
        screen.note(f"… {more:,} more lines; p shows all of it in a pager")
    elif shown != text:
        screen.note("… lines are cut; p shows all of it in a pager")


def beginning(text: str) -> tuple[str, int]:
    """Return what is shown of a hunk, and how many lines that leaves out. Pure.

    Example:
        >>> beginning("@@\\n+a"), beginning("+\\n" * 400)[1]
        (('@@\\n+a', 0), 301)
    """
    lines = text.split("\n")
    shown = lines if len(lines) <= LONGEST else lines[:BEGINNING]
    cut = [line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + " …" for line in shown]
    return "\n".join(cut), len(lines) - len(shown)


async def _answer(screen: Screen, question: Question) -> Answer:
    place = f"({question.number}/{question.of}) " if question.of > 1 else ""
    what = "this hunk" if question.hunk else _WHOLE.get(question.op, "this change")
    while True:
        line = await screen.ask(f"{place}Land {what}? [y,n,a,d,p,q,?] ")
        answer = "q" if line is None else line.strip().lower()[:1]
        if answer == "p":
            text = question.text + "\n" if question.text else "there is no text to show\n"
            await screen.page(coloured_diff(text, screen.stream), text)
        elif answer in ("y", "n", "a", "d", "q"):
            return cast("Answer", answer)
        else:
            for text in HELP:
                screen.tell(text)
