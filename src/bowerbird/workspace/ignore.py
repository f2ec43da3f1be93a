"""Ignore rules as `.gitignore` writes them (WS-32).

Here: one ignore file compiled to quick tests, and the decision along a chain of them.
Not here: which files are read (`walk.py`), what a pruned directory means to a call.

Most names match no rule, so each file first asks sets, prefixes and suffixes at C speed; only
a name that may match walks the rules, last one first, as git does.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Quick:
    """What can match at all, by the cheapest test."""

    names: set[str] = field(default_factory=set[str])
    suffixes: list[str] = field(default_factory=list[str])
    prefixes: list[str] = field(default_factory=list[str])
    patterns: list[str] = field(default_factory=list[str])


class IgnoreFile:
    """The rules of one ignore file.

    Args:
        text: its content. Malformed lines match nothing, as in git.
    """

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        by_name, by_path = _Quick(), _Quick()
        for line in text.split("\n"):
            self._add(line.removesuffix("\r"), by_name, by_path)
        self._names, self._paths = frozenset(by_name.names), frozenset(by_path.names)
        self._suffixes, self._prefixes = tuple(by_name.suffixes), tuple(by_name.prefixes)
        self._name_regex = _any_of(by_name.patterns)
        self._path_regex = _any_of(by_path.patterns)
        self.has_paths = bool(by_path.names or by_path.patterns)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, name: str, path: str, *, is_dir: bool) -> bool | None:
        """Tell whether an entry is ignored (True), kept by `!` (False), or not mentioned (None).

        Args:
            name: its last name.
            path: relative to the ignore file's directory.
        """
        if not (
            name in self._names
            or name.endswith(self._suffixes)
            or name.startswith(self._prefixes)
            or (self._name_regex is not None and self._name_regex(name))
            or (self.has_paths and self._mentions(path))
        ):
            return None
        for rule in reversed(self._rules):
            if (is_dir or not rule.only_dirs) and rule.matches(path if rule.anchored else name):
                return not rule.negated
        return None

    def _mentions(self, path: str) -> bool:
        return path in self._paths or (self._path_regex is not None and bool(self._path_regex(path)))

    def _add(self, line: str, by_name: _Quick, by_path: _Quick) -> None:
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
            segments, anchored = segments[1:], False  # **/name is name
        try:
            regex = segments_regex(tuple(segments))
            match = re.compile(regex, re.DOTALL).fullmatch
        except (InvalidPattern, re.error):
            return  # git, too, lets a malformed line match nothing
        quick = by_path if anchored else by_name
        if all(is_literal(segment) and segment != "**" for segment in segments):
            literal = "/".join(unescaped(segment) for segment in segments)
            quick.names.add(literal)
            match = literal.__eq__
        elif not anchored and body.startswith("*") and is_literal(body[1:]):
            quick.suffixes.append(unescaped(body[1:]))
        elif not anchored and body.endswith("*") and is_literal(body[:-1]):
            quick.prefixes.append(unescaped(body[:-1]))
        else:
            quick.patterns.append(regex)
        self._rules.append(_Rule(negated, only_dirs, anchored, match))


@lru_cache(maxsize=512)
def compile_ignore(text: str) -> IgnoreFile:
    """Compile the rules of one ignore file; equal texts are compiled once."""
    return IgnoreFile(text)


Chain = Sequence[tuple[IgnoreFile, int]]
"""Ignore files from the root down, each with the length of its directory's prefix (`/a/` → 3)."""


def ignored(chain: Chain, path: str, name: str, *, is_dir: bool) -> bool:
    """Tell whether the nearest ignore file that mentions an entry ignores it."""
    for rules, start in reversed(chain):
        verdict = rules.decide(name, path[start:] if rules.has_paths else "", is_dir=is_dir)
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
