"""Unified diffs: parsed into changes per file, and a file's hunks applied to its bytes.

Here: pure work on text and bytes, for `apply_patch`. Not here: branches; writing diffs
(`workspace/`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from bowerbird.core.errors import ToolError

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_GIT = re.compile(r'diff --git (?P<old>"(?:[^"\\]|\\.)*"|\S.*?) (?P<new>"(?:[^"\\]|\\.)*"|\S.*)')
_ESCAPE = re.compile(rb"\\([abfnrtv\"\\]|[0-7]{3})")
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}


MOST_COMPARED = 2_000_000
"""Lines that are compared to find the hunks of one file, about a second."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk; `lines` are (` `, `-` or `+`, bytes without line end)."""

    header: str
    start: int
    lines: tuple[tuple[str, bytes], ...]
    old_ends_open: bool = False
    new_ends_open: bool = False


class FilePatch(msgspec.Struct):
    """What a patch does to one file; `old` or `new` is None for creation and deletion."""

    old: str | None = None
    new: str | None = None
    hunks: list[Hunk] = msgspec.field(default_factory=list[Hunk])
    executable: bool | None = None
    renamed: bool = False

    @property
    def name(self) -> str:
        """The path to name in messages."""
        return self.new or self.old or "?"


def parse_patch(text: str) -> list[FilePatch]:
    """Return the files of a unified diff, in its order.

    Raises:
        ToolError: no file in it, a hunk whose counts do not fit, or a binary patch.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    files: list[FilePatch] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith("diff --git "):
            files.append(_git_header(line))
        elif line.startswith("--- ") and index + 1 < len(lines) and lines[index + 1].startswith("+++ "):
            _names(files, line, lines[index + 1])
            index += 1
        elif line.startswith("@@"):
            if not files:
                raise ToolError(f"the patch begins with a hunk, not with a file: {line}")
            hunk, index = _hunk(files[-1], lines, index)
            files[-1].hunks.append(hunk)
            continue
        elif line == "GIT binary patch" or line.startswith("Binary files "):
            raise ToolError(f"{files[-1].name if files else 'the patch'}: binary patches cannot be applied")
        elif files:
            _extended(files[-1], line)
        index += 1
    if not files:
        raise ToolError("the patch names no file; it needs '--- a/PATH' and '+++ b/PATH' before its hunks")
    return files


def apply_hunks(data: bytes, patch: FilePatch) -> bytes:
    """Return `data` with every hunk of `patch` applied; lines may have moved, context must fit.

    Raises:
        ToolError: a hunk does not fit; file, number and header are named.
    """
    lines = data.split(b"\n")
    budget = [MOST_COMPARED]
    ends_open = lines[-1] != b""
    if not ends_open:
        lines.pop()
    crlf = bool(lines) and sum(line.endswith(b"\r") for line in lines) * 2 > len(lines)
    shift = done = 0
    for number, hunk in enumerate(patch.hunks, 1):
        old = [line for mark, line in hunk.lines if mark != "+"]
        expected = max(hunk.start - 1, 0) + shift if old else min(hunk.start + shift, len(lines))
        at = _find(lines, old, expected, done, budget)
        if budget[0] < 0:
            raise ToolError(
                f"{patch.name}: hunk {number} ({hunk.header}) is too far from where it says; "
                "nothing was changed. Read the file again and make a new patch, or use edit_file"
            )
        if at is None:
            raise ToolError(
                f"{patch.name}: hunk {number} ({hunk.header}) does not fit the file; nothing was changed"
            )
        new = _new_lines(lines, at, hunk, crlf=crlf)
        if at + len(old) == len(lines):  # the hunk reaches the end: it decides about the last newline
            ends_open = hunk.new_ends_open
        lines[at : at + len(old)] = new
        shift += at - expected + len(new) - len(old)
        done = at + len(new)
    if not lines:
        return b""
    return b"\n".join(lines) + (b"" if ends_open else b"\n")


def _find(
    lines: Sequence[bytes], old: Sequence[bytes], expected: int, first: int, budget: list[int]
) -> int | None:
    """Return where `old` stands, nearest to `expected`, not before `first`.

    Every place and every compared line is taken from `budget`; below zero the search ends.
    """
    last = len(lines) - len(old)
    if first > last:
        return None
    near = min(max(expected, first), last)
    for distance in range(max(near - first, last - near) + 1):
        for at in sorted({near - distance, near + distance}, key=lambda place: abs(place - expected)):
            if not first <= at <= last:
                continue
            same = 0
            while same < len(old) and _same(lines[at + same], old[same]):
                same += 1
            if same == len(old):
                return at
            budget[0] -= same + 1
            if budget[0] < 0:
                return None
    return None


def _same(line: bytes, wanted: bytes) -> bool:
    return line == wanted or line.removesuffix(b"\r") == wanted


def _new_lines(lines: Sequence[bytes], at: int, hunk: Hunk, *, crlf: bool) -> list[bytes]:
    made: list[bytes] = []
    for mark, line in hunk.lines:
        if mark == " ":
            made.append(lines[at])
        elif mark == "+":
            made.append(line + b"\r" if crlf and not line.endswith(b"\r") else line)
        at += mark != "+"
    return made


def _git_header(line: str) -> FilePatch:
    match = _GIT.fullmatch(line)
    if match is None:
        raise ToolError(f"the patch has a header that cannot be read: {line}")
    return FilePatch(_path(match["old"]), _path(match["new"]))


def _names(files: list[FilePatch], old_line: str, new_line: str) -> None:
    old, new = _path(old_line[4:].split("\t", maxsplit=1)[0]), _path(new_line[4:].split("\t", maxsplit=1)[0])
    if not files or files[-1].hunks or (files[-1].old or files[-1].new) not in (old, new):
        files.append(FilePatch())
    files[-1].old, files[-1].new = old, new
    if old is not None and new is not None and old != new:
        files[-1].renamed = True


def _extended(patch: FilePatch, line: str) -> None:
    """Read git's extra header lines."""
    if line.startswith(("new file mode ", "new mode ")):
        patch.executable = line.endswith("755")
    if line.startswith("new file mode "):
        patch.old = None
    elif line.startswith("deleted file mode "):
        patch.new = None
    elif line.startswith("rename from "):
        patch.old, patch.renamed = _path(line[12:], prefixed=False), True
    elif line.startswith("rename to "):
        patch.new, patch.renamed = _path(line[10:], prefixed=False), True


