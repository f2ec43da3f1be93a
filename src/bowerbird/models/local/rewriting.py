"""Lines that a small model writes anew: what it is asked, which part of a file, whether they may stand.

Here: pure values and texts; guards that compare before and after and write nothing. Not here: when lines are
rewritten (`changing.py`), asking the model (`exchange.py`).
"""

import ast
import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from bowerbird.models.local.calls import telling_words

WHOLE_LINES = 60
"""A longer file is rewritten around the lines that share most with the task."""

_EXCERPT_LINES = 40
_FEW_LINES = 12
LOST = "lines are lost"


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Lines that the model writes anew, all of a file or a part of it.

    Attributes:
        task: what is asked for.
        path: of the file.
        before, lines, after: all that is known of the file; `lines` are rewritten.
        hints: lines of other files that share words with the task.
        failure: what the project's tests say, where they fail.
        tried: how often a change was made and taken back in this turn.
    """

    task: str
    path: str
    before: tuple[str, ...]
    lines: tuple[str, ...]
    after: tuple[str, ...]
    hints: tuple[str, ...] = ()
    failure: str = ""
    tried: int = 0

    @property
    def fence(self) -> str:
        """What opens and closes the block; longer where the lines hold one."""
        return "````" if any("```" in line for line in self.lines) else "```"

    def text(self, lines: Sequence[str]) -> str:
        """Return the whole text with `lines` in the place of those rewritten."""
        return "\n".join((*self.before, *lines, *self.after)) + "\n"


def excerpt(
    task: str, path: str, lines: Sequence[str], hints: Sequence[str], failure: str, tried: int
) -> Rewrite:
    """Return what is rewritten of a file: all of it, of a long one the part nearest to the task."""
    begin, end = 0, len(lines)
    if end > WHOLE_LINES:
        begin, end = around(lines, best_line(lines, task))
    while begin < end and not lines[begin].strip():  # a block neither begins nor ends with an empty line
        begin += 1
    while end > begin and not lines[end - 1].strip():
        end -= 1
    parts = tuple(lines[:begin]), tuple(lines[begin:end]), tuple(lines[end:])
    return Rewrite(task, path, *parts, tuple(hints), failure, tried)


def question(wanted: Rewrite) -> str:
    """Return what the model is asked: the task, what may help, the lines to rewrite."""
    part = "Part of the file" if wanted.before or wanted.after else "File"
    hints = "".join(f"\n{hint}" for hint in wanted.hints)
    return (
        f"Task: {wanted.task}\n"
        + (f"Elsewhere:{hints}\n" if hints else "")
        + (f"The tests say:\n{wanted.failure}\n" if wanted.failure else "")
        + f"{part} {wanted.path}:\n{wanted.fence}\n" + "\n".join(wanted.lines) + f"\n{wanted.fence}"
    )  # fmt: skip


def edit_of(wanted: Rewrite, new: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of the `edit_file` call that makes the change; None when it cannot be told apart.

    Only the changed lines are replaced, with as many beside them as make the place unique, before the change
    and after it (it may have to be taken back): all else stays byte for byte.
    """
    old_all = [*wanted.before, *wanted.lines, *wanted.after]
    new_all = [*wanted.before, *new, *wanted.after]
    parts = blocks(old_all, new_all)
    first, last = parts[0][0], parts[-1][1]
    new_first, new_last = parts[0][2], parts[-1][3]
    old_text, new_text = "\n".join(old_all), "\n".join(new_all)
    while True:
        old, come = "\n".join(old_all[first:last]), "\n".join(new_all[new_first:new_last])
        # Lines that go leave their line break too: one line beside them is written again.
        if old and come and _once(old, old_text) and _once(come, new_text):
            return {"path": wanted.path, "old": old, "new": come}
        if first > 0:
            first, new_first = first - 1, new_first - 1
        elif last < len(old_all):
            last, new_last = last + 1, new_last + 1
        else:
            return None


