"""Searching file contents in the merged view (WS-20, WS-33).

Here: which files are searched, what is skipped and why, pages of matches with their text.
Not here: running search programs (`ripgrep.py`, `python_search.py`), walking (`walk.py`).

The walk decides which files belong to the view. The engine then counts matching lines per
file, and only the files of the wanted page are looked at closely. So every result is one of
the merged view, whatever the engine saw meanwhile.
"""

import os
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bowerbird.core.errors import InvalidPattern, SearchTimeout, WorkspaceError
from bowerbird.workspace.glob import Glob, compile_glob
from bowerbird.workspace.listing import MOST_PRUNED, check_page
from bowerbird.workspace.nodes import Entry
from bowerbird.workspace.paths import add_path, shown, sort_paths
from bowerbird.workspace.python_search import PythonSearch
from bowerbird.workspace.ripgrep import (
    Query,
    Ripgrep,
    Running,
    batches,
    find_ripgrep,
    parse_counts,
    parse_numbers,
)
from bowerbird.workspace.text import HEAD, encoding_of, is_binary
from bowerbird.workspace.view import MergedView, open_regular
from bowerbird.workspace.walk import Found, Walker

LARGEST = 16 * 1024 * 1024
"""Files over this are skipped, in bytes."""
MOST_COUNTED = 10_000
MOST_SHOWN = 1000
LONGEST_TEXT = 500
TIMEOUT_S = 10.0
_FOR_PARTIAL_S = 1.0
_FEW_FILES = 500
_MOST_REMEMBERED = 200_000


class SearchMemory:
    """What searches learn and the next one uses; safe to share between branches.

    Files once found to be text are known by a hash of path, inode, size and times, so that
    their first 8 KiB are not read at every search.
    """

    def __init__(self) -> None:
        self.text: set[int] = set()
        self.met_large = False
        self._engine: Ripgrep | PythonSearch | None = None
        self._lock = threading.Lock()

    def use(self, engine: Ripgrep | PythonSearch) -> None:
        """Search with `engine` from now on."""
        with self._lock:
            self._engine = engine

    def engine(self) -> Ripgrep | PythonSearch:
        """Return the engine in use: ripgrep if it starts, else Python (shown in status)."""
        with self._lock:
            if self._engine is None:
                program = find_ripgrep()
                ripgrep = Ripgrep(program) if program is not None else None
                self._engine = ripgrep if ripgrep is not None and ripgrep.works() else PythonSearch()
            return self._engine


@dataclass(frozen=True, slots=True)
class Wanted:
    """One call of `search_files`; see WS-20 for the fields."""

    query: Query
    glob: Glob
    offset: int = 1
    limit: int = 100
    context: int = 0
    include_ignored: bool = False


