"""Glob patterns over virtual paths (WS-31), matched in linear time.

Here: `*` in a segment, `**` across, `?`, `[…]`, `[!…]`, `{a,b}`, `\\x`; what a pattern says
literally, for walks that start or prune by it. Not here: ignore rules (`ignore.py`).

A pattern becomes one regular expression in which every star but the last is atomic: the
earliest fit is always enough for it, so no pattern can make the matcher backtrack for long.
"""

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache

import msgspec

from bowerbird.core.errors import InvalidPattern

_MOST_ALTERNATIVES = 256
_LONGEST = 4096  # as paths
_SPECIAL = frozenset("*?[\\")


class Glob(msgspec.Struct, frozen=True, dict=True):
    """A compiled pattern.

    Attributes:
        pattern: as given.
        alternatives: its segments, one tuple per expansion of the braces.
    """

    pattern: str
    alternatives: tuple[tuple[str, ...], ...]

    @cached_property
    def _regex(self) -> Callable[[str], re.Match[str] | None]:
        return self._compiled("")

    def match(self, path: str) -> bool:
        """Tell whether `path` (with or without leading slash) fits.

        >>> compile_glob("**/*.py").match("/a/b.py")
        True
        """
        return self._regex(path) is not None

    @cached_property
    def _whole(self) -> Callable[[str], re.Match[str] | None]:
        return self._compiled("(?:/.*)?")

    def _compiled(self, rest: str) -> Callable[[str], re.Match[str] | None]:
        bodies = "|".join(segments_regex(segments) for segments in self.alternatives)
        return re.compile(f"/?(?:{bodies}){rest}", re.DOTALL).fullmatch

    def covers(self, path: str) -> bool:
        """Tell whether `path` fits, or a directory on the way to it does.

        >>> compile_glob("**/build").covers("/a/build/b.py")
        True
        """
        return self._whole(path) is not None

    @cached_property
    def name_test(self) -> Callable[[str], bool] | None:
        """A test of the last name alone, where that decides (`**/*.py`); else None."""
        if not all((len(s) == 2 and s[0] == "**") or s == ("**",) for s in self.alternatives):
            return None
        last = {segments[-1] for segments in self.alternatives}
        if last & {"*", "**"}:
            return _any_name
        suffixes = self.suffixes
        if suffixes:
            return lambda name: name.endswith(suffixes)
        match = re.compile("|".join(f"(?:{_segment_regex(name)})" for name in last), re.DOTALL).fullmatch
        return lambda name: match(name) is not None

    @cached_property
    def suffixes(self) -> tuple[str, ...]:
        """What every matching name ends in, where the pattern says so (`*.py`); else empty."""
        last = {segments[-1] for segments in self.alternatives}
        found = tuple(name[1:] for name in last if name[:1] == "*" and name[1:] and is_literal(name[1:]))
        return (
            tuple(unescaped(name) for name in found) if len(found) == len(last) and "**" not in last else ()
        )

    @cached_property
    def takes_any_name(self) -> bool:
        """Whether the last name of a match is free (`src/**`)."""
        return all(segments[-1] in ("*", "**") for segments in self.alternatives)

    @cached_property
    def start(self) -> str:
        """The deepest directory that every match lies below: `/src` for `src/*.py`."""
        heads: list[list[str]] = []
        for segments in self.alternatives:
            head: list[str] = []
            for segment in segments[:-1]:
                if not is_literal(segment):
                    break
                head.append(unescaped(segment))
            heads.append(head)
        common: list[str] = []
        for names in zip(*heads, strict=False):
            if len(set(names)) > 1:
                break
            common.append(names[0])
        return "/" + "/".join(common)

    @cached_property
    def literal_names(self) -> frozenset[str]:
        """Every segment that the pattern names without wildcards."""
        return frozenset(unescaped(s) for segments in self.alternatives for s in segments if is_literal(s))

    @cached_property
    def depth(self) -> int | None:
        """The most segments a match has; None when `**` allows any number."""
        if any("**" in segments for segments in self.alternatives):
            return None
        return max(len(segments) for segments in self.alternatives)


@lru_cache(maxsize=256)
def compile_glob(pattern: str) -> Glob:
    """Compile a pattern; a leading `/` or `./` is accepted, a final `/` means `/**`.

    Raises:
        InvalidPattern: empty, an unclosed `[` or `{`, a final `\\`, a reversed range, or more
            than 256 alternatives.
    """
    if len(pattern) > _LONGEST:
        raise InvalidPattern(f"a glob of {len(pattern)} characters is longer than {_LONGEST}")
    text = pattern
    while text.startswith("./"):
        text = text[2:]
    if not text.strip("/") or "\0" in text:
        raise InvalidPattern(f"glob {pattern!r} is empty; use **/* for everything")
    alternatives: list[tuple[str, ...]] = []
    for expanded in _expand(text, pattern):
        segments = [s for s in expanded.split("/") if s not in ("", ".")]
        if not segments or ".." in segments:
            raise InvalidPattern(f"glob {pattern!r} must name paths below the root, without '..'")
        if expanded.endswith("/"):
            segments.append("**")
        for segment in segments:
            _check(segment, pattern)
        alternatives.append(tuple(_merged(segments)))
    return Glob(pattern, tuple(dict.fromkeys(alternatives)))


