"""Searching file contents in the merged view (WS-20, WS-33).

Here: the page of matches with their text, the record, running out of time.
Not here: which files are searched (`searchable.py`), counting (`counting.py`), walking.

Counting tells how many lines match in which file; only the files of the wanted page are then
looked at closely, and their lines are read through our own handles.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from bowerbird.core.errors import InvalidPattern, SearchTimeout, WorkspaceError
from bowerbird.workspace.find.counting import Counting, Wanted, Watch, host_files
from bowerbird.workspace.find.listing import MOST_PRUNED, check_page
from bowerbird.workspace.find.ripgrep import Query, batches, parse_numbers
from bowerbird.workspace.find.searchable import LARGEST, SearchMemory, SortedFiles
from bowerbird.workspace.find.text import HEAD, encoding_of, lines_of
from bowerbird.workspace.find.walk import Found
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.glob import compile_glob
from bowerbird.workspace.tree.merged_view import MergedView, open_regular
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import add_path, shown, sort_paths

MOST_COUNTED = 10_000
MOST_SHOWN = 1000
LONGEST_TEXT = 500
TIMEOUT_S = 10.0
_SHORT_TEXT = 256 * 1024  # characters that may be split at once, see `lines_of`


class Search:
    """One search; `run` works in a thread, `cancel` ends it from another.

    Args:
        view: made for this call.
        memory: see `SearchMemory`.
        timeout_s: after which SearchTimeout is raised with what was found.
    """

    def __init__(
        self, view: MergedView, wanted: Wanted, memory: SearchMemory, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._view = view
        self._wanted = wanted
        self._memory = memory
        self._engine = memory.engine()
        self._timeout_s = timeout_s
        self._watch = Watch(self._engine, wanted.query, timeout_s)

    def cancel(self) -> None:
        """End the search; `run` then returns or raises without delay."""
        self._watch.cancel()

    def run(self) -> dict[str, Any]:
        """Search and return the record.

        Raises:
            InvalidPattern: the pattern or glob cannot be used.
            SearchTimeout: out of time; `partial` is the record of what was found.
        """
        try:
            counts, files, found = Counting(self._view, self._wanted, self._memory, self._watch).run()
            record = self._record(counts, files, found)
        finally:
            self._watch.close()
        if self._watch.late:
            raise SearchTimeout(
                f"the search for {self._wanted.query.pattern!r} took longer than {self._timeout_s:g} s; "
                "narrow the glob or the pattern",
                partial=record,
            )
        return record

    def _record(self, counts: Mapping[str, int], files: SortedFiles, found: Found) -> dict[str, Any]:
        wanted = self._wanted
        limit = min(wanted.limit or MOST_SHOWN, MOST_SHOWN)
        total = sum(counts.values())
        matches = self._page(counts, found, limit)
        skipped = sort_paths(list(files.skipped))
        return {
            "matches": matches,
            "total": min(total, MOST_COUNTED),
            "total_is_minimum": total > MOST_COUNTED or self._watch.late,
            "offset": wanted.offset,
            "truncated": wanted.offset - 1 + len(matches) < total,
            "skipped": [add_path({}, "path", path) | {"reason": files.skipped[path]} for path in skipped],
            "pruned": [shown(path) for path in sort_paths(found.pruned)[:MOST_PRUNED]],
        }

    def _page(self, counts: Mapping[str, int], found: Found, limit: int) -> list[dict[str, Any]]:
        """Number and read the lines of the files that the page touches."""
        skip = self._wanted.offset - 1
        left = limit
        chosen: list[str] = []
        for path in sort_paths(list(counts)):
            number = counts[path]
            if not chosen and skip >= number:
                skip -= number
                continue
            chosen.append(path)
            left -= number if len(chosen) > 1 else number - skip
            if left <= 0:
                break
        if not chosen:
            return []
        hosts = host_files(self._view, chosen, found.layered)
        numbers: dict[str, list[int]] = {}
        for batch in batches(list(hosts)):
            running = self._watch.started(self._engine.number_lines(self._wanted.query, batch))
            output = self._watch.wait(running, for_page=True)[0]
            numbers |= {hosts[host]: rows for host, rows in parse_numbers(output).items() if host in hosts}
        matches: list[dict[str, Any]] = []
        for path in chosen:
            rows = numbers.get(path, [])[skip : skip + limit - len(matches)]
            skip = 0
            matches += self._matches(path, rows, found.layered.get(path))
        return matches

    def _matches(self, path: str, rows: Sequence[int], entry: Entry | None) -> list[dict[str, Any]]:
        around = self._wanted.context
        lines = self._lines(path, entry, rows[-1] + around) if rows else []
        found: list[dict[str, Any]] = []
        for row in rows:
            if row > len(lines):
                continue  # the file shrank meanwhile
            match = add_path({}, "path", path)
            match |= {"line": row, "text": lines[row - 1][:LONGEST_TEXT]}
            if around:
                match["before"] = [line[:LONGEST_TEXT] for line in lines[max(0, row - 1 - around) : row - 1]]
                match["after"] = [line[:LONGEST_TEXT] for line in lines[row : row + around]]
            found.append(match)
        return found

    def _lines(self, path: str, entry: Entry | None, most: int) -> list[str]:
        """Read the first `most` lines of a file through handles; the walk said whether a layer has it."""
        try:
            fd = open_regular(self._view, path, entry) if entry is not None else self._view.ground.open(path)
        except WorkspaceError:
            return []  # gone, or put in another kind's place since
        except OSError as error:
            if presence.is_absence(error):
                return []
            raise
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return []  # put there since
        with os.fdopen(fd, "rb") as file:
            data = file.read(LARGEST)
        encoding = encoding_of(data[:HEAD], None)
        text = data[len(encoding.bom) :].decode(encoding.codec, "replace")
        short = len(text) <= _SHORT_TEXT
        lines = text.removesuffix("\n").split("\n", most)[:most] if short else islice(lines_of(text), most)
        return [line.removesuffix("\r") for line in lines]


def wanted_of(
    pattern: str,
    glob: str,
    *,
    offset: int,
    limit: int,
    fixed: bool,
    case_sensitive: bool,
    context: int,
    include_ignored: bool,
) -> Wanted:
    """Check the arguments of `search_files`; raises InvalidPattern or InvalidArgument."""
    check_page(offset, limit)
    if "\n" in pattern or "\0" in pattern:
        raise InvalidPattern("a pattern fits within one line: it must not contain a newline or NUL")
    query = Query(pattern, fixed, case_sensitive)
    return Wanted(query, compile_glob(glob), offset, limit, max(0, min(context, 20)), include_ignored)
