"""Encodings of files and windows of lines (WS-26 … WS-28).

Here: telling text from binary, which encoding a file has, reading some lines of a stream.
Not here: finding files, editing (`files/editing.py`).

Lines end at `\\n` only, so numbers equal those of `grep -n`. Whatever the encoding, lines are
found in UTF-8: other encodings are translated piece by piece, never the file as a whole.
"""

import codecs
import hashlib
import os
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from bowerbird.core.errors import InvalidArgument
from bowerbird.workspace.tree.handles import next_data

HEAD = 8 * 1024
"""Where a NUL makes a file binary, in bytes."""
MOST_COUNTED = 64 * 1024 * 1024
"""Files over this have no line count and no hash, in bytes."""
MOST_RETURNED = 256 * 1024
LONGEST_LINE = 64 * 1024
_PIECE = 1024 * 1024

Newline = Literal["lf", "crlf", "mixed", "none"]


class Encoding(msgspec.Struct, frozen=True):
    """How a file's bytes are text.

    Attributes:
        name: for records: `utf-8`, `utf-8-sig`, `utf-16-le`, …, or `unknown`.
        codec: Python's codec for the bytes after the byte order mark.
        bom: the mark the file begins with.
    """

    name: str
    codec: str
    bom: bytes = b""

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are read as UTF-8 (maybe with undecodable ones)."""
        return self.codec == "utf-8"


UTF8 = Encoding("utf-8", "utf-8")
_WITH_BOM = (
    Encoding("utf-8-sig", "utf-8", codecs.BOM_UTF8),
    Encoding("utf-16-le", "utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", "utf-16-be", codecs.BOM_UTF16_BE),
)
_WIDE = ("utf-16", "utf-32")


def encoding_of(head: bytes, named: str | None) -> Encoding:
    """Return the encoding of a file that begins with `head`; UTF-8 until proved otherwise.

    Args:
        named: the caller's choice; it wins, but a byte order mark is still taken off.

    Raises:
        InvalidArgument: no such encoding.
    """
    marked = next((e for e in _WITH_BOM if head.startswith(e.bom)), None)
    if named is None:
        return marked or UTF8
    codec = codec_of(named)
    if marked is not None and (marked.codec == codec or codec in ("utf-8-sig", "utf-16")):
        return marked
    if codec == "utf-8-sig":
        codec = "utf-8"
    return Encoding(codec, "utf-16-le" if codec == "utf-16" else codec)


def codec_of(named: str) -> str:
    """Return Python's name of an encoding; raises InvalidArgument for an unknown one."""
    try:
        info = codecs.lookup(named)
    except (LookupError, ValueError) as error:  # ValueError: NUL in the name
        raise InvalidArgument(f"encoding {named!r} is not known; use utf-8, latin-1, utf-16 …") from error
    # Python also calls byte transforms such as "hex" codecs; those have no text side.
    if not info._is_text_encoding:  # pyright: ignore[reportPrivateUsage,reportUnknownMemberType,reportAttributeAccessIssue]  # no public way to ask
        raise InvalidArgument(f"encoding {named!r} is not a text encoding")
    return info.name


def is_binary(head: bytes, named: str | None = None) -> bool:
    """Tell whether a file that begins with `head` (8 KiB of it) is binary."""
    if named is not None and codec_of(named).startswith(_WIDE):
        return False
    return b"\0" in head[:HEAD] and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def hash_of(data: bytes) -> str:
    """Return the `hash` of records: `sha256:` and the hexadecimal digest."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text, without their `\\n`; a last empty one is left out.

    One by one and not by `split`: that would keep every other thread waiting on large texts.
    """
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        if end < 0:
            yield text[at:]
            return
        yield text[at:end]
        at = end + 1


def encoded(content: str | bytes, encoding: str) -> bytes:
    """Return the bytes to write; raises InvalidArgument when the encoding cannot hold them."""
    if isinstance(content, bytes):
        return content
    encoder = codecs.getincrementalencoder(codec_of(encoding))()
    ends = range(0, len(content), _PIECE)
    try:
        # Piece by piece, so that other threads get their turn.
        return b"".join(encoder.encode(content[at : at + _PIECE], at == ends[-1]) for at in ends)
    except UnicodeEncodeError as error:
        raise InvalidArgument(f"content cannot be written in {encoding}: {error.reason}") from error


