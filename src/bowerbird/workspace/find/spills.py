"""Whole outputs of commands, readable under the name that commands see them by (SB-16).

Here: reading and searching `/run/bowerbird/out/<id>.txt`, which are files of a branch's directory and in no
view, list, diff or landing. Not here: writing them, how long they are kept (`sandbox`).
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import SearchTimeout
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.glob import Glob
from bowerbird.workspace.tree.handles import FILE
from bowerbird.workspace.tree.paths import PathInput

if TYPE_CHECKING:
    from bowerbird.workspace.find.python_search import PythonSearch
    from bowerbird.workspace.find.ripgrep import Query, Ripgrep, Running
    from bowerbird.workspace.find.search import SearchMemory, Wanted

_PLACE = ("run", "bowerbird", "out")
_PREFIX = "/".join(("", *_PLACE, ""))
_LONGEST_PIECE = 64 * 1024


def open_spill(branch: Path, given: PathInput) -> tuple[str, int] | None:
    """Return the virtual path and a handle of a stored output, None when `given` names none.

    Args:
        branch: the branch's directory.
    """
    if not isinstance(given, str) or "\0" in given:
        return None
    path = "/" + given.lstrip("/")
    for place in (_PREFIX, f"{branch}/out/"):  # without namespaces commands know it by the host's name
        if path.startswith(place):
            path = _PREFIX + path.removeprefix(place)
    name = path.removeprefix(_PREFIX)
    if name == path or not name.endswith(".txt") or "/" in name or name.startswith("."):
        return None
    try:
        handle = os.open(branch / "out" / name, FILE)
    except OSError as error:
        if presence.is_absence(error):
            return None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return path, handle


def is_spill(path: str) -> bool:
    """Whether a virtual path that was opened is a stored output's."""
    return path.startswith(_PREFIX)


def is_about_spills(glob: Glob) -> bool:
    """Whether a glob can fit stored outputs only."""
    return all(segments[:3] == _PLACE for segments in glob.alternatives)


def search_spills(branch: Path, wanted: "Wanted", memory: "SearchMemory") -> dict[str, Any]:
    """Search stored outputs; the record of WS-20. Memory holds the wanted page only, whatever their size.

    Raises:
        InvalidPattern: the pattern cannot be used. SearchTimeout: out of time.
    """
    from bowerbird.workspace.find.ripgrep import parse_counts, parse_numbers
    from bowerbird.workspace.find.search import MOST_COUNTED, MOST_SHOWN, TIMEOUT_S

    deadline = time.monotonic() + TIMEOUT_S
    hosts = {
        os.fsencode(file): f"{_PREFIX}{file.name}"
        for file in sorted((branch / "out").glob("*.txt"))
        if wanted.glob.match(f"{_PREFIX}{file.name}") and file.is_file() and not file.is_symlink()
    }
    limit = min(wanted.limit or MOST_SHOWN, MOST_SHOWN)
    last = wanted.offset - 1 + limit
    engine, query = memory.engine(), wanted.query
    counts = parse_counts(_output(engine, query, lambda: engine.count_files(query, list(hosts)), deadline))
    # Each file's first lines are enough for a page that begins in any of them.
    listed = _output(engine, query, lambda: engine.number_lines(query, list(counts), most=last), deadline)
    numbers = parse_numbers(listed)
    matches: list[dict[str, Any]] = []
    skip = wanted.offset - 1
    for host, path in hosts.items():
        chosen = numbers.get(host, [])[skip : skip + limit - len(matches)]
        skip = max(0, skip - counts.get(host, 0))
        matches += _matches(host, path, chosen, wanted.context)
    total = sum(counts.values())
    return {
        "matches": matches,
        "total": min(total, MOST_COUNTED),
        "total_is_minimum": total > MOST_COUNTED,
        "offset": wanted.offset,
        "truncated": wanted.offset - 1 + len(matches) < total,
        "skipped": [],
        "pruned": [],
    }


def _output(
    engine: "Ripgrep | PythonSearch", query: "Query", start: "Callable[[], Running]", deadline: float
) -> bytes:
    from bowerbird.workspace.find.search import TIMEOUT_S

    while True:
        output, complaints, ended = start().wait(deadline)
        if not ended:
            raise SearchTimeout(f"the search took longer than {TIMEOUT_S:.0f} s; use a simpler pattern")
        if output or not engine.check(complaints, query):
            return output


def _matches(host: bytes, path: str, rows: list[int], around: int) -> list[dict[str, Any]]:
    if not rows:
        return []
    needed = {n for row in rows for n in range(row - around, row + around + 1)}
    lines = {n: text for n, text in _lines(host, max(needed)) if n in needed}
    found: list[dict[str, Any]] = []
    for row in rows:
        match: dict[str, Any] = {"path": path, "line": row, "text": lines.get(row, "")}
        if around:
            match["before"] = [lines[n] for n in range(row - around, row) if n in lines]
            match["after"] = [lines[n] for n in range(row + 1, row + around + 1) if n in lines]
        found.append(match)
    return found


def _lines(host: bytes, last: int) -> Iterator[tuple[int, str]]:
    """Yield the first 500 characters of each line up to number `last`."""
    number, begins = 1, True
    try:
        handle = os.open(host, FILE)
    except FileNotFoundError:
        return  # its time was over
    with os.fdopen(handle, "rb") as file:
        from bowerbird.workspace.find.search import LONGEST_TEXT

        while number <= last and (piece := file.readline(_LONGEST_PIECE)):
            if begins:
                yield number, piece.rstrip(b"\r\n").decode("utf-8", "replace")[:LONGEST_TEXT]
            begins = piece.endswith(b"\n")
            number += begins
