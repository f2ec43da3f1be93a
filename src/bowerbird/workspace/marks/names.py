"""Finding the table's rows for a path, by names alone.

Here: how names are compared, and an index of the patterns of `table.py`. Not here: what surroundings
say (`surroundings.py`), settings.

Names are compared as the least careful file system would: without regard to case (APFS, NTFS), without
characters that HFS+ ignores, without the dots and blanks that NTFS drops at the end, and with the short
names that NTFS makes up for git's own files. `.GIT`, `.g\\u200cit`, `git~1` and `.git.` are all `.git`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from bowerbird.workspace.marks.table import ROWS, Row

# What HFS+ leaves out when it compares names; as in git's utf8.c.
_IGNORED = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
_SHORT = re.compile(r"^(?:(git)|(gitmod|gi7eba)|(gitatt|gi7d29)|(gitign|gi250a))~\d$")
_SHORT_OF = (".git", ".gitmodules", ".gitattributes", ".gitignore")
_UNUSUAL = re.compile(r"[~:\s]|\.$")


def folded(name: str) -> str:
    r"""Return the form in which a name is compared.

    >>> folded(".GIT"), folded("git~1"), folded(".git::$INDEX_ALLOCATION"), folded(".g\u200cit")
    ('.git', '.git', '.git', '.git')
    """
    if not name.isascii():
        name = unicodedata.normalize("NFC", name.translate(_IGNORED))
    name = name.casefold()
    if _UNUSUAL.search(name) is None or name.strip(".") == "":
        return name
    bare = name.partition(":")[0].rstrip(". ") or name
    short = _SHORT.match(bare)
    return bare if short is None else _SHORT_OF[(short.lastindex or 1) - 1]


@lru_cache(maxsize=64)  # a dozen rules ask for the same path, one after the other
def folded_parts(path: str) -> tuple[str, ...]:
    """Return the components of a virtual path, folded."""
    if path.isascii() and _UNUSUAL.search(path) is None and "./" not in path:
        return tuple(path[1:].lower().split("/"))
    return tuple(folded(part) for part in path[1:].split("/"))


class _Pattern(NamedTuple):
    """Directories above, then a name that begins and ends so; `name` is set where it has no gap."""

    above: tuple[str, ...]
    name: str | None
    start: str
    end: str
    row: Row
    rooted: bool

    def fits(self, parts: Sequence[str]) -> bool:
        """Whether the last components fit."""
        last, width = parts[-1], len(self.above)
        if self.name is None:
            if len(last) < len(self.start) + len(self.end):
                return False
            if not (last.startswith(self.start) and last.endswith(self.end)):
                return False
        elif last != self.name:
            return False
        if self.rooted and len(parts) != width + 1:
            return False
        return not width or tuple(parts[-1 - width : -1]) == self.above


class _Index:
    """The patterns of all rows, by what tells quickly that they do not fit."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.names: dict[str, list[_Pattern]] = {}
        self.gaps: list[_Pattern] = []
        self.places: dict[str, list[tuple[tuple[str, ...], Row]]] = {}
        for row in rows:
            for text in row.patterns.split():
                self._add(text, row)
        self.starts = tuple({p.start for p in self.gaps if p.start})
        self.ends = tuple({p.end for p in self.gaps if not p.start})

    def _add(self, text: str, row: Row) -> None:
        if text.endswith("/"):
            place = tuple(text.strip("/").split("/"))
            self.places.setdefault(place[0], []).append((place, row))
            return
        *above, last = text.lstrip("/").split("/")
        start, gap, end = last.partition("*")
        name = None if gap else last
        pattern = _Pattern(tuple(above), name, start, end, row, text.startswith("/"))
        if name is None:
            self.gaps.append(pattern)
        else:
            self.names.setdefault(name, []).append(pattern)

    def rows(self, parts: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of a path's folded components."""
        last = parts[-1]
        yield from (pattern.row for pattern in self.names.get(last, ()) if pattern.fits(parts))
        if last.startswith(self.starts) or last.endswith(self.ends):
            yield from (pattern.row for pattern in self.gaps if pattern.fits(parts))
        if self.places.keys().isdisjoint(parts):
            return
        for at, part in enumerate(parts):
            for place, row in self.places.get(part, ()):
                if tuple(parts[at : at + len(place)]) == place:
                    yield row


@lru_cache(maxsize=1)
def _index() -> _Index:
    return _Index(ROWS)


def rows_of(parts: Sequence[str]) -> list[Row]:
    """Return the table's rows for a path's folded components, in no particular order."""
    return list(_index().rows(parts))


def begins_place(name: str) -> bool:
    """Whether a folded name is the first of a row's directories: a link of this name stands for all of it.

    >>> begins_place(".github"), begins_place("src")
    (True, False)
    """
    return name in _index().places
