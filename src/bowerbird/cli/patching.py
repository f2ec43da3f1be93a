"""The dialogue of `land --patch` (UI-44).

Here: showing a hunk, reading one answer. Not here: what the answers choose (`choosing.py`).
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bowerbird.cli.choosing import HELP, Answer, Choice, Choosing, Question, questions_of
from bowerbird.cli.drawing import coloured_diff
from bowerbird.cli.exits import USAGE, CliExit
from bowerbird.cli.terminal import Terminal
from bowerbird.cli.text import harmless

_WHOLE = {
    "create": "this new file", "delete": "this deletion", "chmod": "these permissions",
    "mkdir": "this new directory", "rmdir": "the directory's deletion", "symlink": "this link",
}  # fmt: skip


def choose_hunks(terminal: Terminal, entries: Sequence[Mapping[str, Any]], diff: Mapping[str, Any]) -> Choice:
    """Ask hunk by hunk; an end of input is `q`.

    Args:
        entries: of `plan_landing`. diff: of `Branch.diff`, which has the hunks' texts.

    Raises:
        CliExit: nobody can be asked.
    """
    if not sys.stdin.isatty():
        raise CliExit(USAGE, "--patch asks for each hunk and needs a terminal; name paths instead")
    choosing = Choosing(questions_of(entries, diff))
    last = ""
    while (question := choosing.question) is not None:
        if question.path != last:
            _show_file(terminal, question)
            last = question.path
        terminal.write(coloured_diff(question.text + "\n", terminal.out) if question.text else "")
        choosing.answer(_read(terminal, question))
    return choosing.choice


def _show_file(terminal: Terminal, question: Question) -> None:
    flags = f"  [{', '.join(question.flags)}]" if question.flags else ""
    terminal.line(f"{question.op} {harmless(question.path.lstrip('/'))}{flags}", "bold")


def _read(terminal: Terminal, question: Question) -> Answer:
    place = f"({question.number}/{question.of}) " if question.of > 1 else ""
    what = "this hunk" if question.hunk else _WHOLE.get(question.op, "this change")
    while True:
        terminal.write(f"{place}Land {what} [y,n,a,d,q,?]? ")
        line = sys.stdin.readline()
        if not line:
            terminal.write("\n")
            return "q"
        answer = line.strip().lower()[:1]
        if answer in ("y", "n", "a", "d", "q"):
            return cast("Answer", answer)
        terminal.write(HELP + "\n")
