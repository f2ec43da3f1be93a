"""Where a small model looks first when it is asked something: where the words of the question stand.

Here: the calls that need no model, purely. Not here: what it does with what they show (`choices.py`), turns
that change files (`changing.py`).

A step that the model chooses costs it seconds, and its first ones were mostly a search for the words of
the question and the reading of what was found: these are made at once. Whatever is less clear it chooses.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import cast

from bowerbird.models.local.calls import HEAD_LINES, is_data
from bowerbird.models.local.changing import Call, Say, any_of, matches_of, path_of
from bowerbird.models.local.choices import is_computed
from bowerbird.models.local.settled.cases import Case, case_of
from bowerbird.models.local.settled.lines import (
    NUMBERED_LINES,
    Line,
    asks_for_line,
    definition_asked_for,
    line_asked_for,
)
from bowerbird.models.local.settled.sums import sum_of
from bowerbird.models.local.situation import Done, Situation, shown_part
from bowerbird.models.local.task_words import alike, forms_of, is_test, named_files, parts_of, words_of

NEEDS = frozenset({"search_files", "read_file"})
LOOK_LINES = 80
_MATCHES = 200
# They stand everywhere, and say little of where to look.
_GENERAL = frozenset(
    "app are big class code does file function get give go have kind large line long method name number "
    "program project small thing type use used using value variable way".split()
)
_ASKED_FOR = re.compile(
    r"\W*(?:which|what|how many|list|count|name)(?: of)?(?: the| all)* ([a-z]+)", re.IGNORECASE
)
_MONEY = re.compile(
    r"\b(?:how much (?:is|does|do|did|must|are|was|were)|costs?|pays?|price|worth|owes?|bill|earn\w*)\b", re.I
)
_MONEY_COLUMN = re.compile(
    r"price|cost|amount|total|sum\b|revenue|fee|fare|euro|cent|dollar|value|earn|income"
)
_NAME = re.compile(r"(?<=[\w,] )[A-Z]\w+")  # not the first word of a sentence
_NAMED, _NUMBER, _DATA, _TEST = 2.0, 0.4, 1.3, 0.5
_PATH, _PATH_OF_ROWS = 0.5, 3.0
"""What the name of a file counts; more where it is the table of what is asked for."""

_MOST_SEARCHED = 8
_ENOUGH, _CLEARLY, _SECOND, _JOINED = 2.5, 1.35, 0.75, 0.4
SECOND_LINES = 40
_MANY = r"(?:files|scripts|modules|packages|documents|folders|directories)\b"
_WITHIN = r"(?:in|of|below|under|has|have) (?:the )?[\w./-]*(?:directory|folder|project|package)"
_LISTED = re.compile(
    rf"\b{_MANY}(?=.*\b(?:are there|inside|exist|lie|{_WITHIN})\b)"
    rf"|\blist (?:all |me |us )*(?:of )?(?:the |every )?(?:[\w.]+ )?{_MANY}"
    rf"|\b(?:which|what) (?:[\w.]+ )?{_MANY} (?:are|lie)\b(?! \w+(?:ed|en|ing)\b)",
    re.IGNORECASE,
)
_ENDINGS = {
    "C": "c", "css": "css", "csv": "csv", "Go": "go", "html": "html", "java": "java", "javascript": "js",
    "js": "js", "json": "json", "markdown": "md", "python": "py", "ruby": "rb", "rust": "rs", "shell": "sh",
    "toml": "toml", "typescript": "ts", "yaml": "{yaml,yml}",
}  # fmt: skip
_LISTING = frozenset(
    "all are below directory every exist file files folder here how in inside is lie list many me name of "
    "please project show tell the there this under us what which".split()
)
_MOST_WORDS, _MOST_CHARS, _MOST_LISTED = 40, 1_000, 40
_SAID = 160
TABLE_LINES, _MOST_LOOKS = 2_000, 3


def first_look(situation: Situation, offered: frozenset[str]) -> Call | Say | Case | None:
    """Return the first calls of a turn that asks for an answer; None where the model chooses.

    What asks for nothing but a list of files is answered with it.

    Args:
        situation: the facts of the request.
        offered: names of the tools that may be called.

    Example:
        >>> first_look(Situation(task="Which port is used?", files=("a.py",)), NEEDS).input["pattern"]
        'port'
    """
    if not offered >= NEEDS or situation.wants_change or not situation.files:
        return None
    if "run_python_code" in offered and (case := _case(situation)) is not None:
        return case
    last = situation.last
    if last is None:
        return _begun(situation, offered)
    if not last.failed and len(situation.calls) <= _MOST_LOOKS and (said := _settled(situation, last)):
        return said
    if last.failed or len(situation.calls) > 2:
        return _second(situation) if len(situation.calls) == 2 else None
    if len(situation.calls) == 2:
        return _second(situation)
    if last.call.name == "list_files":
        return _listed(situation.task, last)
    return _definition(situation, last) or _best(situation) if last.call.name == "search_files" else None


def _begun(situation: Situation, offered: frozenset[str]) -> Call | None:
    """Return the first call: the reading of the file that is named, a list, or the search for the words."""
    named = named_files(situation.task, situation.files)
    if len(named) == 1:
        if asks_for_line(situation.task, situation.files):
            return Call("read_file", {"path": named[0], "offset": 1, "limit": NUMBERED_LINES})
        return _reading(named[0], 1)
    if "list_files" in offered and _LISTED.search(situation.task[:_MOST_CHARS]):
        return Call("list_files", {"pattern": listed_by(situation.task, situation.files)})
    return _search(_telling(situation.task))


def _case(situation: Situation) -> Case | None:
    """Return the case that is asked of the functions of the file that was read last; once in a turn."""
    last = situation.last
    if last is None or last.failed or last.call.name != "read_file" or last.path not in situation.known:
        return None
    if any(done.call.name == "run_python_code" for done in situation.calls):
        return None
    whole = {
        path: known.text
        for path, known in situation.known.items()
        if known.next_offset is None and not is_data(path)
    }
    text = whole.pop(last.path, None)
    return None if text is None else case_of(situation.task, last.path, text, whole)


def _settled(situation: Situation, last: Done) -> Call | Say | None:
    """Return the answer where what was read or found last settles it: a line's number, a sum of a table.

    A table of which the beginning was read is read whole where that may settle the question.
    """
    if asks_for_line(situation.task, situation.files):
        return _line(situation, last)
    if last.call.name != "read_file" or last.call.input.get("offset", 1) != 1:
        return None
    part = shown_part(last)
    is_beginning = part.next_offset is not None
    said = sum_of(situation.task, last.path, part.lines, is_beginning=is_beginning)
    if said is None or not is_beginning:
        return Say(said) if said is not None else None
    total = last.data.get("total_lines")
    if last.call.input.get("limit") == TABLE_LINES or not isinstance(total, int) or total > TABLE_LINES:
        return None
    return Call("read_file", {"path": last.path, "offset": 1, "limit": TABLE_LINES})


def _line(situation: Situation, last: Done) -> Say | None:
    """Return the line that is asked for as the answer, where what was read or found holds it clearly."""
    if last.call.name == "read_file":
        part = shown_part(last)
        first = int(last.call.input.get("offset", 1))
        rows = [Line(last.path, first + n, text) for n, text in enumerate(part.lines)]
        rows = rows if part.next_offset is None and first == 1 else []
    elif last.call.name == "search_files" and not last.data.get("truncated"):
        named = named_files(situation.task, situation.files)
        rows = [Line(path_of(row), row["line"], str(row.get("text", ""))) for row in matches_of(situation)]
        rows = [row for row in rows if not named or row.path in named]
    else:
        return None
    found = line_asked_for(situation.task, rows, situation.files)
    if found is None:
        return None
    return Say(f"It is line {found.number} of {found.path}: `{found.text.strip()[:_SAID]}`")


def _definition(situation: Situation, last: Done) -> Say | None:
    """Return where the name that is asked for is defined, if one line that was found does that."""
    if last.data.get("truncated"):
        return None
    rows = [Line(path_of(row), row["line"], str(row.get("text", ""))) for row in matches_of(situation)]
    found = definition_asked_for(situation.task, [row for row in rows if not is_test(row.path)])
    if found is None:
        return None
    name, line = found
    return Say(f"`{name}` is defined in {line.path}, line {line.number}: `{line.text.strip()[:_SAID]}`")


def listed_by(task: str, files: Sequence[str]) -> str:
    """Return the pattern of the files that a question asks to be listed.

    Example:
        >>> listed_by("Which Python files are there in app?", ("app/a.py", "b.py"))
        'app/**/*.py'
    """
    words = re.findall(r"[\w-]+", task[:_MOST_CHARS])
    places = {path.rpartition("/")[0] for path in files} - {""}
    places |= {"/".join(place.split("/")[:n]) for place in places for n in range(1, place.count("/") + 1)}
    named = [p for p in places if p.rpartition("/")[2] in words or ("/" in p and p in task)]
    ending = next((_ENDINGS[form] for word in words for form in (word, word.lower()) if form in _ENDINGS), "")
    named = [p for p in named if not set(p) & set("*?[{")]
    place = max(named, key=lambda p: (p in task, len(p)), default="")
    return f"{place}{'/' if place else ''}**/*{f'.{ending}' if ending else ''}"


def _listed(task: str, done: Done) -> Say | None:
    """Return the list as the answer, where the question names only files, their place and their kind."""
    found, pattern = done.data.get("files"), str(done.call.input.get("pattern", ""))
    files = cast("list[str]", found if isinstance(found, list) else [])
    if not 0 < len(files) <= _MOST_LISTED or done.data.get("truncated"):
        return None
    place, ending = pattern.rpartition("**/")[0], pattern.rpartition(".")[2]
    known = {*_LISTING, *re.findall(r"[\w-]+", place.lower())}
    known |= {name.lower() for name, its in _ENDINGS.items() if its == ending}
    if not known >= {word.lower() for word in re.findall(r"[\w-]+", task)}:
        return None
    names = [f"`{path.lstrip('/')}`" for path in files]
    many = f"{len(names)} file{'' if len(names) == 1 else 's'}"
    return Say(f"{many}: {', '.join(names)}.")


def _telling(task: str) -> list[str]:
    words = words_of(task)[:_MOST_WORDS]
    return [word for word in words if word not in _GENERAL] or words


def _search(words: list[str]) -> Call | None:
    """Return the search for the words; without the lines around, which would fill the window."""
    if not words:
        return None
    more = [other for word in words[:_MOST_SEARCHED] for other in alike(word)[1:]]
    pattern = "|".join(filter(None, (any_of(words), *dict.fromkeys(more))))
    return Call("search_files", {"pattern": pattern, "case_sensitive": False, "limit": _MATCHES})


def _form(word: str) -> re.Pattern[str]:
    """Return the expression that finds a word of the question, or what may stand for it."""
    return re.compile("|".join(forms_of(other) for other in alike(word)))


def _best(situation: Situation) -> Call | None:
    """Return the reading of the file that holds the most of the question.

    Whether to read or to compute is left to the model where a file of data and another hold much alike.
    """
    (path, most), (other, less), *_ = *weighed(situation).items(), ("", 0.0), ("", 0.0)
    close = less * _CLEARLY > most
    if most < _ENOUGH or (close and is_computed(situation.task) and is_data(path) != is_data(other)):
        return None
    return _reading(path, _best_line(situation, path))


def _best_line(situation: Situation, path: str) -> int:
    """Return the number of the line of a file that holds the most of the question."""
    words = [_form(word) for word in _telling(situation.task)]
    rows = [row for row in matches_of(situation) if path_of(row) == path]
    held = [
        sum(word.search(_readable(str(row.get("text", "")))) is not None for word in words) for row in rows
    ]
    return int(rows[held.index(max(held))]["line"]) if rows else 1


def _readable(text: str) -> str:
    """Return a line as words find it: as it is, and with its names taken apart."""
    return f"{text.lower()} {parts_of(text)}"


def _second(situation: Situation) -> Call | None:
    """Return the reading of another file that holds nearly as much as the first: both may be needed."""
    last = situation.last
    weights = weighed(situation)
    if last is None or last.call.name != "read_file" or last.failed or last.path not in weights:
        return None
    if is_data(last.path) and is_computed(situation.task) and not _prices_elsewhere(situation.task, last):
        return None
    rest = [(path, weight) for path, weight in weights.items() if path != last.path]
    if not rest or rest[0][1] < _ENOUGH:
        return None
    # A second table has what the first says by its keys; any other file only distracts where it holds less.
    least = _JOINED if is_data(last.path) and is_data(rest[0][0]) else _SECOND
    if rest[0][1] < least * weights[last.path]:
        return None
    return _reading(rest[0][0], _best_line(situation, rest[0][0]), SECOND_LINES)


def _prices_elsewhere(task: str, table: Done) -> bool:
    """Whether money is asked for of a table that names none: then another file says what things cost."""
    header = next(iter(shown_part(table).lines), "")
    return _MONEY.search(task) is not None and not _MONEY_COLUMN.search(parts_of(header))


def weighed(situation: Situation) -> Mapping[str, float]:
    """Return how much of the question each file that the search found holds, the most first.

    A word counts by how few files have it, a name or a number twice; those of the best line count once more.
    A test, which mentions what is said elsewhere, counts half unless the question is about tests.
    """
    task, files = situation.task, situation.files
    names = {name.lower() for name in _NAME.findall(task)}
    words = {word: _form(word) for word in _telling(task)}
    lines: dict[str, list[frozenset[str]]] = {}
    for row in matches_of(situation):
        text = _readable(str(row.get("text", "")))
        held = frozenset(word for word, form in words.items() if form.search(text))
        lines.setdefault(path_of(row), []).append(held)
    called = {
        path: {w for w, form in words.items() if form.search(parts_of(path))} for path in {*files, *lines}
    }
    asked_for = _ASKED_FOR.match(task)
    rows_of = {
        path
        for path in files
        if asked_for
        and is_data(path)
        and _form(asked_for[1].lower().removesuffix("s")).search(parts_of(path))
    }
    for path in rows_of:
        lines.setdefault(path, []).append(frozenset())
    within = {path: frozenset[str]().union(*held) for path, held in lines.items()}
    worth = {
        word: math.log2(
            1 + len(called) / max(1, sum(word in within.get(p, ()) or word in called[p] for p in called))
        )
        * (_NUMBER if word[0].isdigit() else _NAMED if word in names else 1.0)
        for word in words
    }

    def total(some: frozenset[str] | set[str]) -> float:
        return sum(worth[word] for word in some)

    computed, of_tests = is_computed(task), "test" in task.lower()
    weights = {
        path: (
            total(within[path])
            + max(map(total, held))
            + (_PATH_OF_ROWS if path in rows_of else _PATH) * total(called[path])
        )
        * (_DATA if computed and is_data(path) else 1.0)
        * (_TEST if is_test(path) and not of_tests else 1.0)
        for path, held in lines.items()
    }
    return dict(sorted(weights.items(), key=lambda pair: pair[1], reverse=True))


def _reading(path: str, line: int, most: int = LOOK_LINES) -> Call:
    lines = HEAD_LINES if is_data(path) else most
    offset = 1 if is_data(path) or line <= most else line - most // 2
    return Call("read_file", {"path": path, "offset": offset, "limit": lines})
