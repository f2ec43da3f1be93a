"""What the words of a task name: words that files may hold, names of code, paths, a file to be made.

Here: pure reading of a task's text. Not here: whether it asks for a change (`sorting.py`).
"""

import re
from collections.abc import Sequence

from bowerbird.models.local.calls import telling_words
from bowerbird.models.local.sorting import CHANGE_WORDS

_PATH = re.compile(
    r"(?<![\w./-])(?:[\w-]+/)*"
    r"(?:[\w-]*\.?[\w-]*[A-Za-z][\w-]*\.[A-Za-z]\w{0,7}|\.[a-z][a-z-]+|Dockerfile|Makefile|LICENSE)(?![\w/])"
)
_NEW_FILE = re.compile(r"\b(?:new|create|add|write|make)\b[^.]{0,20}\bfile\b", re.IGNORECASE)
_MADE = re.compile(r"\b(?:new|create|add|write|make)\b[^.,;:]{0,20}$", re.IGNORECASE)
_PUT_IN = re.compile(r"\s*,?\s*(?:to|in|into|as)\b", re.IGNORECASE)
WORD = re.compile(r"[A-Za-z_]\w{2,}|\d+(?:\.\d+)?")


def new_path(task: str, files: Sequence[str]) -> str | None:
    """Return the path of a file that is to be made, "" when it is not named; None when there is none."""
    known = {path.rpartition("/")[2] for path in files}
    named = [found for found in _PATH.finditer(task) if found[0] not in files and found[0] not in known]
    if _NEW_FILE.search(task) and not any(stands_in(path, task) for path in files):
        return named[0][0] if named else ""
    made = (m[0] for m in named if _MADE.search(task[: m.start()]) and not _PUT_IN.match(task[m.end() :]))
    return next(made, None)


def stands_in(path: str, task: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-])", task) is not None


def words_of(task: str) -> list[str]:
    """Return the words of a task that files may hold, in lower case."""
    words = (word.lower() for word in telling_words(" ".join(WORD.findall(task))))
    return [word for word in words if word and word not in CHANGE_WORDS]


def names_in(task: str) -> list[str]:
    """Return the names of code in a task, told by their form.

    Example:
        >>> names_in("last_n, maxItems and total() are wrong.")
        ['last_n', 'maxItems', 'total']
    """
    return re.findall(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|\w+(?=\(\)))\b", task)


def named_files(task: str, files: Sequence[str]) -> list[str]:
    """Return the files that a task names by path, else by a name that only one of them has.

    Example:
        >>> named_files("Add a target to the Makefile.", ("src/Makefile", "a.py"))
        ['src/Makefile']
    """
    whole = [path for path in files if stands_in(path, task)]
    last = [path.rpartition("/")[2] for path in files]
    alone = [path for path, name in zip(files, last, strict=True) if last.count(name) == 1]
    return whole or [
        path for path in alone if _is_telling(name := path.rpartition("/")[2]) and stands_in(name, task)
    ]


def _is_telling(name: str) -> bool:
    """Whether the name of a file is no word that may stand for something else."""
    return "." in name or name[:1].isupper()


_TEST = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__)/|(?:^|/)test_|[_.](?:test|spec)\.\w+$")
_STYLE = re.compile(
    r"\b(?:background|bold|borders?|colou?rs?|fonts?|italics?|margins?|padding|rounded|underlined?)\b", re.I
)
_ASKS_FOR_TEST = re.compile(
    r"\b(?:add|write|change|update|remove|delete|rename)\b[^.]{0,30}\btests?\b", re.IGNORECASE
)


def changed_files(task: str, files: Sequence[str]) -> tuple[str, ...]:
    """Return the files that a task may be about: tests are not changed to make them pass.

    Example:
        >>> changed_files("The test of last_n fails, fix it.", ("a.py", "tests/test_a.py"))
        ('a.py',)
    """
    if _ASKS_FOR_TEST.search(task):
        return tuple(files)
    return tuple(path for path in files if not is_test(path)) or tuple(files)


def is_test(path: str) -> bool:
    """Whether `path` names a test, which mentions what is said elsewhere."""
    return _TEST.search(path) is not None


def is_prose(path: str) -> bool:
    """Whether `path` names a text for people, which mentions much that is set elsewhere."""
    return path.lower().endswith((".md", ".rst", ".txt"))


def style_sheet(task: str, files: Sequence[str]) -> str | None:
    """Return the only style sheet, where the task is about how something looks."""
    sheets = [path for path in files if path.lower().endswith((".css", ".scss", ".less"))]
    return sheets[0] if len(sheets) == 1 and _STYLE.search(task) else None


def forms_of(word: str) -> str:
    """Return a regular expression for a word in any of its forms, at the beginning of a part of a name.

    Example:
        >>> bool(re.search(forms_of("retry"), parts_of("maxRetries = 3")))
        True
    """
    stem = re.sub(r"(?:ies?|y|e|ing|ed)$", "", word) if len(word) > 4 else word
    return rf"(?<![a-z0-9]){re.escape(stem)}(?![0-9])"


# What people say, and what stands in files: either may be found by the other.
_ALIKE = (
    "charge cost fare fee pay price", "depart leave", "author wrote written", "maximum most max limit",
    "minimum least min", "phone telephone", "colour color", "licence license", "duration long length",
    "begin start", "end finish",
)  # fmt: skip
_ALIKE_OF = {word: group.split() for group in _ALIKE for word in group.split()}
_DATED = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august "
    "september october november december".split()
)


def alike(word: str) -> tuple[str, ...]:
    """Return a word of a question and those that may stand for it in a file.

    Example:
        >>> alike("cost")[:3], alike("friday"), alike("tea")
        (('cost', 'charge', 'fare'), ('friday', 'fri'), ('tea',))
    """
    if word in _DATED:
        return word, word[:3]
    return (word, *(other for other in _ALIKE_OF.get(word, ()) if other != word))


def parts_of(text: str) -> str:
    """Return a text in lower case with its names taken apart where a capital begins a part."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).lower()
