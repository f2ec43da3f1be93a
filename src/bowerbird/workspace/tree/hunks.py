"""Line differences of two byte strings as hunks that can be named and taken one by one.

Here: computing hunks with libgit2, their ids, applying a chosen subset, finding lines.
Not here: files and branches, the three-way merge (`threeway.py`), patch files (`compare/patch.py`).

A line ends at LF only and keeps its ending, so carriage returns, encodings and a missing
final newline are ordinary bytes.
"""

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bowerbird.core.errors import Stale

LINE_LIMIT = 400_000  # the worst line diff of so many takes 2 s, so that a merge stays below 5 s
_NO_NEWLINE = b"\n\\ No newline at end of file\n"
_TRIM_FROM = 1024
_MARGIN = 16  # equal lines left around what differs, for context and for runs of equal lines
_FORCE_TEXT = 1 << 20  # GIT_DIFF_FORCE_TEXT; whether a file is text was decided before
_HEADER = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@[^\n]*\n", re.MULTILINE)
_HEADING = re.compile(rb"^(@@ -[0-9,]+ \+[0-9,]+ @@)[^\n]+\n", re.MULTILINE)


Spans = tuple[int, int, int, int]
"""First line and count of the old side, then of the new side, as in a patch's header."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One changed region, with its context lines.

    Attributes:
        id: `h_` + 26 characters; a function of path, base bytes, position and content.
        old_start, new_start: 1-based first line, 0 when the side has no line (as in patches).
        body: the lines as a patch shows them, each behind ` `, `+`, `-` or `\\`.
    """

    id: str
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    body: bytes
    added: int
    removed: int

    @property
    def text(self) -> str:
        """The body as text; undecodable bytes show as U+FFFD."""
        return self.body.decode("utf-8", "replace")

    def record(self) -> dict[str, Any]:
        """Return the form of WS-35."""
        return {
            "id": self.id,
            "old_start": self.old_start,
            "old_lines": self.old_lines,
            "new_start": self.new_start,
            "new_lines": self.new_lines,
            "text": self.text,
        }


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines with their endings; only LF ends a line.

    Example:
        >>> split_lines(b"a\\r\\nb")
        [b'a\\r\\n', b'b']
    """
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    if last:
        lines.append(last)
    return lines


def patch_data(old: bytes, new: bytes, context: int) -> bytes:
    """Return the hunks of a patch as text, without headings, b"" when equal."""
    # A heading after the second @@ repeats a line of the file, cut at any byte: dropped.
    return _HEADING.sub(rb"\1\n", _raw_hunks(old, new, context))


def _raw_hunks(old: bytes, new: bytes, context: int) -> bytes:
    import pygit2

    patch = pygit2.Patch.create_from(
        old,
        new,
        flag=_FORCE_TEXT,  # pyright: ignore[reportArgumentType] -- the enum's module loads slowly
        context_lines=context,
        interhunk_lines=0,
    )
    data = patch.data
    start = _HEADER.search(data)
    return data[start.start() :] if start else b""


def too_long(old: bytes, new: bytes) -> bool:
    """Whether a line diff of the two could take seconds: too many lines between equal ends."""
    if max(len(old), len(new)) <= LINE_LIMIT:
        return False  # a line has at least one byte
    start = _common(old, new, ends=False)
    rest_old, rest_new = old[start:], new[start:]
    end = _common(rest_old, rest_new, ends=True)
    lines = (side.count(b"\n", 0, len(side) - end) for side in (rest_old, rest_new))
    return max(lines) > LINE_LIMIT


def _common(a: bytes, b: bytes, ends: bool) -> int:
    """Length of the common prefix (or suffix) by bisection over whole-slice compares."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        same = a[len(a) - middle :] == b[len(b) - middle :] if ends else a[:middle] == b[:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


def _starts_line(data: bytes, at: int, first: int) -> bool:
    """Whether a line starts at `at`; one starts at `first`."""
    return at == first or data[at - 1] == 10


def _trimmed(old: bytes, new: bytes) -> tuple[bytes, bytes, int]:
    """Return both sides without far equal ends, and how many lines were cut off before them.

    libgit2 hashes what it compares; for a small edit in a large file that is most of the work.
    """
    if min(len(old), len(new)) < _TRIM_FROM:
        return old, new, 0
    start = _common(old, new, ends=False)
    equal = _common(old[start:], new[start:], ends=True)
    first = start
    for _ in range(_MARGIN + 1):
        first = old.rfind(b"\n", 0, first)
        if first < 0:
            break
    first += 1
    last = len(old) - equal
    for _ in range(_MARGIN + 1):
        last = old.find(b"\n", last) + 1
        if last == 0:
            last = len(old)
            break
    return old[first:last], new[first : len(new) - (len(old) - last)], old.count(b"\n", 0, first)


def base_hash(old: bytes | None) -> str:
    """Return the digest by which hunk ids know their base; None = the file did not exist."""
    return "none" if old is None else hashlib.sha256(old).hexdigest()


