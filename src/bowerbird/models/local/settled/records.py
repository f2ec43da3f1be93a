"""A value of one record that a task sets: the price of the roll, the beds of the Eagle, when the jazz starts.

Here: which record and which of its values are meant, the lines with the new value; pure. Not here: names that
stand alone with their value (`values.py`), rows that are added (`rows.py`).

A record is a line with several named values, a row of a table, or a block of lines with a value each. It is
meant where it alone holds a word of the task; its value is meant where the task names it, or where no other
value of the record has the form of the new one.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bowerbird.models.local.settled.values import Wanted, holds_in, is_unit, telling, units_fit, wanted_value
from bowerbird.models.local.task_words import parts_of

_MOST_LINES = 2_000
_PAIR = re.compile(
    r"(?P<key>[\"']?[A-Za-z_][\w -]*[\"']?)\s*[:=]\s*"
    r"(?P<quote>[\"']?)(?P<value>\d[\d_.:-]*|(?:true|false|on|off|yes|no)\b)(?P=quote)(?=\s*(?:[,;})\]]|$))"
)
_NAMED = re.compile(r"[\"']?[A-Za-z_][\w -]*[\"']?\s*[:=]")
_BLOCK_BEGIN = re.compile(r"^\s*(?:- |\[{1,2}[^\]]+\]{1,2}\s*$|\{\s*$|[\w\"' .-]+[:=]?\s*\{\s*$)")
_ENTRY = re.compile(r"^\s*(?:- )?[\"']?[A-Za-z_][\w-]*[\"']?\s*[:=]\s*\S")
_SHAPES = (
    ("time", re.compile(r"\d{1,2}:\d{2}")),
    ("date", re.compile(r"\d{4}-\d{2}-\d{2}")),
    ("version", re.compile(r"\d+\.\d+\.\d+")),
    ("number", re.compile(r"\d[\d_]*(?:\.\d+)?")),
)
_TELLING = ("time", "date", "version")
"""Forms that say what a value is, where a plain number may be anything."""


@dataclass(frozen=True, slots=True)
class _Cell:
    line: int
    begin: int
    end: int
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class _Record:
    text: str
    cells: tuple[_Cell, ...]


def with_field(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a file's lines with the value that a task sets in one record; None where it is open which.

    Example:
        >>> with_field("Set the age of Ann to 9.", "a.js", ['{name: "Ann", age: 8}', '{name: "Bo", age: 7}'])
        ['{name: "Ann", age: 9}', '{name: "Bo", age: 7}']
    """
    wanted = wanted_value(task) if len(lines) <= _MOST_LINES else None
    if wanted is None:
        return None
    records = list(_table(lines) if path.lower().endswith((".csv", ".tsv")) else _records(lines))
    words = [word for word in telling(task, wanted) if len(word) > 2]
    texts = [f"{parts_of(record.text.replace('_', ' '))} {record.text.lower()}" for record in records]
    found = [(n, word) for word in words if not is_unit(word) for n in _alone(word, texts)]
    if len({n for n, _ in found}) != 1 or len(records) < 2:
        return None
    record = records[found[0][0]]
    cell = _cell(record, wanted, words, task)
    keys = " ".join(parts_of(each.key.replace("_", " ")) for each in record.cells)
    if cell is None or all(holds_in(word, keys) for _, word in found):
        return None  # a record is told by what it holds, not by what its values are called
    value = wanted.instead_of(cell.value)
    if not value or value == cell.value:
        return None
    old = lines[cell.line]
    return [*lines[: cell.line], old[: cell.begin] + value + old[cell.end :], *lines[cell.line + 1 :]]


def _alone(word: str, texts: Sequence[str]) -> list[int]:
    """Return the one text that holds a word; nothing where several do."""
    held = [n for n, text in enumerate(texts) if holds_in(word, text)]
    return held if len(held) == 1 else []


def _cell(record: _Record, wanted: Wanted, words: Sequence[str], task: str) -> _Cell | None:
    """Return the value of a record that is set: the only one with its form, or the one whose name is said."""
    shape = _shape(wanted.new)
    fits = [
        cell
        for cell in record.cells
        if (wanted.instead_of(cell.value) if wanted.switched else _shape(cell.value) == shape)
        and (not wanted.old or cell.value == wanted.old)
        and units_fit(cell.key, task)
    ]
    said = [
        cell for cell in fits if any(holds_in(word, parts_of(cell.key.replace("_", " "))) for word in words)
    ]
    if len(said) == 1:
        return said[0]
    return fits[0] if len(fits) == 1 and not said and shape in _TELLING else None


def _shape(value: str) -> str:
    return next((name for name, form in _SHAPES if form.fullmatch(value)), "")


def _records(lines: Sequence[str]) -> Iterator[_Record]:
    """Give the lines that hold several named values, and the blocks of lines that hold one each."""
    block: list[int] = []
    for n, line in enumerate([*lines, ""]):
        several = len(_NAMED.findall(line)) > 1
        if several:
            yield _Record(line, tuple(_cells_of(lines, n)))
        begins = _BLOCK_BEGIN.match(line) is not None
        if begins or several or not _ENTRY.match(line):
            if len(block) > 1:
                cells = [cell for at in block for cell in _cells_of(lines, at)]
                yield _Record("\n".join(lines[at] for at in block), tuple(cells))
            block = [n] if begins else []
        elif block:
            block.append(n)


def _cells_of(lines: Sequence[str], at: int) -> Iterator[_Cell]:
    for found in _PAIR.finditer(lines[at]):
        yield _Cell(at, found.start("value"), found.end("value"), found["key"].strip("\"' "), found["value"])


def _table(lines: Sequence[str]) -> Iterator[_Record]:
    """Give the rows of a table without quotes, where a cell's place is known."""
    sign = max("\t;,", key=lines[0].count) if lines else ","
    try:
        rows = list(csv.reader(lines[:1], delimiter=sign))
    except csv.Error:
        return
    header = rows[0] if rows else []
    for n, line in enumerate(lines[1:], 1):
        parts = line.split(sign)
        if '"' in line or len(parts) != len(header) or len(header) < 2:
            continue
        cells, begin = list[_Cell](), 0
        for key, part in zip(header, parts, strict=True):
            cells.append(_Cell(n, begin, begin + len(part), key, part))
            begin += len(part) + 1
        yield _Record(line, tuple(cells))