def _merged(segments: list[str]) -> Iterator[str]:
    """`**/**` says no more than `**`."""
    previous = ""
    for segment in segments:
        if segment != "**" or previous != "**":
            yield segment
        previous = segment


def _expand(text: str, pattern: str) -> list[str]:
    """Return the texts that `{a,b}` stands for."""
    done: list[str] = []
    todo = [text]
    while todo:
        present = todo.pop()
        span = _first_brace(present, pattern)
        if span is None:
            done.append(present)
        else:
            start, end, options = span
            todo += [present[:start] + option + present[end:] for option in reversed(options)]
        if len(done) + len(todo) > _MOST_ALTERNATIVES:
            raise InvalidPattern(f"glob {pattern!r} has more than {_MOST_ALTERNATIVES} alternatives")
    return done


def _first_brace(text: str, pattern: str) -> tuple[int, int, list[str]] | None:
    """Return start, end and options of the first outermost brace group."""
    start, level, options, begin = -1, 0, list[str](), 0
    index = 0
    while index < len(text):
        char = text[index]
        if char == "\\":
            index += 2
            continue
        if char == "[":
            index = _class_end(text, index, pattern) + 1
            continue
        if char == "{":
            level += 1
            if level == 1:
                start, begin = index, index + 1
        elif level and char == "," and level == 1:
            options.append(text[begin:index])
            begin = index + 1
        elif level and char == "}":
            level -= 1
            if level == 0:
                return start, index + 1, [*options, text[begin:index]]
        index += 1
    if level:
        raise InvalidPattern(f"glob {pattern!r} has an unclosed '{{'")
    return None


def _class_end(text: str, start: int, pattern: str) -> int:
    """Return the index of the `]` that closes the class opened at `start`."""
    index = start + 1
    if text[index : index + 1] in ("!", "^"):
        index += 1
    if text[index : index + 1] == "]":
        index += 1
    end = text.find("]", index)
    if end < 0 or "/" in text[start:end]:
        raise InvalidPattern(f"glob {pattern!r} has an unclosed '['")
    return end


def _check(segment: str, pattern: str) -> None:
    if (len(segment) - len(segment.rstrip("\\"))) % 2:
        raise InvalidPattern(f"glob {pattern!r} ends in a lone '\\'")
    try:
        re.compile(_segment_regex(segment))
    except re.error as error:
        raise InvalidPattern(f"glob {pattern!r}: {error}") from error


def is_literal(segment: str) -> bool:
    """Tell whether a segment has no wildcard."""
    return not _SPECIAL & set(segment) or not _SPECIAL & set(re.sub(r"\\.", "", segment))


def unescaped(segment: str) -> str:
    """Return the name that a literal segment stands for."""
    return re.sub(r"\\(.)", r"\1", segment, flags=re.DOTALL)


def segments_regex(segments: tuple[str, ...]) -> str:
    """Return the expression that fits whole paths made of these segments (no braces)."""
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == "**":
            runs.append([])
        else:
            runs[-1].append(_segment_regex(segment))
    if len(runs) == 1:
        return "/".join(runs[0])
    first, *middle, last = runs
    text = "".join(f"{segment}/" for segment in first)
    for run in middle:
        # Atomic: the earliest place where a run of segments fits leaves most room for the rest.
        text += "(?>(?:[^/]+/)*?" + "".join(f"{segment}/" for segment in run) + ")"
    return text + ("(?:[^/]+/)*" + "/".join(last) if last else ".+")


def _segment_regex(segment: str) -> str:
    """Return the expression of one segment; all stars but the last are atomic."""
    chunks: list[str] = [""]
    index = 0
    while index < len(segment):
        char = segment[index]
        if char == "*":
            chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "\\" and index + 1 < len(segment):
            index += 1
            chunks[-1] += re.escape(segment[index])
        elif char == "[":
            end = _class_end(segment, index, segment)
            chunks[-1] += _class_regex(segment[index + 1 : end])
            index = end
        else:
            chunks[-1] += re.escape(char)
        index += 1
    first, *rest = chunks
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in middle if chunk) + "[^/]*" + last


def _class_regex(body: str) -> str:
    negated = body[:1] in ("!", "^")
    inner = body[1:] if negated else body
    inner = re.sub(r"([\\\[\]&~|^])", r"\\\1", inner)
    return f"(?!/)[^{inner}]" if negated else f"(?!/)[{inner}]"


def _any_name(name: str) -> bool:
    del name
    return True
