"""Ignore rules as `.gitignore` writes them (WS-32).

Here: one ignore file compiled to quick lookups, and the decision along a chain of them.
Not here: which files are read (`find/walk.py`), what a pruned directory means to a call.

An ignore file is a stranger's: whatever it holds, reading it costs what its size says, and asking it costs
little for each name. So rules without wildcards, and those that only begin or end in a star, are looked up;
the number of others is bounded. As in git, the last rule that matches decides.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec

from bowerbird.core.errors import InvalidPattern
from bowerbird.workspace.tree.glob import is_literal, segments_regex, unescaped

NAMES = (".gitignore", ".ignore", ".bowerbirdignore")
"""Files that hold rules, later ones win over earlier ones of the same directory."""
MOST_BYTES = 1024 * 1024
"""Rules beyond this size of an ignore file are not read, in bytes."""
MOST_LINES = 20_000
MOST_PATTERNS = 500
"""Rules with wildcards in the middle, of one ignore file and of a chain of them; others match nothing."""
MOST_PATTERN_CHARS = 16 * 1024
"""Characters of such rules, in one file and in one chain."""

_Match = Callable[[str], object]


class _Patterns(msgspec.Struct):
    """Rules that only a regular expression can decide, by the number of their line."""

    rows: list[tuple[int, str]] = msgspec.field(default_factory=list[tuple[int, str]])
    _any: _Match | None = None
    _each: list[_Match | None] = msgspec.field(default_factory=list["_Match | None"])

    def last(self, text: str, above: int) -> int:
        """Return the number of the last rule that matches, `above` when none with a higher one does."""
        if not self.rows or self.rows[-1][0] <= above:
            return above
        if self._any is None:  # compiled when it is first needed, all at once
            self._any = _fullmatch("|".join(f"(?:{regex})" for _, regex in self.rows))
            self._each = [None] * len(self.rows)
        if not self._any(text):
            return above
        for index in range(len(self.rows) - 1, -1, -1):
            number, regex = self.rows[index]
            if number <= above:
                break
            matches = self._each[index]
            if matches is None:
                matches = self._each[index] = _fullmatch(regex)
            if matches(text):
                return number
        return above


class _Tests:
    """The rules that one kind of entry can match; each lookup gives the last rule's number, or -1."""

    def __init__(self) -> None:
        self.has_paths = False
        self._names: dict[str, int] = {}
        self._paths: dict[str, int] = {}
        self._ends: dict[int, dict[str, int]] = {}  # by length, what names end in
        self._starts: dict[int, dict[str, int]] = {}
        self._name_patterns = _Patterns()
        self._path_patterns = _Patterns()

    def add(self, number: int, body: str, segments: Sequence[str], regex: str | None, anchored: bool) -> None:
        """Take one more rule into account; `regex` is of a rule with wildcards in the middle."""
        if anchored:
            self.has_paths = True
            if regex is None:
                self._paths["/".join(unescaped(segment) for segment in segments)] = number
            else:
                self._path_patterns.rows.append((number, regex))
        elif regex is not None:
            self._name_patterns.rows.append((number, regex))
        elif is_literal(body):
            self._names[unescaped(body)] = number
        elif body.startswith("*"):
            end = unescaped(body[1:])
            self._ends.setdefault(len(end), {})[end] = number
        else:
            start = unescaped(body[:-1])
            self._starts.setdefault(len(start), {})[start] = number

    def last(self, name: str, path: str) -> int:
        """Return the number of the last rule that matches, -1 for none."""
        found = self._names.get(name, -1)
        for length, ends in self._ends.items():
            # A star stands for nothing too; what is shorter than the end equals none of that length.
            found = max(found, ends.get(name[-length:] if length else "", -1))
        for length, starts in self._starts.items():
            found = max(found, starts.get(name[:length], -1))
        found = self._name_patterns.last(name, found)
        if self.has_paths:
            found = max(found, self._paths.get(path, -1))
            found = self._path_patterns.last(path, found)
        return found


class IgnoreFile:
    """The rules of one ignore file.

    Args:
        text: its content. Malformed lines match nothing, as in git.

    Attributes:
        patterns, pattern_chars: rules with wildcards in the middle, and their characters.
    """

    def __init__(self, text: str) -> None:
        self._negated: list[bool] = []
        self.patterns = self.pattern_chars = 0
        self.files = _Tests()  # rules that a file can match
        self.dirs = _Tests()
        for line in text.split("\n", MOST_LINES)[:MOST_LINES]:
            self._add(line.removesuffix("\r"))

    def __bool__(self) -> bool:
        return bool(self._negated)

    def decide(self, name: str, path: str, *, is_dir: bool) -> bool | None:
        """Tell whether an entry is ignored (True), kept by `!` (False), or not mentioned (None).

        Args:
            name: its last name.
            path: relative to the ignore file's directory.
        """
        found = (self.dirs if is_dir else self.files).last(name, path)
        return None if found < 0 else not self._negated[found]

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
        regex: str | None = None
        if not _is_plain(body, segments, anchored):
            if not _fits(self.patterns + 1, self.pattern_chars + len(body)):
                return
            try:
                regex = segments_regex(tuple(segments))
                re.compile(regex, re.DOTALL)
            except (InvalidPattern, re.error):
                return  # git, too, lets a malformed line match nothing
            self.patterns += 1
            self.pattern_chars += len(body)
        number = len(self._negated)
        self._negated.append(negated)
        for tests in (self.dirs,) if only_dirs else (self.dirs, self.files):
            tests.add(number, body, segments, regex, anchored)


def _is_plain(body: str, segments: Sequence[str], anchored: bool) -> bool:
    """Whether a rule can be looked up: names, whole paths, and one star at the end or the start of a name."""
    if anchored:
        return all(is_literal(segment) for segment in segments)
    return is_literal(body) or (body[0] == "*" and is_literal(body[1:])) or _is_start(body)


def _is_start(body: str) -> bool:
    return body[-1] == "*" and is_literal(body[:-1]) and not body[:-1].endswith("\\")


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
        verdict = rules.decide(name, path[start:] if tests.has_paths else "", is_dir=is_dir)
        if verdict is not None:
            return verdict
    return False


def extended(chain: Chain, text: str, start: int) -> Chain:
    """Return a chain with one more ignore file, unless all of them together have too many patterns."""
    rules = compile_ignore(text)
    if not rules:
        return chain
    files = [rules, *(above for above, _ in chain)]
    if rules.patterns and not _fits(sum(f.patterns for f in files), sum(f.pattern_chars for f in files)):
        return chain
    return (*chain, (rules, start))


def _fits(patterns: int, chars: int) -> bool:
    return patterns <= MOST_PATTERNS and chars <= MOST_PATTERN_CHARS


def _fullmatch(regex: str) -> _Match:
    return re.compile(regex, re.DOTALL).fullmatch


def _without_trailing_spaces(line: str) -> str:
    r"""Trailing spaces do not count unless quoted as `\ `."""
    stripped = line.rstrip(" ")
    if stripped != line and (len(stripped) - len(stripped.rstrip("\\"))) % 2:
        stripped += " "
    return stripped
