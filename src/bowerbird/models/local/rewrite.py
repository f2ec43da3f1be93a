"""Lines that a small model writes anew: what it is asked, which part, the edit that comes of them.

Here: pure values and texts. Not here: whether the new lines may stand (`guards.py`), when lines are rewritten
(`changing.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from bowerbird.models.local.task_words import names_in, words_of

_EXCERPT_LINES = 40


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Lines that the model writes anew, all of a file or a part of it.

    Attributes:
        task: what is asked for.
        path: of the file.
        lines: as they are; with `before` and `after` they are the lines that are known.
        hints: lines of other files that share words with the task.
        tests: what tests say of it.
        tried: how often it was rewritten before in this turn.
    """

    task: str
    path: str
    before: tuple[str, ...]
    lines: tuple[str, ...]
    after: tuple[str, ...]
    hints: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    tried: int = 0

    @property
    def whole(self) -> bool:
        """Whether these are all lines that are known."""
        return not self.before and not self.after

    @property
    def fence(self) -> str:
        """What opens and closes the block; longer where the lines hold one."""
        return "````" if any("```" in line for line in self.lines) else "```"


def question(wanted: Rewrite) -> str:
    """Return what the model is asked: the task, lines that may help, the lines to rewrite."""
    hints = "\n".join(wanted.hints)
    part = "File" if wanted.whole else "Part of the file"
    return (
        f"Task: {wanted.task}\n"
        + (f"Elsewhere:\n{hints}\n" if hints else "")
        + f"{part} {wanted.path}:\n{wanted.fence}\n" + "\n".join(wanted.lines) + f"\n{wanted.fence}"
    )  # fmt: skip


def narrowed(wanted: Rewrite) -> Rewrite | None:
    """Return the part that the task is most likely about, None where that is nearly all."""
    lines = wanted.lines
    begin, end = trimmed(lines, *around(lines, best_line(lines, wanted.task)))
    if end - begin > len(lines) * 2 // 3 or begin == end:
        return None
    before, after = (*wanted.before, *lines[:begin]), (*lines[end:], *wanted.after)
    return replace(wanted, before=before, lines=lines[begin:end], after=after)


def edit_of(wanted: Rewrite, new: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of the `edit_file` call that makes the change; None when it cannot be told apart.

    Only the changed lines are replaced, with as many before them as make the place unique: all else stays
    byte for byte.
    """
    old_all = [*wanted.before, *wanted.lines, *wanted.after]
    new_all = [*wanted.before, *new, *wanted.after]
    parts = blocks(old_all, new_all)
    first, last = parts[0][0], parts[-1][1]
    new_first, new_last = parts[0][2], parts[-1][3]
    text = "\n".join(old_all)
    while True:
        old = "\n".join(old_all[first:last])
        # Lines that go leave their line break too: one line beside them is written again.
        if old and new_last > new_first and text.find(old, text.find(old) + 1) < 0:
            return {"path": wanted.path, "old": old, "new": "\n".join(new_all[new_first:new_last])}
        if first > 0:
            first, new_first = first - 1, new_first - 1
        elif last < len(old_all):
            last, new_last = last + 1, new_last + 1
        else:
            return None


def around(lines: Sequence[str], best: int) -> tuple[int, int]:
    """Return the part around a line: its function or section, as far as that is near."""
    begin = max(0, best - _EXCERPT_LINES // 2)
    end = min(len(lines), best + _EXCERPT_LINES // 2)
    tops = [n for n in range(begin, best + 1) if lines[n] and not lines[n][0].isspace()]
    brace = best + 1 < len(lines) and lines[best + 1].rstrip() == "{"  # on a line of its own
    ends = [n for n in range(best + 1 + brace, end) if lines[n] and not lines[n][0].isspace()]
    opens = brace or (best + 1 < len(lines) and lines[best + 1][:1].isspace())  # it begins a block itself
    first = tops[-1] if tops and (opens or best - tops[-1]) else begin
    last = (ends[0] if opens else ends[-1]) if ends else end
    return first, last + (last < len(lines) and lines[last][:1] in ("}", "]", ")"))  # with what closes it


def blocks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(a, b, c, d) for tag, a, b, c, d in codes if tag != "equal"]


def best_line(lines: Sequence[str], task: str) -> int:
    """Return the line that shares most with a task; of names of code the first, where they are defined."""
    names, words = names_in(task), words_of(task)

    def score(n: int) -> tuple[int, int, int]:
        line = lines[n]
        return sum(name in line for name in names), sum(word in line.lower() for word in words), -n

    return max(range(len(lines)), key=score)


def trimmed(lines: Sequence[str], begin: int, end: int) -> tuple[int, int]:
    """Return the part without empty lines around it: a block neither begins nor ends with one."""
    while begin < end and not lines[begin].strip():
        begin += 1
    while end > begin and not lines[end - 1].strip():
        end -= 1
    return begin, end
