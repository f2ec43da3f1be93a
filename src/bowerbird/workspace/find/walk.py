"""Walking the merged view for files that fit a glob, past what is ignored (WS-19, WS-32).

Here: one pass over workspace directories and layers together. Not here: records, reading
the listed files, following links (walks never enter linked directories).

The workspace is read with `scandir` through handles; where no layer says anything about a
directory, its names are taken as they come. Cost is that of `os.walk` plus the changes.
"""

import os
from collections.abc import Callable, Mapping

import msgspec

from bowerbird.workspace.find.gitignored import ignore_text
from bowerbird.workspace.tree.descent import Descent
from bowerbird.workspace.tree.glob import Glob
from bowerbird.workspace.tree.ground import LANDING_PLACE
from bowerbird.workspace.tree.ignore import NAMES, Chain, extended, ignored
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import EMPTY, Entry, Node, find
from bowerbird.workspace.tree.reserved import RESERVED, is_reserved

_IGNORE_NAMES = frozenset(NAMES)
_NOTHING: Mapping[str, Node] = {}


class Found(msgspec.Struct):
    """What a walk met.

    Attributes:
        files: paths of regular files that fit, in no order.
        links: paths of symbolic links that fit.
        layered: the entries of those files that a layer holds; others are the workspace's.
        stats: of workspace files among them, where the walk was asked for it.
        pruned: directories that were skipped by ignore rules.
        left_out: how many files that fit were left out by ignore rules.
    """

    files: list[str] = msgspec.field(default_factory=list[str])
    links: list[str] = msgspec.field(default_factory=list[str])
    layered: dict[str, Entry] = msgspec.field(default_factory=dict[str, Entry])
    stats: dict[str, os.stat_result] = msgspec.field(default_factory=dict[str, os.stat_result])
    pruned: list[str] = msgspec.field(default_factory=list[str])
    left_out: int = 0


class _Frame(msgspec.Struct, frozen=True):
    """One directory still to be read."""

    path: str
    node: Node | None
    in_ground: bool
    chain: Chain