@dataclass(slots=True)
class _Files:
    """The files of the walk, sorted into searched and skipped."""

    searched: list[str] = field(default_factory=list[str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    has_large: bool = False


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
        self._end = time.monotonic() + timeout_s
        self._deadline = self._end - min(_FOR_PARTIAL_S, timeout_s / 4)
        self._running: Running | None = None
        self._cancelled = False
        self._late = False

    def cancel(self) -> None:
        """End the search; `run` then returns or raises without delay."""
        self._cancelled = True
        if self._running is not None:
            self._running.kill()

    def run(self) -> dict[str, Any]:
        """Search and return the record.

        Raises:
            InvalidPattern: the pattern or glob cannot be used.
            SearchTimeout: out of time; `partial` is the record of what was found.
        """
        wanted = self._wanted
        found = Walker(self._view, wanted.glob, include_ignored=wanted.include_ignored, stop=self._over).run()
        sort_paths(found.files)
        counts, files = self._count(found)
        record = self._record(counts, files, found)
        if self._late:
            raise SearchTimeout(
                f"the search for {wanted.query.pattern!r} took longer than {TIMEOUT_S:.0f} s; "
                "narrow the glob or the pattern",
                partial=record,
            )
        return record

    def _over(self) -> bool:
        if time.monotonic() > self._deadline:
            self._late = True
        return self._late or self._cancelled

    # ------------------------------------------------------------ counting

    def _count(self, found: Found) -> tuple[dict[str, int], _Files]:
        """Return matching lines per searched file, and what was skipped."""
        if self._walks(found):
            return self._count_walking(found)
        files = self._classify(found)
        counts: dict[str, int] = {}
        hosts = self._hosts(files.searched, found.layered)
        for batch in batches(list(hosts)):
            # An empty batch still checks the pattern.
            while True:
                output, again = self._wait(self._start_files(batch), self._deadline)
                if not again:
                    break
            counts |= {hosts[h]: n for h, n in parse_counts(output).items() if h in hosts}
            if self._over():
                break
        return counts, files

    def _walks(self, found: Found) -> bool:
        """Whether ripgrep walks the workspace itself: faster unless much of it is left out."""
        return (
            isinstance(self._engine, Ripgrep)
            and len(found.files) - len(found.layered) > _FEW_FILES
            and found.left_out * 4 < len(found.files)
        )

    def _count_walking(self, found: Found) -> tuple[dict[str, int], _Files]:
        """Let ripgrep walk while we look at sizes; files that are not in the view are left out."""
        layered = _Files()
        for path, entry in found.layered.items():
            if entry.kind == "file":
                self._classify_one(path, entry, layered)
        extra = self._hosts(layered.searched, found.layered)
        first, *rest = batches(list(extra))
        largest = LARGEST if self._memory.met_large else None
        running = self._start_tree(found, first, largest)
        files = self._classify(found)
        if files.has_large and largest is None:
            # It would read them to the end: start again without them, and remember for next time.
            self._memory.met_large = True
            running.kill()
            running.wait(self._deadline)
            running = self._start_tree(found, first, LARGEST)
        outputs: list[bytes] = []
        output, again = self._wait(running, self._deadline)
        while again:
            output, again = self._wait(self._start_tree(found, first, LARGEST), self._deadline)
        outputs.append(output)
        outputs += [
            self._wait(self._start_files(batch), self._deadline)[0] for batch in rest if not self._over()
        ]
        searched = set(files.searched)
        counts: dict[str, int] = {}
        for host, number in ((h, n) for out in outputs for h, n in parse_counts(out).items()):
            path = os.fsdecode(host[1:]) if host.startswith(b"./") else extra.get(host, "")
            if path in searched and (host in extra) == (path in found.layered):
                counts[path] = number
        return counts, files

    def _start_tree(self, found: Found, extra: Sequence[bytes], largest: int | None) -> Running:
        root, engine = self._view.ground.root, self._engine
        if root is None or not isinstance(engine, Ripgrep):
            raise RuntimeError("only ripgrep walks, and only a workspace")
        start = self._wanted.glob.start
        self._running = engine.count_tree(
            self._wanted.query,
            root,
            start,
            excluded=found.pruned,
            suffixes=self._wanted.glob.suffixes,
            extra=extra,
            largest=largest,
        )
        return self._running

    def _start_files(self, files: Sequence[bytes]) -> Running:
        self._running = self._engine.count_files(self._wanted.query, files or [os.fsencode(os.devnull)])
        return self._running

    def _wait(self, running: Running, deadline: float) -> tuple[bytes, bool]:
        """Return a process's output, and whether it must be started again another way."""
        if self._cancelled:
            running.kill()
        output, complaints, ended = running.wait(deadline)
        self._running = None
        if not ended and not self._cancelled:
            self._late = True
        return output, ended and not output and self._engine.check(complaints, self._wanted.query)

    def _hosts(self, paths: Sequence[str], layered: Mapping[str, Entry]) -> dict[bytes, str]:
        """Return the host files that hold virtual paths."""
        root = os.fsencode(self._view.ground.root or "")
        hosts: dict[bytes, str] = {}
        for path in paths:
            entry = layered.get(path)
            source = entry.source if entry is not None else None
            hosts[os.fsencode(source) if source is not None else root + os.fsencode(path)] = path
        return hosts

    # ------------------------------------------------------------ what is searched

    def _classify(self, found: Found) -> _Files:
        files = _Files()
        for index, path in enumerate(found.files):
            if index % 256 == 0 and self._over():
                break
            self._classify_one(path, found.layered.get(path), files)
        return files

    def _classify_one(self, path: str, entry: Entry | None, files: _Files) -> None:
        """Sort one file into searched or skipped, by size and its first bytes."""
        host = entry.source if entry is not None else f"{self._view.ground.root}{path}"
        try:
            seen = os.lstat(host or "")
        except OSError:
            return  # removed since
        if not stat.S_ISREG(seen.st_mode):
            return
        if seen.st_size > LARGEST:
            files.skipped[path] = f"larger than {LARGEST // (1024 * 1024)} MiB"
            files.has_large = files.has_large or entry is None
            return
        key = hash((path, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns))
        if key not in self._memory.text:
            try:
                head = self._head(path, entry)
            except (OSError, WorkspaceError):
                files.skipped[path] = "cannot be read"
                return
            if is_binary(head):
                files.skipped[path] = "binary"
                return
            if len(self._memory.text) >= _MOST_REMEMBERED:
                self._memory.text.clear()
            self._memory.text.add(key)
        files.searched.append(path)

    def _head(self, path: str, entry: Entry | None) -> bytes:
        fd = open_regular(self._view, path, entry) if entry is not None else self._view.ground.open(path)
        try:
            return os.pread(fd, HEAD, 0)
        finally:
            os.close(fd)

    # ------------------------------------------------------------ the page

    def _record(self, counts: Mapping[str, int], files: _Files, found: Found) -> dict[str, Any]:
        wanted = self._wanted
        limit = min(wanted.limit or MOST_SHOWN, MOST_SHOWN)
        total = sum(counts.values())
        matches = self._page(counts, found, limit)
        skipped = sort_paths(list(files.skipped))
        return {
            "matches": matches,
            "total": min(total, MOST_COUNTED),
            "total_is_minimum": total > MOST_COUNTED or self._late,
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
        hosts = self._hosts(chosen, found.layered)
        numbers: dict[str, list[int]] = {}
        for batch in batches(list(hosts)):
            self._running = self._engine.number_lines(self._wanted.query, batch)
            output = self._wait(self._running, self._end)[0]
            numbers |= {hosts[host]: rows for host, rows in parse_numbers(output).items() if host in hosts}
        matches: list[dict[str, Any]] = []
        for path in chosen:
            rows = numbers.get(path, [])[skip : skip + limit - len(matches)]
            skip = 0
            matches += self._matches(path, rows, found.layered.get(path))
        return matches

    def _matches(self, path: str, rows: Sequence[int], entry: Entry | None) -> list[dict[str, Any]]:
        lines = self._lines(path, entry) if rows else []
        around = self._wanted.context
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

    def _lines(self, path: str, entry: Entry | None) -> list[str]:
        """Read a file's lines through handles."""
        try:
            entry = entry or self._view.lookup(path)
            fd = open_regular(self._view, path, entry)
        except (OSError, WorkspaceError):
            return []
        with os.fdopen(fd, "rb") as file:
            data = file.read(LARGEST)
        encoding = encoding_of(data[:HEAD], None)
        text = data[len(encoding.bom) :].decode(encoding.codec, "replace")
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        return lines[:-1] if lines[-1] == "" else lines


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