def hunks_of(path: str, old: bytes | None, new: bytes, context: int = 3) -> tuple[Hunk, ...]:
    """Return the hunks that turn `old` into `new`, in order.

    Args:
        path: virtual path, part of every id.
        old: base bytes, None when the file did not exist.
        context: unchanged lines shown around a change; ids of other contexts differ.
    """
    seed = hashlib.sha256(os.fsencode(path) + b"\0" + base_hash(old).encode() + b"\0")
    found: list[Hunk] = []
    for spans, body in _parts(old or b"", new, context):
        summed = seed.copy()
        summed.update(b"%d,%d\0" % spans[:2] + body)
        added = body.count(b"\n+") + body.startswith(b"+")
        removed = body.count(b"\n-") + body.startswith(b"-")
        found.append(Hunk("h_" + summed.hexdigest()[:26], *spans, body, added, removed))
    return tuple(found)


def _parts(old: bytes, new: bytes, context: int) -> Iterator[tuple[Spans, bytes]]:
    """Yield spans and body of each hunk."""
    if old == new:
        return
    only = _only_region(old, new, context)
    if only is not None:
        yield only
        return
    before, after, skipped = _trimmed(old, new) if context <= _MARGIN else (old, new, 0)
    data = _raw_hunks(before, after, context)
    heads = list(_HEADER.finditer(data))
    for index, head in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(data)
        old_start, old_lines, new_start, new_lines = (
            int(group) if group is not None else 1 for group in head.groups()
        )
        yield (old_start + skipped, old_lines, new_start + skipped, new_lines), data[head.end() : end]


def _only_region(old: bytes, new: bytes, context: int) -> tuple[Spans, bytes] | None:
    """Return the hunk of two texts that differ in one place, None when there may be several.

    Most edits are of this kind. Between the equal ends no line is common to both sides, so
    the difference needs no search; libgit2 gives the same hunk, five times slower.
    """
    start = _common(old, new, ends=False)
    equal = _common(old[start:], new[start:], ends=True)
    first = old.rfind(b"\n", 0, start) + 1
    last = len(old) - equal
    shift = len(new) - len(old)
    if not (_starts_line(old, last, first) and _starts_line(new, last + shift, first)):
        last = old.find(b"\n", last) + 1 or len(old)
    gone, come = split_lines(old[first:last]), split_lines(new[first : last + shift])
    if gone and come and not set(gone).isdisjoint(come):
        return None
    above, below = first, last
    for _ in range(context):
        above = old.rfind(b"\n", 0, max(above - 1, 0)) + 1
        below = old.find(b"\n", below) + 1 or len(old)
    top, bottom = split_lines(old[above:first]), split_lines(old[last:below])
    skipped = old.count(b"\n", 0, above)
    old_lines, new_lines = len(top) + len(gone) + len(bottom), len(top) + len(come) + len(bottom)
    spans = (skipped + bool(old_lines), old_lines, skipped + bool(new_lines), new_lines)
    marked = ((b" ", top), (b"-", gone), (b"+", come), (b" ", bottom))
    lines = [mark + line for mark, group in marked for line in group]
    return spans, b"".join(line if line.endswith(b"\n") else line + _NO_NEWLINE for line in lines)


def apply_hunks(old: bytes, new: bytes, hunks: Sequence[Hunk], chosen: Collection[str]) -> bytes:
    """Return `old` with the hunks whose ids are in `chosen`.

    Args:
        new: the bytes that `hunks` lead to.
        hunks: all hunks between the two, as `hunks_of` gave them.

    Raises:
        Stale: an id in `chosen` is not among `hunks`.
    """
    unknown = set(chosen) - {hunk.id for hunk in hunks}
    if unknown:
        raise Stale(f"hunk {min(unknown)} is not a present change; look at the diff again")
    old_parts, new_parts = split_lines(old), split_lines(new)
    out: list[bytes] = []
    at = 0
    for hunk in hunks:
        if hunk.id not in chosen:
            continue
        start = _first(hunk.old_start, hunk.old_lines)
        out += old_parts[at:start]
        begin = _first(hunk.new_start, hunk.new_lines)
        out += new_parts[begin : begin + hunk.new_lines]
        at = start + hunk.old_lines
    out += old_parts[at:]
    return b"".join(out)


class LineChange(msgspec.Struct, frozen=True):
    """Base lines `start` … `end` (0-based, half open) became the other side's `new_start` … `new_end`."""

    start: int
    end: int
    new_start: int
    new_end: int


def line_changes(old: bytes, new: bytes) -> list[LineChange]:
    """Return the changed regions without context, in order; neighbours are ≥ 1 line apart."""
    changes: list[LineChange] = []
    for head in _HEADER.finditer(_raw_hunks(old, new, 0)):
        old_start, old_lines, new_start, new_lines = (
            int(group) if group is not None else 1 for group in head.groups()
        )
        start, begin = _first(old_start, old_lines), _first(new_start, new_lines)
        changes.append(LineChange(start, start + old_lines, begin, begin + new_lines))
    return changes


def _first(start: int, lines: int) -> int:
    """0-based index of a region; a patch counts an empty one by the line before it."""
    return start - 1 if lines else start
