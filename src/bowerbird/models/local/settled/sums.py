"""A sum, a mean or a number of rows of a small table: computed where the question names column and cells.

Here: what is computed of which rows, and its result; pure. Not here: tables that were not seen whole,
conditions and comparisons, which are computed by code that a model writes (`choices.py`).
"""

import csv
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

from bowerbird.models.local.task_words import forms_of, parts_of

_OTHER = re.compile(
    r"\b(?:than|least|most|highest|lowest|largest|smallest|longest|shortest|biggest|per|each|every|which|who|where|when|"
    r"whose|below|above|under|half|between|since|before|after|until|percent|without|not|no|never|except|only|or|"
    r"different|distinct|difference|cost|pay|worth|price)\b|\bover \d",
    re.IGNORECASE,
)
_MEAN = re.compile(r"\b(?:average|mean)\b", re.IGNORECASE)
_SUM = re.compile(
    r"\b(?:total|sum|in all|altogether|together|combined|over all|overall|across|add \S+ up|add up)\b",
    re.IGNORECASE,
)
_MANY = re.compile(r"\bhow (?:many|much) (?P<what>[a-z]+)", re.IGNORECASE)
_PATH = re.compile(r"[\w./-]+\.(?:csv|tsv)\b")
_AMOUNT = re.compile(r"-?\d+(?:\.\d+)?")
_CAPITAL = re.compile(r"(?<=[\w,] )[A-Z][\w'-]*")


def sum_of(task: str, path: str, lines: Sequence[str], *, is_beginning: bool = False) -> str | None:
    """Return what is said of the sum, mean or number that a question asks of a whole table; None for others.

    Args:
        is_beginning: these are the first lines: whether the whole table may settle the question.

    Example:
        >>> sum_of("How many figs did Ann eat in all?", "a.csv", ["who,figs", "Ann,2", "Ben,5", "Ann,1"])
        'The sum of figs in a.csv where who is Ann is 3 (2 rows).'
    """
    asked = _PATH.sub(" ", task)
    if (
        len(task) > 300
        or _OTHER.search(asked)
        or not path.lower().endswith((".csv", ".tsv"))
        or len(lines) < 2
    ):
        return None
    sign = max("\t;,|", key=lines[0].count)
    try:
        header, *rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=sign) if row]
    except (csv.Error, ValueError):
        return None
    if len(header) < 2 or not rows or any(len(row) != len(header) for row in rows):
        return None
    columns = [[row[n] for row in rows] for n in range(len(header))]
    amounts = [
        n
        for n, cells in enumerate(columns)
        if all(map(_AMOUNT.fullmatch, cells)) and not _are_years(cells) and not (n == 0 and _are_ids(cells))
    ]
    cells = _named(asked, header, columns, amounts, is_beginning)
    if cells is None:
        return None
    kept = [row for row in rows if all(row[n] == cell for n, cell in cells.items())]
    where = " and ".join(f"{header[n]} is {cell}" for n, cell in cells.items())
    of = f"in {path}{f' where {where}' if where else ''}"
    column = _column(asked, header, amounts)
    many, sums = _MANY.search(asked), _SUM.search(asked) or _MEAN.search(asked)
    if not (cells or path in task or (sums and column is not None and _says(asked, header[column]))):
        return None  # another table, or no table, may be meant
    if many and column is not None and not sums and not _says(many["what"], header[column]):
        return None
    if column is not None and (many or sums):
        total = sum((Decimal(row[column]) for row in kept), Decimal())
        if _MEAN.search(asked):
            total = round(total / len(kept), 2)
        what = "mean" if _MEAN.search(asked) else "sum"
        rows_of = f"{len(kept)} row{'' if len(kept) == 1 else 's'}"
        return f"The {what} of {header[column]} {of} is {_plain(total)} ({rows_of})."
    stem = parts_of(path.rpartition("/")[2].rpartition(".")[0])
    if (
        many
        and cells
        and column is None
        and re.search(forms_of(many["what"].lower().removesuffix("s")), stem)
    ):
        return f"{len(kept)} row{'' if len(kept) == 1 else 's'} {of}."
    return None


def _are_years(cells: Sequence[str]) -> bool:
    return all(re.fullmatch(r"(?:19|20)\d\d", cell) for cell in cells)


def _are_ids(cells: Sequence[str]) -> bool:
    """Whether a column numbers the rows: each by one more than the one before."""
    numbers = [int(cell) for cell in cells] if all(cell.isdigit() for cell in cells) else []
    return len(numbers) > 2 and all(b - a == 1 for a, b in pairwise(numbers))


def _named(
    asked: str,
    header: Sequence[str],
    columns: Sequence[Sequence[str]],
    amounts: Sequence[int],
    is_beginning: bool,
) -> dict[int, str] | None:
    """Return the cells that a question names, by column; None where one is open, or a name in no column."""
    found: dict[int, str] = {}
    left, plain = asked, asked.lower()
    for n, cells in enumerate(columns):
        if n in amounts:
            continue
        held = {
            cell
            for cell in set(cells)
            if len(cell) > 1
            and cell.lower() in plain
            and re.search(rf"(?<![\w-]){re.escape(cell)}(?:e?s|['’]s?)?(?![\w-])", asked, re.IGNORECASE)
        }
        if len(held) > 1:
            return None
        for cell in held:
            found[n] = cell
            left = re.sub(re.escape(cell), " ", left, flags=re.IGNORECASE)
    names = [name for name in _CAPITAL.findall(left) if name.lower() not in {head.lower() for head in header}]
    return None if (names and not is_beginning) or re.search(r"\d", left) else found


def _says(text: str, name: str) -> bool:
    words = re.findall(r"[a-z]{3,}", parts_of(name.replace("_", " ")))
    return any(re.search(forms_of(word.removesuffix("s")), parts_of(text)) for word in words)


def _column(asked: str, header: Sequence[str], amounts: Sequence[int]) -> int | None:
    """Return the column of amounts that a question names first; the only one where it asks for a sum."""
    plain = parts_of(asked)
    at: dict[int, int] = {}
    for n in amounts:
        words = re.findall(r"[a-z]{3,}", parts_of(header[n].replace("_", " ")))
        places = [
            found.start() for word in words if (found := re.search(forms_of(word.removesuffix("s")), plain))
        ]
        if places:
            at[n] = min(places)
    if at:
        return min(at, key=lambda n: at[n])
    return amounts[0] if len(amounts) == 1 and (_SUM.search(asked) or _MEAN.search(asked)) else None


def _plain(amount: Decimal) -> str:
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
