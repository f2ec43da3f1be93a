"""A row that a task adds to a table: put together by code from the values that the task names.

Here: which value belongs to which column, the row in the table's own form; pure. Not here: rows whose values
do not all follow, which a model writes (`rewrite.py`). A small model drops a column, or changes another row.
"""

import csv
import io
import re
from collections.abc import Sequence

from bowerbird.models.local.task_words import forms_of, parts_of

_ADDS = re.compile(
    r"^(?:please |now |could you |can you )*(?P<verb>add|append|enter|insert|put|record|note)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:column|before|between|instead|each|every|rows|lines|first|top|above|below)\b", re.IGNORECASE
)
_PATH = re.compile(r"[\w./-]+\.(?:csv|tsv)\b")
_TOKEN = re.compile(r"[^\s,;\"'()]+")
_OPEN_END = re.compile(r"\b(?:and|at|by|for|from|in|of|on|the|to|with)$")
_CAPITALS = re.compile(r"(?<![\w.])(?!(?:The|On|In|At|A|An|It|We|By|For)\b)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
TABLES = (".csv", ".tsv")
_MOST_TASK, _MOST_ROWS = 600, 5_000
_NEAR = 3


def with_row(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a table's lines and the row that a task adds; None where a column's value does not follow.

    Example:
        >>> with_row("Add a row: Ann ate 3 figs.", "a.csv", ["who,figs,plums", "Ben,2,1"]) is None
        True
        >>> with_row("Add a row: Ann ate 3 figs and 4 plums.", "a.csv", ["who,figs,plums", "Ben,2,1"])[-1]
        'Ann,3,4'
    """
    table = path.lower().endswith(TABLES) and 1 < len(lines) <= _MOST_ROWS
    if not table or not adds_row(task):
        return None
    sign = max("\t;,|", key=lines[0].count)
    try:
        rows = [row for row in csv.reader(lines, delimiter=sign) if row]
    except csv.Error:
        return None
    header = rows[0] if rows else []
    if len(rows) < 2 or len(header) < 2 or any(len(row) != len(header) for row in rows):
        return None
    said = re.sub(r"\s(?:to|into|in) *$", "", _PATH.sub("", _ADDS.sub("", task)).rstrip(" .?!"))
    listed = re.split(r"\b(?:line|row|entry|record)\b", said.partition(":")[2] or said)[-1]
    values = _as_listed(listed, rows) or _by_column(said, header, rows[1:])
    if values is None:
        return None
    out = io.StringIO()
    csv.writer(out, delimiter=sign, lineterminator="").writerow(values)
    return [*lines, out.getvalue()]


def adds_row(task: str) -> bool:
    """Whether a task adds something that may be a row."""
    return len(task) <= _MOST_TASK and bool(_ADDS.match(task)) and not _NOT.search(_PATH.sub("", task))


def _as_listed(said: str, rows: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the values where the task lists them as the table does: as many, each as its column has them."""
    cells = [cell.strip().strip("\"'`") for cell in re.split(r"[,;\t]", said)]
    if len(cells) != len(rows[0]) or not all(cells):
        return None
    for column, cell in enumerate(cells):
        forms = {_form(row[column]) for row in rows[1:]}
        if _form(cell) not in forms or (
            len(cell.split()) > 1 + max(len(row[column].split()) for row in rows[1:])
        ):
            return None
    return cells


def _form(cell: str) -> str:
    if re.fullmatch(r"-?\d+(?:\.\d+)?", cell):
        return "number"
    return "date" if re.fullmatch(r"[\d:./-]+", cell) else "words" if cell else ""


def _by_column(said: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str] | None:
    """Return a value for each column: what has its form beside its name, or one that it held before."""
    tokens = [found[0].rstrip(".:!?") for found in _TOKEN.finditer(said)]
    values, taken = dict[int, str](), set[int]()
    numbers = [n for n, token in enumerate(tokens) if re.fullmatch(r"-?\d+(?:\.\d+)?", token)]
    for column, name in enumerate(header):
        cells = [row[column] for row in rows]
        shapes = {re.sub(r"\d", "0", cell) for cell in cells}
        if all(_form(cell) == "date" for cell in cells):
            held = [
                n for n, token in enumerate(tokens) if n not in taken and re.sub(r"\d", "0", token) in shapes
            ]
        elif all(_form(cell) == "number" for cell in cells):
            held = _beside(name, tokens, [n for n in numbers if n not in taken])
        else:
            continue
        if len(held) != 1:
            return None
        values[column] = tokens[held[0]]
        taken.add(held[0])
    if [n for n in numbers if n not in taken]:
        return None  # a number of the task that no column takes
    for column in range(len(header)):
        if column not in values:
            known = _known(said, {row[column] for row in rows})
            if known is not None:
                values[column] = known
    left = [column for column in range(len(header)) if column not in values]
    if len(left) == 1:
        new = _name_in(said, list(values.values()))
        if new is not None and not _is_closed([row[left[0]] for row in rows]):
            values[left[0]] = new
    return [values[column] for column in range(len(header))] if len(values) == len(header) else None


def _beside(name: str, tokens: Sequence[str], numbers: Sequence[int]) -> list[int]:
    """Return which of the numbers stands nearest to a column's name, as "6 cars", or "number 7"."""
    words = [word for word in re.findall(r"[a-z]+", parts_of(name.replace("_", " "))) if len(word) > 1]
    at = [
        n for n, token in enumerate(tokens) if any(re.search(forms_of(word), token.lower()) for word in words)
    ]
    pairs = [(abs(n - m), n > m, n) for m in at for n in numbers if abs(n - m) <= _NEAR]
    return [min(pairs)[2]] if pairs else []


def _known(said: str, cells: set[str]) -> str | None:
    """Return the one cell of a column that the task names."""
    held = [
        cell for cell in cells if len(cell) > 1 and re.search(rf"(?<!\w){re.escape(cell)}(?! [A-Z]|\w)", said)
    ]
    longest = [cell for cell in held if not any(cell != other and cell in other for other in held)]
    return longest[0] if len(longest) == 1 else None


def _is_closed(cells: Sequence[str]) -> bool:
    """Whether a column holds few words again and again, so that a new one is no name."""
    return all(cell.islower() for cell in cells) and len(set(cells)) * 2 <= len(cells)


def _name_in(said: str, taken: Sequence[str]) -> str | None:
    """Return the one name of the text that is no value yet: words with a capital, or in quotes."""
    for value in taken:
        said = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", ";", said)
    quoted = re.findall(r"\"([^\"]+)\"|“([^”]+)”|`([^`]+)`", said)
    if len(quoted) == 1:
        return next(filter(None, quoted[0]))
    names = re.findall(
        r"(?<![\w.])(?!(?:The|On|In|At|A|An|It|We|By|For)\b)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*", said
    )
    if len(names) != 1:
        return None
    # "…, Platform nine, …" is a name of two words, "the film Static with …" is not.
    alone = (part.strip() for part in re.split(r"[,;:]", said))
    whole = [part for part in alone if part.startswith(names[0]) and len(part.split()) <= _NEAR]
    return whole[0] if whole and not _OPEN_END.search(whole[0]) else names[0]