def in_form_of(old: bytes, content: str) -> tuple[bytes, str]:
    """Return a text in the byte order mark, encoding and line ends of the file that it replaces.

    Returns:
        The bytes, and a note of what was kept, or could not be; "" where there is nothing to say.
    """
    how = encoding_of(old[:HEAD], None)
    plain = old[len(how.bom) :]
    text = content.removeprefix("\ufeff") if how.bom else content
    if is_binary(old):
        return encoded(content, UTF8.codec), ""
    try:
        before = plain.decode(how.codec)
    except UnicodeDecodeError:
        if not how.is_utf8:
            return encoded(content, UTF8.codec), f"it was broken {how.name}; it is UTF-8 now"
        return how.bom + encoded(text, UTF8.codec), "it was not UTF-8 before, and is now"
    returns, newlines = before.count("\r\n"), before.count("\n")
    notes = [f"encoding {how.name}"] if how.bom else []
    if returns and returns == newlines:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        notes.append("line ends CRLF")
    note = f"kept as it was: {', '.join(notes)}" if notes else ""
    if returns and returns < newlines:
        note = f"{note}; " * bool(note) + "its line ends were mixed; they are those of the new text now"
    return how.bom + encoded(text, how.codec), note


class LineWindow:
    """Takes some lines from a stream of UTF-8 pieces and counts the rest.

    Args:
        offset: 1-based number of the first line wanted.
        limit: most lines wanted, 0 = no limit.
    """

    def __init__(self, offset: int, limit: int) -> None:
        self.offset = offset
        self.limit = limit
        self.lines: list[bytes] = []
        self.full = False
        self.newlines = 0
        self.crlf = 0
        self._kept = 0
        self._to_skip = offset - 1
        self._line: list[bytes] = []
        self._line_kept = 0
        self._line_size = 0
        self._last = b""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the stream."""
        if not piece:
            return
        self.newlines += piece.count(b"\n")
        self.crlf += piece.count(b"\r\n") + (self._last == b"\r" and piece[:1] == b"\n")
        self._last = piece[-1:]
        at = 0
        while self._to_skip and not self.full:
            end = piece.find(b"\n", at)
            if end < 0:
                return
            at = end + 1
            self._to_skip -= 1
        while at < len(piece) and not self.full:
            end = piece.find(b"\n", at) + 1
            self._add(piece[at : end or len(piece)], ends=end > 0)
            at = end or len(piece)

    def skip_hole(self, size: int) -> None:
        """Take a hole of `size` zero bytes without reading them."""
        self.feed(bytes(min(size, LONGEST_LINE + 1)))
        if self._line_size and not self.full:
            self._line_size += max(0, size - LONGEST_LINE - 1)

    def end(self) -> None:
        """The stream has ended; a last line without newline counts."""
        if self._line_size and not self.full:
            self._finish_line()
        self.full = True

    @property
    def total(self) -> int:
        """Lines fed so far."""
        return self.newlines + (self._last not in (b"", b"\n"))

    @property
    def newline(self) -> Newline:
        """Which line endings were fed."""
        if self.newlines == 0:
            return "none"
        if self.crlf == 0:
            return "lf"
        return "crlf" if self.crlf == self.newlines else "mixed"

    def _add(self, part: bytes, *, ends: bool) -> None:
        room = LONGEST_LINE - self._line_kept
        if room > 0:
            self._line.append(part[:room])
            self._line_kept += min(room, len(part))
        self._line_size += len(part)
        if ends:
            self._finish_line(ended=part[-2:])

    def _finish_line(self, ended: bytes = b"") -> None:
        line = b"".join(self._line)
        if self._line_size > LONGEST_LINE + 2:
            line = _whole_characters(line)
            line += f"… [cut: the line has {self._line_size} bytes]".encode() + (b"\n" if ended else b"")
        elif self._line_size > self._line_kept:
            line += ended[-(self._line_size - self._line_kept) :]
        self._line, self._line_kept, self._line_size = [], 0, 0
        if self.lines and self._kept + len(line) > MOST_RETURNED:
            self.full = True
            return
        self.lines.append(line)
        self._kept += len(line)
        self.full = len(self.lines) == self.limit


def _whole_characters(line: bytes) -> bytes:
    """Drop a UTF-8 character that was cut at the end."""
    for back in range(1, 4):
        if line[-back:][:1] >= b"\xc0":
            return line[:-back] if len(line[-back:].decode("utf-8", "ignore")) == 0 else line
    return line


def read_lines(
    fd: int, offset: int, limit: int, named: str | None, *, as_text: bool = False
) -> dict[str, Any]:
    """Read a window of lines of an open regular file, as WS-18 records it (without `path`).

    Args:
        offset: 1-based line. limit: most lines, 0 = as many as one call returns.
        named: encoding, None = found out. as_text: it is text, whatever bytes are in it.

    Raises:
        InvalidArgument: `offset` or `limit` out of range, or an unknown encoding.
    """
    if offset < 1:
        raise InvalidArgument(f"offset is {offset}; lines count from 1")
    if limit < 0:
        raise InvalidArgument(f"limit is {limit}; use 0 for all")
    size = os.fstat(fd).st_size
    head = os.pread(fd, HEAD, 0)
    encoding = encoding_of(head, named)
    if not as_text and is_binary(head, named):
        return _binary_record(fd, head, size, offset)
    window = LineWindow(offset, limit)
    digest = hashlib.sha256() if size <= MOST_COUNTED else None
    translate = _ToUtf8(encoding)
    check = codecs.getincrementaldecoder("utf-8")() if encoding.is_utf8 else None
    skip = len(encoding.bom)
    for piece, hole in _pieces(fd, head, size):
        if digest is not None:
            digest.update(piece)
        if hole:
            window.skip_hole(hole)
        text, skip = piece[skip:], 0
        if check is not None and not _still_utf8(check, text):
            check = None
            encoding = Encoding("unknown", "utf-8", encoding.bom)
        window.feed(translate(text))
        if window.full and digest is None:
            break
    if check is not None and not window.full and not _still_utf8(check, b"", final=True):
        encoding = Encoding("unknown", "utf-8", encoding.bom)
    return _record(window, encoding, size, digest)


def _record(window: LineWindow, encoding: Encoding, size: int, digest: Any) -> dict[str, Any]:
    counted = digest is not None
    if not window.full:
        window.end()
    end = window.offset + len(window.lines) - 1
    more = window.total > end if window.lines or counted else False
    text = b"".join(window.lines).decode("utf-8", "replace").replace("\r\n", "\n")
    return {
        "content": text,
        "start_line": window.offset,
        "end_line": end,
        "total_lines": window.total if counted else None,
        "truncated": more and bool(window.lines),
        "next_offset": end + 1 if more and window.lines else None,
        "encoding": encoding.name,
        "newline": window.newline,
        "size": size,
        "hash": "sha256:" + digest.hexdigest() if counted else None,
        "binary": False,
    }


def _binary_record(fd: int, head: bytes, size: int, offset: int) -> dict[str, Any]:
    digest = None
    if size <= MOST_COUNTED:
        digest = hashlib.sha256()
        for piece, _ in _pieces(fd, head, size):
            digest.update(piece)
    return {
        "content": None,
        "start_line": offset,
        "end_line": offset - 1,
        "total_lines": None,
        "truncated": False,
        "next_offset": None,
        "encoding": None,
        "newline": "none",
        "size": size,
        "hash": "sha256:" + digest.hexdigest() if digest is not None else None,
        "binary": True,
    }


def _pieces(fd: int, head: bytes, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield (bytes, size of the hole before them); holes of counted files are read as zeros."""
    yield head, 0
    at = len(head)
    while at < size:
        hole = 0
        if size > MOST_COUNTED:
            start = next_data(fd, at, size)
            hole, at = start - at, start
        piece = os.pread(fd, _PIECE, at)
        if not piece and not hole:
            return
        at += len(piece)
        yield piece, hole


class _ToUtf8:
    """Translates a stream piece by piece; UTF-8 (also with broken bytes) passes unchanged."""

    def __init__(self, encoding: Encoding) -> None:
        self._decoder = None if encoding.is_utf8 else codecs.getincrementaldecoder(encoding.codec)("replace")

    def __call__(self, piece: bytes) -> bytes:
        return piece if self._decoder is None else self._decoder.decode(piece).encode("utf-8", "replace")


def _still_utf8(check: codecs.IncrementalDecoder, piece: bytes, *, final: bool = False) -> bool:
    try:
        check.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return True
