"""Replacing text in a file's bytes (WS-28, WS-29).

Here: finding `old`, replacing it by `new`, errors that help. Not here: reading or writing files.

Outside the replaced spans every byte stays: byte order mark, line endings, final newline and
bytes that are no text. `\\n` in `old` fits `\\r\\n`, and `new` takes the ending found there.
"""

from bisect import bisect_left
from functools import cached_property

import msgspec

from bowerbird.core.errors import BinaryFile, InvalidArgument, NoMatch, NotUnique
from bowerbird.core.lines import unlike
from bowerbird.workspace.find.text import Encoding, encoding_of, is_binary, lines_of
from bowerbird.workspace.tree.paths import shown_path

_MOST_LINES_NAMED = 20


class Edited(msgspec.Struct, frozen=True):
    """The result: the file's new bytes, how many places, the first one's line (1-based)."""

    data: bytes
    replacements: int
    first_line: int


def edit(data: bytes, old: str, new: str, *, replace_all: bool, encoding: str | None, path: str) -> Edited:
    """Replace `old` by `new` in `data`.

    Args:
        encoding: of the file; None = UTF-8 or as its byte order mark says.
        path: for messages.

    Raises:
        InvalidArgument: `old` is empty or equals `new`, or the encoding cannot hold `new`.
        BinaryFile, NoMatch, NotUnique: see WS-29.
    """
    if not old:
        raise InvalidArgument("old is empty; use write_file to write a whole file")
    if old == new:
        raise InvalidArgument("old and new are equal; nothing would change")
    name = shown_path(path)
    if is_binary(data, encoding):
        raise BinaryFile(f"{name} is binary; edit_file works on text", path)
    how = encoding_of(data, encoding)
    needle = _encoded(old.replace("\r\n", "\n"), how, "old")
    spans = _find(data, needle, how)
    if not spans:
        raise _no_match(data, old, how, path)
    if len(spans) > 1 and not replace_all:
        lines = [str(_line(data, start, how)) for start, _ in spans[:_MOST_LINES_NAMED]]
        more = " …" if len(spans) > _MOST_LINES_NAMED else ""
        raise NotUnique(
            f"old occurs {len(spans)} times in {name}, on lines {', '.join(lines)}{more}; "
            "add surrounding lines to it, or set replace_all",
            path,
        )
    plain = new.replace("\r\n", "\n")
    lf, crlf = _encoded("\n", how, "new"), _encoded("\r\n", how, "new")
    with_lf = _encoded(plain, how, "new")
    with_crlf = _encoded(plain.replace("\n", "\r\n"), how, "new")
    endings = _Endings(data, lf, crlf, len(how.bom))
    parts: list[bytes] = []
    at = 0
    for start, end in spans:
        parts += [data[at:start], with_crlf if endings.is_crlf(start) else with_lf]
        at = end
    parts.append(data[at:])
    return Edited(b"".join(parts), len(spans), _line(data, spans[0][0], how))


def _encoded(text: str, how: Encoding, what: str) -> bytes:
    try:
        return text.encode(how.codec)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"{what} cannot be written in {how.name}: {error.reason}") from error


def _find(data: bytes, needle: bytes, how: Encoding) -> list[tuple[int, int]]:
    """Return the spans of `needle`, not overlapping, in order; `\\n` in it fits `\\r\\n`."""
    lf, crlf = "\n".encode(how.codec), "\r\n".encode(how.codec)
    width = len(lf)
    # Searched with every CRLF as LF: `find` is linear for any needle, a pattern would not be.
    returns = _positions(data, crlf, len(how.bom), width)
    plain = _without(data, returns, width)
    shortened = [at - index * width for index, at in enumerate(returns)]
    return [
        (
            start + width * bisect_left(shortened, start),
            start + len(needle) + width * bisect_left(shortened, start + len(needle)),
        )
        for start in _positions(plain, needle, len(how.bom), width)
    ]


def _positions(data: bytes, wanted: bytes, base: int, width: int) -> list[int]:
    """Return where `wanted` stands, not overlapping, at whole units of `width` bytes after `base`."""
    found: list[int] = []
    at = data.find(wanted, base)
    while at >= 0:
        whole = (at - base) % width == 0
        if whole:
            found.append(at)
        at = data.find(wanted, at + (len(wanted) if whole else 1))
    return found


def _without(data: bytes, positions: list[int], width: int) -> bytes:
    """Return `data` without the unit at each position."""
    if not positions:
        return data
    starts = [0, *(at + width for at in positions)]
    return b"".join(data[start:end] for start, end in zip(starts, [*positions, len(data)], strict=True))


class _Endings:
    """Which line ending a replacement gets: as in it, else as the line goes on, else as before it.

    Asked for places in order; the file is looked through once, however many they are.
    """

    def __init__(self, data: bytes, lf: bytes, crlf: bytes, base: int) -> None:
        self._data, self._lf, self._crlf, self._base = data, lf, crlf, base
        self._next = -1  # the first newline at or after the last place; without one the end

    def is_crlf(self, start: int) -> bool:
        """Whether the first newline at or after `start`, else the last one before it, is CRLF."""
        if self._next < start:
            found = _first_newline(self._data, start, len(self._data), self._lf)
            self._next = found if found >= 0 else len(self._data)
        at = self._next if self._next < len(self._data) else self._last
        end = at + len(self._lf)
        return at >= 0 and self._data[max(0, end - len(self._crlf)) : end] == self._crlf

    @cached_property
    def _last(self) -> int:
        at = self._data.rfind(self._lf, self._base)
        while at >= 0 and (at - self._base) % len(self._lf):
            at = self._data.rfind(self._lf, self._base, at + len(self._lf) - 1)
        return at


def _first_newline(data: bytes, start: int, end: int, lf: bytes) -> int:
    at = data.find(lf, start, end)
    while at >= 0 and (at - start) % len(lf):
        at = data.find(lf, at + 1, end)
    return at


def _line(data: bytes, at: int, how: Encoding) -> int:
    if how.is_utf8:
        return data.count(b"\n", 0, at) + 1
    return data[len(how.bom) : at].decode(how.codec, "replace").count("\n") + 1


def _no_match(data: bytes, old: str, how: Encoding, path: str) -> NoMatch:
    name = shown_path(path)
    if "\ufffd" in old and how.is_utf8:
        return NoMatch(
            f"old contains U+FFFD, which stands for bytes of {name} that are not UTF-8; "
            "name the file's encoding, or choose text without them",
            path,
        )
    lines = list(lines_of(data[len(how.bom) :].decode(how.codec, "replace")))
    wanted = old.replace("\r\n", "\n").strip("\n").split("\n")
    return NoMatch(f"old is not in {name}; {unlike(lines, wanted)} and copy the text exactly", path)