def _path(text: str, *, prefixed: bool = True) -> str | None:
    """Return the path in a header, without quotes and `a/` or `b/`; None for /dev/null."""
    text = text.strip()
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        raw = _ESCAPE.sub(_unescaped, text[1:-1].encode("utf-8", "surrogateescape"))
        text = raw.decode("utf-8", "surrogateescape")
    if text == "/dev/null":
        return None
    return text[2:] if prefixed and text[:2] in ("a/", "b/") else text


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([_LETTERS[code] if code in _LETTERS else int(code, 8) & 255])


def _hunk(patch: FilePatch, lines: Sequence[str], index: int) -> tuple[Hunk, int]:
    header = lines[index]
    match = _HUNK.match(header)
    if match is None:
        raise ToolError(
            f"{patch.name}: a hunk's header cannot be read: {header} (it says which lines, as in "
            "@@ -3,4 +3,5 @@); nothing was changed. Write the counts, or use edit_file"
        )
    left, right = int(match[2] or 1), int(match[4] or 1)
    found: list[tuple[str, bytes]] = []
    open_ends = {"old": False, "new": False}
    index += 1
    for mark, text in _body(lines, index):
        if mark == "\\":
            last = found[-1][0] if found else " "
            open_ends["old"] |= last in " -"
            open_ends["new"] |= last in " +"
            index += 1
            continue
        if left <= 0 and right <= 0:
            break
        found.append((mark, text.encode("utf-8", "surrogateescape")))
        left -= mark in " -"
        right -= mark in " +"
        index += 1
    if left or right:
        raise ToolError(f"{patch.name}: hunk {match[0]} has other line counts than its header says")
    return Hunk(match[0], int(match[1]), tuple(found), open_ends["old"], open_ends["new"]), index


def _body(lines: Sequence[str], index: int) -> Iterator[tuple[str, str]]:
    for at in range(index, len(lines)):
        line = lines[at]
        if line[:1] in (" ", "-", "+", "\\"):
            yield line[0], line[1:]
        elif line == "":
            yield " ", ""  # editors strip the blank of an empty context line
        else:
            return