class Walker:
    """One walk.

    Args:
        view: made for this call; its tree is read once.
        glob: what to find.
        include_ignored: walk everywhere.
        with_stats: also take the stat of workspace files, while their directory is at hand.
        stop: asked once per directory; True ends the walk early.
        without_git: enter no `.git`, even where everything is walked.
    """

    def __init__(
        self,
        view: MergedView,
        glob: Glob,
        *,
        include_ignored: bool = False,
        with_stats: bool = False,
        stop: Callable[[], bool] | None = None,
        without_git: bool = False,
    ) -> None:
        self._view = view
        self._glob = glob
        self._all = include_ignored
        self._without_git = without_git
        self._stop = stop
        self._stats: dict[str, os.stat_result] | None = {} if with_stats else None
        ground = view.ground
        self._plain = ground.masked is None and not ground.hides
        self._found = Found()
        self._descent: Descent | None = None
        name_test = glob.name_test
        self._test_name: Callable[[str], bool] = name_test or _any
        self._test_path: Callable[[str], bool] | None = None if name_test else glob.match

    def run(self, after_first: Callable[[Found], None] | None = None) -> Found:
        """Walk and return what was found.

        Args:
            after_first: called with what the first directory alone gave, before the others.
        """
        start = self._glob.start
        if is_reserved(start):
            return self._found
        node = find(self._view.tree, start) or EMPTY
        entry = self._view.lookup(start)
        if entry is None or entry.kind != "dir":
            return self._found
        has_ground = self._view.ground.root is not None and not node.cut
        root = self._view.ground.open_root() if has_ground else -1
        try:
            self._descent = Descent(root) if has_ground else None
            todo = [_Frame("" if start == "/" else start, node, has_ground, self._rules_above(start))]
            self._directory(todo.pop(), todo)
            if after_first is not None:
                after_first(self._found)
            while todo:
                if self._stop is not None and self._stop():
                    break
                self._directory(todo.pop(), todo)
        finally:
            if self._descent is not None:
                self._descent.close()
                os.close(root)
        return self._found

    def _rules_above(self, start: str) -> Chain:
        """The rules of directories above the start, unless they ignore it: then it was named."""
        rules: Chain = ()
        above = ""
        for name in start[1:].split("/") if start != "/" else []:
            if self._all:
                return ()
            rules = self._with_rules(rules, above, self._ignore_files(above or "/"))
            above = f"{above}/{name}"
            if name == ".git" or ignored(rules, above, name, is_dir=True):
                rules = ()
        return rules

    def _ignore_files(self, path: str) -> list[str]:
        return [name for name in NAMES if self._view.lookup(f"{path.rstrip('/')}/{name}") is not None]

    def _directory(self, frame: _Frame, todo: list[_Frame]) -> None:
        if self._stats is not None:
            self._stats = {}
        dirs: list[tuple[str, Node | None, bool]] = []
        files: list[str] = []
        links: list[str] = []
        rules: list[str] = []
        over = frame.node.children if frame.node is not None else _NOTHING
        # What the branch made may lie below directories that the workspace has not.
        in_ground = frame.in_ground and self._scan(frame.path, over, (dirs, files, links, rules))
        layered: dict[str, Entry] = {}
        for name, inner in over.items():
            entry = inner.entry
            if entry is None or (not frame.path and name in RESERVED) or not self._shows(frame.path, name):
                continue
            if entry.kind == "dir":
                dirs.append((name, inner, in_ground and not inner.cut))
            elif entry.kind != "special":
                if name in _IGNORE_NAMES and entry.kind == "file":
                    rules.append(name)
                if self._test_name(name):
                    (files if entry.kind == "file" else links).append(name)
                    layered[name] = entry
        chain = frame.chain
        if rules and not self._all:
            chain = self._with_rules(chain, frame.path, [name for name in NAMES if name in rules])
        self._take(frame.path, files, chain, self._found.files, layered)
        self._take(frame.path, links, chain, self._found.links, layered)
        if self._glob.depth is None or frame.path.count("/") + 1 < self._glob.depth:
            self._descend(frame.path, dirs, chain, todo)

    def _scan(
        self,
        path: str,
        over: Mapping[str, Node],
        into: tuple[list[tuple[str, Node | None, bool]], list[str], list[str], list[str]],
    ) -> bool:
        """Read one workspace directory, without names that a layer overrides; False when there is none."""
        dirs, files, links, rules = into
        try:
            fd = self._descent.open(path) if self._descent is not None else None
        except PermissionError:
            return True  # not ours to read: as `os.walk`
        if fd is None:
            return False
        test, plain, stats = self._test_name, self._plain, self._stats
        with os.scandir(fd) as items:
            for item in items:
                name = item.name
                if (over and name in over) or (not path and name in RESERVED):
                    continue
                if not plain and not self._shows(path, name):
                    continue
                if item.is_dir(follow_symlinks=False):
                    if not name.startswith(LANDING_PLACE):
                        dirs.append((name, None, True))
                elif item.is_file(follow_symlinks=False):
                    if test(name):
                        files.append(name)
                        if stats is not None:
                            try:
                                stats[name] = item.stat(follow_symlinks=False)
                            except FileNotFoundError:
                                continue  # removed since
                    if name in _IGNORE_NAMES:
                        rules.append(name)
                elif item.is_symlink() and test(name):
                    links.append(name)
        return True

    def _shows(self, above: str, name: str) -> bool:
        return self._plain or self._view.ground.shows_in(above, name)

    def _take(
        self, above: str, names: list[str], chain: Chain, into: list[str], layered: dict[str, Entry]
    ) -> None:
        named = self._glob.literal_names
        for name in names:
            path = f"{above}/{name}"
            if self._test_path is not None and not self._test_path(path):
                continue
            if chain and ignored(chain, path, name, is_dir=False) and name not in named:
                self._found.left_out += 1
                continue
            into.append(path)
            if name in layered:
                self._found.layered[path] = layered[name]
            elif self._stats is not None and name in self._stats:
                self._found.stats[path] = self._stats[name]

    def _descend(
        self, above: str, dirs: list[tuple[str, Node | None, bool]], chain: Chain, todo: list[_Frame]
    ) -> None:
        named = self._glob.literal_names
        for name, node, in_ground in dirs:
            if self._without_git and name == ".git":
                continue
            path = f"{above}/{name}"
            inner = chain
            if not self._all and (name == ".git" or (chain and ignored(chain, path, name, is_dir=True))):
                if name not in named:
                    self._found.pruned.append(path)
                    continue
                inner = ()  # named literally: what ignored it says nothing about its content
            todo.append(_Frame(path, node, in_ground, inner))

    def _with_rules(self, chain: Chain, above: str, names: list[str]) -> Chain:
        for name in names:
            chain = extended(chain, ignore_text(self._view, f"{above}/{name}"), len(above) + 1)
        return chain


def _any(name: str) -> bool:
    del name
    return True
