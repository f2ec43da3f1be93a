"""In which line something stands: found by the words of the question, not by a small model's counting.

Here: whether a question asks for a line's number, which line holds the most of it, which one defines a name;
pure. Not here: the reading and searching that lead there (`looking.py`).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bowerbird.models.local.task_words import forms_of, named_files, names_in, parts_of, words_of

NUMBERED_LINES = 400
_ASKED = re.compile(
    r"\b(?:in|on|at) (?:which|what) lines?\b|\b(?:which|what) line numbers?\b|\bline number of\b"
    r"|\bwhich (?:is|are) the lines?\b",
    re.IGNORECASE,
)
_PERHAPS = re.compile(
    r"\b(?:which|what) lines?\b|\bline number\b|\blines? \d+\b|\d(?:st|nd|rd|th) line\b", re.I
)
_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)")
_TOKEN = re.compile(r"[A-Za-z_$][\w$-]*|\d+(?:\.\d+)*")
_BEGINS = re.compile(
    r"\b(?:begins?|starts?|defined?|definition|declared?|set|created?|assigned)\b", re.IGNORECASE
)
_DEFINED_WHERE = re.compile(
    r"\b(?:where|(?:which|what) (?:file|module|script|source file))\b.{0,40}?\b"
    r"(?:(?:is|are) (?:the )?(?:[a-z]+ )?[`\"']?(?P<is>[A-Za-z_]\w*)(?:\(\))?[`\"']? "
    r"(?:defined|declared|implemented)"
    r"|(?:defines?|declares?|implements?) (?:the )?(?:(?:function|class|method|constant|type|struct) )?"
    r"[`\"']?(?P<does>[A-Za-z_]\w*)(?:\(\))?[`\"']?"
    r"|is the (?:function|class|method|constant|type|struct|interface|enum) "
    r"[`\"']?(?P<the>[A-Za-z_]\w*)(?:\(\))?[`\"']?)"
    r"[?.]?$",
    re.IGNORECASE,
)
# They say what is asked, not what stands in the line.
_ASKING = frozenset(
    "appear assigned at begin called class code column constant contain created declare declared define "
    "defined definition entry file find first found function heading hold key line listed lines located "
    "mention mentioned method name named number occur of place say section selector set setting stand "
    "start state stated target there value variable which what where written".split()
)
_DEFINING = (
    "def|class|function|func|fn|struct|enum|trait|interface|type|const|let|var|static|final|mod|CREATE TABLE|"
    "public|private|protected|pub|void|int|long|double|float|char|bool|boolean|string|String|auto"
)
_QUOTE, _NAME, _DEFINED, _EXACT, _FORM = 12, 6, 4, 2, 1


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, numbered from 1."""

    path: str
    number: int
    text: str


def asks_for_line(task: str, files: Sequence[str]) -> bool:
    """Whether a question asks in which line of a file something stands.

    Example:
        >>> asks_for_line("In which line of a.py is LIMIT set?", ("a.py",))
        True
        >>> asks_for_line("Which line goes to the harbour?", ("a.py",))
        False
    """
    if _ASKED.search(task):
        return True
    return _PERHAPS.search(task) is not None and bool(named_files(task, files)) and "line" in task.lower()


def wants_numbers(task: str) -> bool:
    """Whether lines are shown with their numbers for this task."""
    return _ASKED.search(task) is not None or _PERHAPS.search(task) is not None


def line_asked_for(task: str, rows: Iterable[Line], files: Sequence[str]) -> Line | None:
    """Return the line that holds clearly the most of what is asked; None where several do, or none.

    Args:
        task: the question.
        rows: lines that may be meant, in their order.
        files: what exists, whose names in the question are no words to be found.

    Example:
        >>> rows = (Line("a.py", 1, "print(LIMIT)"), Line("a.py", 2, "LIMIT = 3"))
        >>> line_asked_for("In which line of a.py is LIMIT set?", rows, ("a.py",)).number
        2
    """
    if not _ASKED.search(task):
        return None
    text = task
    for path in sorted(named_files(task, files), key=len, reverse=True):
        text = text.replace(path, " ").replace(path.rpartition("/")[2], " ")
    quoted = [str(found[1] or found[2] or found[3]) for found in _QUOTED.finditer(text)]
    bare = _QUOTED.sub(" ", text)
    tokens = [word for word in _TOKEN.findall(bare)[2:] if word.lower() not in _ASKING] + quoted
    forms = [re.compile(forms_of(word)) for word in words_of(bare) if word not in _ASKING and len(word) > 2]
    names, defined = {*names_in(bare), *quoted}, _BEGINS.search(bare) is not None

    def score(line: Line) -> int:
        held = sum(_QUOTE for some in quoted if some in line.text)
        held += sum(_NAME for name in names if _is_in(name, line.text))
        held += sum(_EXACT for token in dict.fromkeys(tokens) if len(token) > 2 and _is_in(token, line.text))
        plain = f"{line.text.lower()} {parts_of(line.text)}"
        held += sum(_FORM for form in forms if form.search(plain))
        return held + _DEFINED * (held > 0 and defined and any(defines(line.text, token) for token in tokens))

    scored = [(score(line), line) for line in rows]
    best = max((held for held, _ in scored), default=0)
    found = [line for held, line in scored if held == best]
    return found[0] if best and len(found) == 1 else None


def definition_asked_for(task: str, rows: Iterable[Line]) -> tuple[str, Line] | None:
    """Return the name whose place is asked for and the only line that defines it; None for other questions.

    Example:
        >>> rows = (Line("a.py", 1, "fee(2)"), Line("b.py", 7, "def fee(kg):"))
        >>> definition_asked_for("In which file is the function fee defined?", rows)[1].path
        'b.py'
    """
    asked = _DEFINED_WHERE.search(task.strip())
    if asked is None:
        return None
    name = asked["is"] or asked["does"] or asked["the"]
    found = [line for line in rows if defines(line.text, name)]
    return (name, found[0]) if len(found) == 1 else None


def _is_in(token: str, text: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(token)}(?![\w$])", text) is not None


def defines(text: str, token: str) -> bool:
    """Whether a line gives a name its value or its body, in any of the usual languages."""
    name = re.escape(token)
    valued = (
        rf"^\s*(?:export |readonly |local )?[\"']?{name}[\"']?"
        r"(?:\s*:\s*[\w\[\], |]+)?\s*(?:[:+?]?=(?!=)|:(?!:))"
    )
    forms = (
        rf"\b(?:{_DEFINING})\b[\w\s<>\[\]*&,]*(?:\([^)]*\) )?\b{name}\b",
        valued,
        rf"^\s*#define {name}\b",
        rf"^\s*{name}\s*\(\)\s*\{{",
        rf"^\s*\[+{name}\]",
        rf"^[.#]?{name}\b[^;]*\{{\s*$",
        rf"^#+ .*\b{name}\b",
    )
    return any(re.search(form, text) for form in forms)
