"""A name of code that is to be renamed: done by search, in all files, without the model.

Here: what a task asks for, which lines hold the name as code, what is called next; pure. Not here:
other changes (`changing.py`). A small model rewrites one file well and forgets the others.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bowerbird.models.local.calls import is_data
from bowerbird.models.local.guards import parse_fault
from bowerbird.models.local.rewrite import Rewrite, edit_of
from bowerbird.models.local.situation import Done, Situation, shown_part
from bowerbird.models.local.task_words import is_prose

MOST_FILES = 12
_MOST_CALLS = 4 * MOST_FILES
_ASKED = re.compile(
    r"\brename (?:the )?(?:[\w-]+ )?(?:function|method|class|constant|type|struct|interface|enum) "
    r"[`\"']?([A-Za-z_]\w*)(?:\(\))?[`\"']? (?:to|as|into) [`\"']?([A-Za-z_]\w*)[`\"']?(?![\w/]|\.\w)",
    re.IGNORECASE,
)
# A string, a comment to the end of the line, or anything else of one line.
_PARTS = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`|//.*|#(?!include|define|if|\[).*)""")
_BRACED = re.compile(r"\{[^{}]*\}")
_TRIPLE = re.compile(r'"""|' + "'''")


@dataclass(frozen=True, slots=True)
class Renaming:
    """What is renamed to what."""

    old: str
    new: str

    @property
    def telling(self) -> bool:
        """Whether the old name is no word of a language, so that it means the same wherever it stands."""
        return "_" in self.old.strip("_") or re.search(r"[a-z0-9][A-Z]", self.old) is not None

    def line(self, text: str) -> str:
        """Return a line with the name renamed; a plain word only in code, not in texts."""
        word = re.compile(rf"(?<![\w-]){self.old}(?![\w-])" if not self.telling else rf"\b{self.old}\b")
        if self.telling:
            return word.sub(self.new, text)
        parts = _PARTS.split(text)
        for at, part in enumerate(parts):
            if at % 2 == 0:
                parts[at] = word.sub(self.new, part)
            elif part[:1] in "\"'`":  # what stands in braces of a template is code
                parts[at] = _BRACED.sub(lambda braced: word.sub(self.new, braced[0]), part)
        return "".join(parts)

    def lines(self, old: Sequence[str]) -> list[str]:
        """Return lines with the name renamed; of a plain word, longer texts are left as they are."""
        found, inside = list[str](), False
        for text in old:
            marks = len(_TRIPLE.findall(text))
            found.append(text if (inside or marks) and not self.telling else self.line(text))
            inside ^= marks % 2 == 1
        return found


def renaming_in(task: str) -> Renaming | None:
    """Return the renaming of a function, class or the like that a task asks for.

    Example:
        >>> renaming_in("Rename the function sum_up to total, also where it is called.")
        Renaming(old='sum_up', new='total')
        >>> renaming_in("Rename the heading Menu to Offers.") is None
        True
    """
    asked = _ASKED.search(task)
    return Renaming(asked[1], asked[2]) if asked and asked[1] != asked[2] else None


def renaming_step(situation: Situation) -> tuple[str, dict[str, Any]] | str | None:
    """Return the tool and the arguments of the next call of a renaming, or what is said at its end.

    None where it is no renaming, or one that is better done the common way: nothing was found, too much, or a
    file is longer than one reading. What was begun and cannot be finished is said to be so.
    """
    wanted = renaming_in(situation.task)
    if wanted is None or any(done.failed for done in situation.calls):
        return None
    # Results may be forgotten meanwhile: what is gone is looked for again.
    here = [done for done in reversed(situation.calls) if not done.forgotten]
    edited = [done.path for done in situation.calls if done.call.name == "edit_file"]
    found = next((done for done in here if done.call.name == "search_files"), None)
    reads = {done.path: shown_part(done) for done in reversed(here) if done.call.name == "read_file"}
    # What was just read is not asked for again: the search may be gone that led to it.
    paths = list(dict.fromkeys((*reads, *(_files(found, wanted) if found else ()))))
    if len(situation.calls) > _MOST_CALLS or len(paths) > MOST_FILES:
        return _unfinished(wanted, edited)
    for path in paths:
        if path in edited:
            continue
        if path not in reads:
            return "read_file", {"path": path, "offset": 1}
        lines = reads[path].lines
        new = wanted.lines(lines)
        if new == list(lines):
            continue
        whole = Rewrite(situation.task, path, (), lines, ())
        edit = edit_of(whole, new)
        if reads[path].next_offset is not None or edit is None or parse_fault(whole, new) is not None:
            return _unfinished(wanted, edited)
        return "edit_file", edit
    if found is None:
        return "search_files", {"pattern": rf"\b{wanted.old}\b", "case_sensitive": True, "limit": 200}
    return f"{_renamed(wanted, edited)}." if edited else None


def _unfinished(wanted: Renaming, edited: Sequence[str]) -> str | None:
    return f"{_renamed(wanted, edited)} only; other files still hold the old name." if edited else None


def _renamed(wanted: Renaming, edited: Sequence[str]) -> str:
    return f"I renamed `{wanted.old}` to `{wanted.new}` in {_listed(edited)}"


def _files(searched: Done, wanted: Renaming) -> Iterator[str]:
    found = searched.data.get("matches")
    rows = cast("list[dict[str, Any]]", found if isinstance(found, list) else [])
    for path in dict.fromkeys(str(row.get("path", "")).lstrip("/") for row in rows):
        if not is_data(path) and (wanted.telling or not is_prose(path)):
            yield path


def _listed(paths: Sequence[str]) -> str:
    return paths[0] if len(paths) == 1 else f"{', '.join(paths[:-1])} and {paths[-1]}"
