"""Ignore rules as `.gitignore` writes them (WS-32).

Here: one ignore file compiled to quick tests, and the decision along a chain of them.
Not here: which files are read (`walk.py`), what a pruned directory means to a call.

Most names match no rule, so each file first asks sets, prefixes and suffixes at C speed; only
a name that may match walks the rules, last one first, as git does.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bowerbird.core.errors import InvalidPattern
from bowerbird.workspace.glob import is_literal, segments_regex, unescaped

NAMES = (".gitignore", ".ignore", ".bowerbirdignore")
"""Files that hold rules, later ones win over earlier ones of the same directory."""
MOST_BYTES = 1024 * 1024
"""Rules beyond this size of an ignore file are not read, in bytes."""


@dataclass(frozen=True, slots=True)
class _Rule:
    negated: bool
    only_dirs: bool
    anchored: bool
    matches: Callable[[str], object]


class _Tests:
    """Whether any of some rules can match, by the cheapest tests."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.suffixes: tuple[str, ...] = ()
        self.prefixes: tuple[str, ...] = ()
        self.paths: set[str] = set()
        self._name_patterns: list[str] = []
        self._path_patterns: list[str] = []
        self._name_regex: Callable[[str], object] | None = None
        self._path_regex: Callable[[str], object] | None = None
        self.has_paths = False

    def add(self, body: str, segments: Sequence[str], regex: str, *, anchored: bool) -> None:
        """Take one more rule into account."""
        literal = all(is_literal(segment) for segment in segments)
        if anchored:
            self.has_paths = True
            if literal:
                self.paths.add("/".join(unescaped(segment) for segment in segments))
            else:
                self._path_patterns.append(regex)
                self._path_regex = _any_of(self._path_patterns)
        elif literal:
            self.names.add(unescaped(body))
        elif body.startswith("*") and is_literal(body[1:]):
            self.suffixes = (*self.suffixes, unescaped(body[1:]))
        elif body.endswith("*") and is_literal(body[:-1]):
            self.prefixes = (*self.prefixes, unescaped(body[:-1]))
        else:
            self._name_patterns.append(regex)
            self._name_regex = _any_of(self._name_patterns)

    def may_match(self, name: str, path: str) -> bool:
        """Tell whether a rule can match; a wrong yes costs time only."""
        if name in self.names or name.endswith(self.suffixes) or name.startswith(self.prefixes):
            return True
        if self._name_regex is not None and self._name_regex(name):
            return True
        return self.has_paths and (
            path in self.paths or (self._path_regex is not None and bool(self._path_regex(path)))
        )


class IgnoreFile:
    """The rules of one ignore file.

    Args:
        text: its content. Malformed lines match nothing, as in git.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        self.files = _Tests()  # rules that a file can match
        self.dirs = _Tests()
        for line in text.split("\n"):
            self._add(line.removesuffix("\r"))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, name: str, path: str, *, is_dir: bool) -> bool | None:
        """Tell whether an entry is ignored (True), kept by `!` (False), or not mentioned (None).

        Args:
            name: its last name.
            path: relative to the ignore file's directory.
        """
        if not (self.dirs if is_dir else self.files).may_match(name, path):
            return None
        for rule in reversed(self._rules):
            if (is_dir or not rule.only_dirs) and rule.matches(path if rule.anchored else name):
                return not rule.negated
        return None

    def _add(self, line: str) -> None:
        line = _without_trailing_spaces(line)
        if not line or line.startswith("#"):
            return
        negated = line.startswith("!")
        if negated:
            line = line[1:]
        only_dirs = line.endswith("/")
        body = line.strip("/") if only_dirs else line.lstrip("/")
        if not body:
            return
        anchored = "/" in line.rstrip("/")
        segments = [segment for segment in body.split("/") if segment]
        if anchored and segments[0] == "**" and len(segments) == 2:
            body, anchored = segments[1], False  # **/name is name
            segments = [body]
        try:
            regex = segments_regex(tuple(segments))
            match = re.compile(regex, re.DOTALL).fullmatch
        except (InvalidPattern, re.error):
            return  # git, too, lets a malformed line match nothing
        self._rules.append(_Rule(negated, only_dirs, anchored, match))
        for tests in (self.dirs,) if only_dirs else (self.dirs, self.files):
            tests.add(body, segments, regex, anchored=anchored)


@lru_cache(maxsize=512)
def compile_ignore(text: str) -> IgnoreFile:
    """Compile the rules of one ignore file; equal texts are compiled once."""
    return IgnoreFile(text)


Chain = Sequence[tuple[IgnoreFile, int]]
"""Ignore files from the root down, each with the length of its directory's prefix (`/a/` → 3)."""


def ignored(chain: Chain, path: str, name: str, *, is_dir: bool) -> bool:
    """Tell whether the nearest ignore file that mentions an entry ignores it."""
    for rules, start in reversed(chain):
        tests = rules.dirs if is_dir else rules.files
        below = path[start:] if tests.has_paths else ""
        if tests.may_match(name, below):
            verdict = rules.decide(name, path[start:], is_dir=is_dir)
            if verdict is not None:
                return verdict
    return False


def _any_of(patterns: Sequence[str]) -> Callable[[str], object] | None:
    if not patterns:
        return None
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.DOTALL).fullmatch


def _without_trailing_spaces(line: str) -> str:
    r"""Trailing spaces do not count unless quoted as `\ `."""
    stripped = line.rstrip(" ")
    if stripped != line and (len(stripped) - len(stripped.rstrip("\\"))) % 2:
        stripped += " "
    return stripped