def _once(part: str, text: str) -> bool:
    return text.find(part, text.find(part) + 1) < 0


def blocks(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where two texts differ, as begin and end of lines in each."""
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(a, b, c, d) for tag, a, b, c, d in codes if tag != "equal"]


def best_line(lines: Sequence[str], task: str) -> int:
    """Return the number of the line that shares most words with a task, the first of several."""
    words = [word.lower() for word in telling_words(task)]
    return max(range(len(lines)), key=lambda n: (sum(word in lines[n].lower() for word in words), -n))


def around(lines: Sequence[str], best: int) -> tuple[int, int]:
    """Return the part around a line: its function or section, as far as that is near."""
    begin, end = max(0, best - _EXCERPT_LINES // 2), min(len(lines), best + _EXCERPT_LINES // 2)
    tops = [n for n in range(begin, best + 1) if lines[n] and not lines[n][0].isspace()]
    brace = best + 1 < len(lines) and lines[best + 1].rstrip() == "{"  # on a line of its own
    ends = [n for n in range(best + 1 + brace, end) if lines[n] and not lines[n][0].isspace()]
    opens = brace or (best + 1 < len(lines) and lines[best + 1][:1].isspace())  # it begins a block itself
    first = tops[-1] if tops and (opens or best - tops[-1]) else begin
    last = (ends[0] if opens else ends[-1]) if ends else end
    return first, last + (last < len(lines) and lines[last][:1] in ("}", "]", ")"))  # with what closes it


# ---------------------------------------------------------------- guards


def fault(wanted: Rewrite, new: Sequence[str]) -> str | None:
    """Return why a rewriting may not stand, None when it may; `LOST` is none where something is to go.

    Example:
        >>> fault(Rewrite("Set A to 2.", "a.py", (), ("A = 1",), ()), ["A = 1"])
        'it changes nothing'
    """
    if [line.rstrip() for line in new] == [line.rstrip() for line in wanted.lines]:
        return "it changes nothing"
    parts = blocks(wanted.lines, new)
    gone, come = sum(b - a for a, b, _, _ in parts), sum(d - c for _, _, c, d in parts)
    if max(gone, come) > max(_FEW_LINES, len(wanted.lines) // 2):
        return "it changes far more than one place"
    broken = parse_fault(wanted.path, wanted.text(wanted.lines), wanted.text(new))
    return broken or (LOST if gone > come else None)


def parse_fault(path: str, old: str, new: str) -> str | None:
    """Return how a text does not parse although the old one did (an empty one does), None when it does."""
    parse = _PARSERS.get(path.rpartition(".")[2].lower())
    if parse is None or (old and _broken(parse, old)):
        return None  # a part of a file, or one that was wrong before
    said = _broken(parse, new)
    return f"it does not parse ({said[:80]})" if said else None


def _broken(parse: Callable[[str], Any], text: str) -> str:
    try:
        parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return " ".join(str(error).split()) or "error"
    return ""


def _brackets(text: str) -> None:
    """Raise ValueError when brackets do not pair by their number."""
    for opening, closing in ("()", "[]", "{}"):
        if text.count(opening) != text.count(closing):
            raise ValueError(f"{opening} and {closing} do not pair")


def _yaml(text: str) -> None:
    from ruamel.yaml import YAML, YAMLError  # 50 ms, which no other turn waits for

    reader: Any = YAML(typ="safe", pure=True)
    try:
        reader.load(text)
    except (YAMLError, TypeError) as error:  # a key that cannot be one, as `[0, []]: x`
        raise ValueError(str(error)) from error


_IN_BRACKETS = "c cc cpp cs css go h hpp java js jsx kt less mjs php rs scss swift ts tsx"
_PARSERS: dict[str, Callable[[str], Any]] = {
    "py": ast.parse, "json": json.loads, "toml": tomllib.loads, "yaml": _yaml, "yml": _yaml,
    **dict.fromkeys(_IN_BRACKETS.split(), _brackets),
}  # fmt: skip
