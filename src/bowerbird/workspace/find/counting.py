"""Counting matching lines in all files of a search (WS-33).

Here: whether ripgrep walks by itself or gets the files named, starting it before our own walk
ends, its time and its end. Not here: which line is shown (`search.py`).

The walk decides which files belong to the view; an engine only adds numbers to them. So
ripgrep may start from what the last walk skipped: what it sees beyond the view is left out,
and when it would see less, it is started again.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from bowerbird.workspace.find.python_search import PythonSearch
from bowerbird.workspace.find.ripgrep import Query, Ripgrep, Running, batches, parse_counts
from bowerbird.workspace.find.searchable import LARGEST, SearchMemory, SortedFiles, sort_files
from bowerbird.workspace.find.walk import Found, Walker
from bowerbird.workspace.tree.glob import Glob
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.paths import sort_paths

_FOR_THE_PAGE_S = 1.0
_FEW_FILES = 500


class Wanted(msgspec.Struct, frozen=True):
    """One call of `search_files`; see WS-20 for the fields."""

    query: Query
    glob: Glob
    offset: int = 1
    limit: int = 100
    context: int = 0
    include_ignored: bool = False


class Watch:
    """Time and cancellation of one search, and the processes that run for it.

    Args:
        timeout_s: of the whole search; counting ends before, so that a page can be shown.
    """

    def __init__(self, engine: Ripgrep | PythonSearch, query: Query, timeout_s: float) -> None:
        self._engine = engine
        self._query = query
        self._end = time.monotonic() + timeout_s
        self._deadline = self._end - min(_FOR_THE_PAGE_S, timeout_s / 4)
        self._running: list[Running] = []
        self.cancelled = False
        self.late = False

    def over(self) -> bool:
        """Tell whether counting must end."""
        if time.monotonic() > self._deadline:
            self.late = True
        return self.late or self.cancelled

    def cancel(self) -> None:
        """End everything that runs; from any thread."""
        self.cancelled = True
        for running in list(self._running):
            running.kill()

    def started(self, running: Running) -> Running:
        """Take a process into account."""
        self._running.append(running)
        if self.cancelled:
            running.kill()
        return running

    def drop(self, running: Running) -> None:
        """End a process whose output is of no use."""
        running.kill()
        running.wait(self._end)
        self._running.remove(running)

    def wait(self, running: Running, *, for_page: bool = False) -> tuple[bytes, bool]:
        """Return a process's output, and whether it must be started again another way.

        Raises:
            InvalidPattern: the engine refuses the pattern.
        """
        output, complaints, ended = running.wait(self._end if for_page else self._deadline)
        self._running.remove(running)
        if not ended and not self.cancelled:
            self.late = True
        return output, ended and not output and self._engine.check(complaints, self._query)

    def close(self) -> None:
        """End and release whatever still runs (an error came in between)."""
        for running in list(self._running):
            self.drop(running)


class Counting:
    """The first half of a search.

    Args:
        view: made for this call.
        watch: of the search.
    """

    def __init__(self, view: MergedView, wanted: Wanted, memory: SearchMemory, watch: Watch) -> None:
        self._view = view
        self._wanted = wanted
        self._memory = memory
        self._watch = watch
        self._engine = memory.engine()
        self._kind = (view.ground.root, wanted.glob.pattern, wanted.include_ignored)

    def run(self) -> tuple[dict[str, int], SortedFiles, Found]:
        """Walk and count: matching lines per file that has some, what was skipped, the walk."""
        wanted = self._wanted
        known = self._memory.pruned(self._kind)
        early: list[tuple[Running, frozenset[str]]] = []

        def start(found: Found) -> None:
            if known is None and self._is_broad():
                pruned = frozenset(found.pruned)
                early.append((self._start_tree(pruned), pruned))

        if known is not None:
            early.append((self._start_tree(known), known))
        walker = Walker(
            self._view,
            wanted.glob,
            include_ignored=wanted.include_ignored,
            with_stats=True,
            stop=self._watch.over,
        )
        found = walker.run(start)
        sort_paths(found.files)
        pruned = frozenset(found.pruned)
        walks = self._walks(found, begun=bool(early))
        self._memory.remember(self._kind, pruned if walks else None)
        running = None
        for begun, excluded in early:
            # Left out too much, or, on the first search, not yet the large directories below.
            if not walks or not excluded <= pruned or (known is None and excluded < pruned):
                self._watch.drop(begun)
            else:
                running = begun
        if walks:
            counts, files = self._count_walking(found, running)
        else:
            files = sort_files(self._view, found, self._memory, self._watch.over)
            counts = self._count_named(files.searched, found)
        return counts, files, found

    def _is_broad(self) -> bool:
        """Whether the glob takes most files below its start, so that ripgrep may begin at once."""
        glob = self._wanted.glob
        ripgrep = isinstance(self._engine, Ripgrep) and self._view.ground.root is not None
        return ripgrep and (bool(glob.suffixes) or glob.takes_any_name)

    def _walks(self, found: Found, *, begun: bool) -> bool:
        """Whether ripgrep walks the workspace itself: faster unless much of it is left out."""
        return (
            isinstance(self._engine, Ripgrep)
            and (begun or len(found.files) - len(found.layered) > _FEW_FILES)
            and found.left_out * 4 < len(found.files)
        )

    def _count_walking(self, found: Found, early: Running | None) -> tuple[dict[str, int], SortedFiles]:
        """Let ripgrep walk the workspace while we look at sizes; count in layers by name."""
        running = early or self._start_tree(found.pruned)
        knew_large = self._memory.met_large
        files = sort_files(self._view, found, self._memory, self._watch.over)
        if files.has_large and not knew_large:
            # It would read them to the end: start again without them, and remember for next time.
            self._memory.met_large = True
            self._watch.drop(running)
            running = self._start_tree(found.pruned)
        in_layers = [path for path in files.searched if path in found.layered]
        counts = self._count_named(in_layers, found) if in_layers else {}
        output, again = self._watch.wait(running)
        while again:
            output, again = self._watch.wait(self._start_tree(found.pruned))
        searched = set(files.searched)
        for host, number in parse_counts(output).items():
            path = os.fsdecode(host[1:])
            if path in searched and path not in found.layered:
                counts[path] = number
        return counts, files

    def _count_named(self, paths: Sequence[str], found: Found) -> dict[str, int]:
        """Count in files given by name; an empty list still checks the pattern."""
        counts: dict[str, int] = {}
        hosts = host_files(self._view, paths, found.layered)
        for batch in batches(list(hosts)):
            again = True
            output = b""
            while again:
                running = self._engine.count_files(self._wanted.query, batch or [os.fsencode(os.devnull)])
                output, again = self._watch.wait(self._watch.started(running))
            counts |= {hosts[h]: n for h, n in parse_counts(output).items() if h in hosts}
            if self._watch.over():
                break
        return counts

    def _start_tree(self, pruned: "Sequence[str] | frozenset[str]") -> Running:
        root, engine = self._view.ground.root, self._engine
        if root is None or not isinstance(engine, Ripgrep):
            raise RuntimeError("only ripgrep walks, and only a workspace")
        running = engine.count_tree(
            self._wanted.query,
            root,
            self._wanted.glob.start,
            excluded=sorted(pruned),
            suffixes=self._wanted.glob.suffixes,
            largest=LARGEST if self._memory.met_large else None,
        )
        return self._watch.started(running)


def host_files(view: MergedView, paths: Sequence[str], layered: Mapping[str, Entry]) -> dict[bytes, str]:
    """Return the host files that hold virtual paths, each with its path."""
    root = os.fsencode(view.ground.root or Path())
    hosts: dict[bytes, str] = {}
    for path in paths:
        entry = layered.get(path)
        source = entry.source if entry is not None else None
        hosts[os.fsencode(source) if source is not None else root + os.fsencode(path)] = path
    return hosts
