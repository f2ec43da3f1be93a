"""`land --patch`: which hunks are asked for, and what the answers choose. Pure.

Here: questions and answers as values. Not here: reading keys, drawing, landing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from bowerbird.cli.review.marking import grade_of

Answer = Literal["y", "n", "a", "d", "q", "?"]
HELP = (
    "y  land this",
    "n  do not land this",
    "a  land this and the rest of this file",
    "d  land neither this nor the rest of this file",
    "p  show all of this, in a pager where it is long",
    "q  ask no more; land what was chosen",
    "?  this help",
)


class Question(msgspec.Struct, frozen=True):
    """One hunk, or a whole change that has no hunks (binary, mode, deletion, link).

    Attributes:
        path: virtual path. op: what happens to it. hunk: its id, None for the whole change.
        text: what is shown. number, of: place within its file, from 1.
        flags: why this path is marked. needs_accept: answering y accepts it by name.
    """

    path: str
    op: str
    hunk: str | None
    text: str
    number: int
    of: int
    flags: tuple[str, ...] = ()
    needs_accept: bool = False


class Choice(msgspec.Struct, frozen=True):
    """What is to land: whole paths, single hunks, and the flagged paths that were accepted."""

    paths: tuple[str, ...] = ()
    hunks: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was chosen."""
        return not self.paths and not self.hunks


class Choosing(msgspec.Struct):
    """Walks through the questions; give each `question` an `answer` until it is None.

    Example:
        >>> choosing = Choosing([Question("/a", "modify", "h_1", "@@", 1, 1)])
        >>> choosing.answer("y")
        >>> choosing.choice.paths
        ('/a',)
    """

    questions: Sequence[Question]
    _at: int = 0
    _taken: list[Question] = msgspec.field(default_factory=list[Question])

    @property
    def question(self) -> Question | None:
        """What to ask next, None at the end."""
        return self.questions[self._at] if self._at < len(self.questions) else None

    def answer(self, answer: Answer) -> None:
        """Apply an answer to the present question; `?` changes nothing."""
        here = self.question
        if here is None or answer == "?":
            return
        if answer == "q":
            self._at = len(self.questions)
            return
        if answer in ("y", "a"):
            self._taken.append(here)
        self._at += 1
        while answer in ("a", "d") and self.question is not None and self.question.path == here.path:
            if answer == "a":
                self._taken.append(self.question)
            self._at += 1

    @property
    def choice(self) -> Choice:
        """What the answers so far choose; a file with all its hunks is taken whole."""
        asked: dict[str, int] = {}
        for question in self.questions:
            asked[question.path] = asked.get(question.path, 0) + 1
        taken: dict[str, list[Question]] = {}
        for question in self._taken:
            taken.setdefault(question.path, []).append(question)
        paths = [path for path, some in taken.items() if len(some) == asked[path]]
        hunks = [q.hunk for path, some in taken.items() if path not in paths for q in some if q.hunk]
        accept = [path for path, some in taken.items() if some[0].needs_accept]
        return Choice(tuple(paths), tuple(hunks), tuple(accept))


def questions_of(entries: Iterable[Mapping[str, Any]], diff: Mapping[str, Any]) -> list[Question]:
    """Return the questions for a landing plan's entries; ignored ones are left out.

    Args:
        entries: of `plan_landing`. diff: of `Branch.diff`, which has the hunks' texts.
    """
    known: dict[str, Sequence[Mapping[str, Any]]] = {
        str(row["path"]): row.get("hunks") or () for row in diff["written"]
    }
    questions: list[Question] = []
    for entry in entries:
        if entry.get("ignored"):
            continue
        path, op, flags = str(entry["path"]), str(entry["op"]), tuple(entry.get("flags") or ())
        asks = grade_of(entry) == "needs_accept"
        hunks = known.get(path, ())
        if not hunks or op != "modify":
            questions.append(Question(path, op, None, _whole(hunks), 1, 1, flags, asks))
            continue
        questions += [
            Question(path, op, str(hunk["id"]), _hunk_text(hunk), number, len(hunks), flags, asks)
            for number, hunk in enumerate(hunks, 1)
        ]
    return questions


def _whole(hunks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(_hunk_text(hunk) for hunk in hunks)


def _hunk_text(hunk: Mapping[str, Any]) -> str:
    text = str(hunk.get("text") or "").rstrip("\n")
    if text.startswith("@@"):
        return text
    old, new = (f"{hunk.get(f'{s}_start', 0)},{hunk.get(f'{s}_lines', 0)}" for s in ("old", "new"))
    return f"@@ -{old} +{new} @@\n{text}"
