"""Which new file was a deleted one before: by equal bytes, else by common lines (UI-87).

Here: pairs, each with how much of the lines is the same. Not here: hunks, marks, landing; both paths stay
changes of their own.

Similarity is git's measure: bytes of common lines, of the larger file's. A pair needs half. All work is
linear in the bytes looked at: a line that stands in many deleted files tells nothing and is not followed, and
where there is more than `_MOST_BYTES` to read only equal bytes count.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bowerbird.workspace.tree.changes import Change
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Side

LEAST = 50
_MOST_BYTES = 16 * 1024 * 1024
_LARGEST = 1024 * 1024
_SMALLEST = 16
_COMMON = 16  # deleted files with a line, beyond which it is not followed
_TRIED = 4  # candidates of a new file that are compared whole


class Rename(msgspec.Struct, frozen=True):
    """Where a new file was before: the deleted change, and the same lines in percent (100 = equal bytes)."""

    source: Change
    similarity: int


def renames_of(changes: Sequence[Change]) -> dict[str, Rename]:
    """Return what became of deleted files, by the new path; by likeness each becomes one at most."""
    gone, made = _gone_and_made(changes)
    found = _equal(gone, made)
    by_path = {c.path: c for c in gone}
    taken = {rename.source.path for rename in found.values()}
    pairs = _similar([c for c in gone if c.path not in taken], [c for c in made if c.path not in found])
    for score, _, old, new in sorted(pairs, key=lambda pair: (-pair[0], not pair[1], pair[2], pair[3])):
        if old not in taken and new not in found:
            taken.add(old)
            found[new] = Rename(by_path[old], score)
    return found


def perhaps_moved(changes: Sequence[Change]) -> list[tuple[str, str]]:
    """Return each deleted file with each new one that it may have become, whichever is the likeliest."""
    return _pairs(*_gone_and_made(changes))


def perhaps_replaced(changes: Sequence[Change], made: Sequence[Change]) -> list[tuple[str, str]]:
    """Return each file whose name something else has now, with each new one that it may have become."""
    made = [c for c in made if c.base is None and _comparable(c.new)]
    old = [c for c in changes if c.new is not None and _comparable(c.base)] if made else []
    pairs = _pairs(old, made)
    stayed = {c.path for c in old if c.path in {path for path, _ in pairs} and _is_still_there(c)}
    return [pair for pair in pairs if pair[0] not in stayed]


def _pairs(old: Sequence[Change], made: Sequence[Change]) -> list[tuple[str, str]]:
    equal = [(rename.source.path, new) for new, rename in _equal(old, made).items()]
    return [*equal, *((path, new) for _, _, path, new in _similar(old, made))]


def _is_still_there(change: Change) -> bool:
    base, new = _content(change.base), _content(change.new)
    if base is None or new is None:
        return False
    return base.same(new) or _similarity(_lines(change.base), _lines(change.new)) >= LEAST


def _gone_and_made(changes: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    gone = [c for c in changes if c.new is None and _content(c.base) is not None]
    made = [c for c in changes if c.base is None and _content(c.new) is not None]
    return (gone, made) if gone and made else ([], [])


def _content(side: Side | None) -> Content | None:
    content = side.content if side is not None else None
    return content if content is not None and content.size else None


def _comparable(side: Side | None) -> bool:
    content = _content(side)
    return content is not None and _SMALLEST <= content.size <= _LARGEST


def _equal(gone: Iterable[Change], made: Iterable[Change]) -> dict[str, Rename]:
    """Pair by bytes; only where sizes are equal a file is hashed, and each once."""
    by_size: dict[int, list[Change]] = defaultdict(list)
    for change in gone:
        if (content := _content(change.base)) is not None:
            by_size[content.size].append(change)
    digests: dict[int, dict[str, Change]] = {}
    found: dict[str, Rename] = {}
    for change in made:
        content = _content(change.new)
        if content is None or content.size not in by_size:
            continue
        if content.size not in digests:
            known = digests[content.size] = {}
            for one in by_size[content.size]:
                if (old := _content(one.base)) is not None:
                    known.setdefault(old.digest(), one)
        source = digests[content.size].get(content.digest())
        if source is not None:
            found[change.path] = Rename(source, 100)
    return found


def _similar(gone: Sequence[Change], made: Sequence[Change]) -> list[tuple[int, bool, str, str]]:
    """Return each pair that is alike: how much, whether of one name, the deleted path, the new one."""
    gone, made = [c for c in gone if _comparable(c.base)], [c for c in made if _comparable(c.new)]
    sides = [*(c.base for c in gone), *(c.new for c in made)]
    size = sum(content.size for side in sides if (content := _content(side)) is not None)
    if not gone or not made or size > _MOST_BYTES:
        return []
    lines = {c.path: _lines(c.base) for c in gone}
    where: dict[int, list[str]] = defaultdict(list)
    for path, counted in lines.items():
        for line in counted:
            where[line].append(path)
    pairs: list[tuple[int, bool, str, str]] = []
    for change in made:
        own = _lines(change.new)
        for path in _candidates(own, where):
            score = min(_similarity(own, lines[path]), 99)  # lines in another order
            if score >= LEAST:
                same_name = change.path.rpartition("/")[2] == path.rpartition("/")[2]
                pairs.append((score, same_name, path, change.path))
    return pairs


def _lines(side: Side | None) -> Mapping[int, int]:
    """Return the bytes of each line of a text, all its occurrences together; nothing of what is no text."""
    content = _content(side)
    data = content.read() if content is not None else b""
    if b"\0" in data[:8192]:
        return {}
    counted: Counter[int] = Counter()
    for line in data.splitlines(keepends=True):
        counted[hash(line)] += len(line)
    return counted


def _candidates(own: Mapping[int, int], where: Mapping[int, Sequence[str]]) -> list[str]:
    shared: Counter[str] = Counter()
    for line, size in own.items():
        paths = where.get(line, ())
        if len(paths) <= _COMMON:
            for path in paths:
                shared[path] += size
    return [path for path, _ in sorted(shared.items(), key=lambda row: (-row[1], row[0]))[:_TRIED]]


def _similarity(one: Mapping[int, int], other: Mapping[int, int]) -> int:
    """Return the bytes of common lines in percent of the larger side's.

    >>> _similarity({1: 30, 2: 10}, {1: 30, 3: 30})
    50
    """
    common = sum(min(size, other[line]) for line, size in one.items() if line in other)
    return 100 * common // max(sum(one.values()), sum(other.values()), 1)
