"""Which paths of a workspace no branch shows: rules as `.gitignore` writes them (WS-9, D-10).

Here: the quick test that every look at a path asks. Not here: which rules there are (settings), what hiding
means to a view (`ground.py`), to processes (`processes/mask.py`), or to whoever asks for such a path
(`paths.py`).

A rule without a slash fits a name at any depth, one with a slash a path from the root; what lies below a
match is hidden too; `!` takes a name out again; the last rule that fits decides.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from bowerbird.core.errors import InvalidPattern
from bowerbird.workspace.tree.glob import compile_glob, is_literal, unescaped
from bowerbird.workspace.tree.ignore import IgnoreFile

_MOST_RULES = 400
_MOST_CHARS = 8192
_MOST_KEPT_CHARS = 1 << 20


class Hiding:
    """The test for paths that rules hide, in whatever case a name is written.

    Asking costs little for each name, whatever the rules.

    Raises:
        InvalidPattern: a rule is malformed, or there are too many.

    Example:
        >>> hides = Hiding([".env", ".env.*", "!.env.example"])
        >>> hides("/app/.env"), hides("/app/.env.example")
        (True, False)
    """

    def __init__(self, rules: Collection[str]) -> None:
        lines = [line.lower() for rule in rules for line in _lines(rule)]
        if len(lines) > _MOST_RULES or sum(map(len, lines)) > _MOST_CHARS:  # an ignore file may hold more
            raise InvalidPattern(
                f"workspace.hide: over {_MOST_RULES} globs, or over {_MOST_CHARS} characters"
            )
        self._rules = IgnoreFile("\n".join(lines))
        self._by_name = lru_cache(maxsize=8192)(self._hides_name)
        self._directories = {"": False}  # a process may nest them thousands deep, with paths as long
        self._chars = 0
        self._has_paths = self._rules.files.has_paths
        # What a name must be, begin or end with for any rule to hide it: most names are done with that.
        self._exact, self._starts, self._ends = _quick(line for line in lines if not line.startswith("!"))

    def __call__(self, path: str) -> bool:
        """Tell whether a virtual path, or anything above it, is hidden."""
        above, _, name = path.lower().rpartition("/")
        if not name:
            return False
        known = self._directories.get(above)
        return (self._directory(above) if known is None else known) or self._below(above, name)

    def _directory(self, path: str) -> bool:
        """As a call, for the directories that are asked about again and again."""
        known = self._directories.get(path)
        if known is None:
            above, _, name = path.rpartition("/")
            known = self._directories.get(above)
            if known is None:
                known = self._from_the_top(above)
            known = known or self.below(above, name)
            self._chars += len(path)
            if self._chars > _MOST_KEPT_CHARS:
                self._directories, self._chars = {"": False}, len(path)
            self._directories[path] = known
        return known

    def _from_the_top(self, path: str) -> bool:
        above = ""
        for name in path[1:].split("/"):
            if self.below(above, name):
                return True
            above = f"{above}/{name}"
        return False

    @property
    def suspects(self) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
        """Names, beginnings and ends of names, in lower case: no rule hides a name that has none of them."""
        return self._exact, self._starts, self._ends

    def below(self, above: str, name: str) -> bool:
        """Tell whether a name is hidden in a directory (`""` = the root) that is not hidden itself."""
        name = name.lower()
        if name not in self._exact and not name.endswith(self._ends) and not name.startswith(self._starts):
            return False  # here already: a review asks of every path
        return self._below(above.lower(), name)

    def _below(self, above: str, name: str) -> bool:
        if name not in self._exact and not name.endswith(self._ends) and not name.startswith(self._starts):
            return False
        if not self._has_paths:
            return self._by_name(name)
        return self._rules.decide(name, f"{above}/{name}"[1:], is_dir=False) is True

    def _hides_name(self, name: str) -> bool:
        return self._rules.decide(name, "", is_dir=False) is True


def hidden_by(rules: Collection[str]) -> Hiding | None:
    """Return the test, None when there are no rules."""
    return Hiding(rules) if rules else None


def _lines(rule: str) -> Iterator[str]:
    """Return a rule as lines of an ignore file; raises InvalidPattern where a glob is malformed."""
    negated = rule.startswith("!")
    glob = (rule[1:] if negated else rule).rstrip("/")
    if "\n" in glob:
        raise InvalidPattern(f"glob {glob!r} has a line break")
    free = "/" not in glob  # at any depth
    for segments in compile_glob(glob or "/").alternatives:
        body = "/".join(segments) if not free else segments[0]
        quoted = "\\" if free and body[0] in "#!" else ""
        yield f"{'!' if negated else ''}{'' if free else '/'}{quoted}{body}"


def _quick(lines: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    """Return names, beginnings and ends of names, one of which every match of these lines has."""
    exact: set[str] = set()
    starts: set[str] = set()
    ends: set[str] = set()
    for line in lines:
        name = line.rpartition("/")[2]
        literal = is_literal(name)
        start = re.match(r"(?:[^*?\[\\]|\\.)*", name, re.DOTALL)
        end = re.search(r"[^*?\[\]\\]*$", name, re.DOTALL)
        if literal:
            exact.add(unescaped(name))
        elif start is not None and start[0]:
            starts.add(unescaped(start[0]))
        else:
            ends.add(end[0] if end is not None else "")  # "" = any name
    return frozenset(exact), tuple(starts), tuple(ends)
