"""Files of a multipart body, taken apart while they stream (SV-16): straight to disk, a chunk in memory.

Here: parsing, names, limits. Not here: where the files end up (`conversations/uploads.py`).
"""

import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bowerbird.server.common.errors import invalid, problem

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

    from bowerbird.server.common.context import ServerSettings

FIELD = "files"
HEADER_BYTES = 16 * 1024
OTHER_BYTES = 64 * 1024  # of parts that are no files


@dataclass(frozen=True, slots=True)
class Uploaded:
    """One file of a request: its name, and where its bytes lie for now."""

    name: str
    source: Path


def file_name(given: str) -> str:
    """Return the name that a file gets: what a path leads to, whatever came before it.

    Raises:
        Problem: 422 for a name that is empty, `.`, `..`, has NUL or over 255 bytes.

    Example:
        >>> file_name("../../x"), file_name("C:\\\\docs\\\\a.txt")
        ('x', 'a.txt')
    """
    name = re.split(r"[/\\]", given)[-1]
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise invalid(("body", FIELD), "a file name is not UTF-8") from None
    if name in ("", ".", "..") or "\0" in name or size > 255:
        raise invalid(("body", FIELD), "a file name is empty, '.', '..', has NUL, or is over 255 bytes")
    return name


class _Parts:
    """Callbacks of the parser: one open part at a time."""

    def __init__(self, directory: Path, settings: "ServerSettings") -> None:
        self.files: dict[str, Uploaded] = {}
        self.ended = False
        self._directory = directory
        self._settings = settings
        self._count = 0
        self._total = 0
        self._size = 0
        self._name = bytearray()
        self._value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._file: IO[bytes] | None = None

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._part_begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._part_data,
            "on_part_end": self.close,
            "on_end": self._end,
        }

    def close(self) -> None:
        """Close the file of the present part."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _end(self) -> None:
        self.ended = True

    def _part_begin(self) -> None:
        self._headers, self._size = {}, 0

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._name.extend(data[start:end])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value.extend(data[start:end])

    def _header_end(self) -> None:
        self._headers[bytes(self._name).lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _headers_finished(self) -> None:
        from python_multipart.multipart import parse_options_header

        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        given = options.get(b"filename")
        if options.get(b"name") != FIELD.encode() or given is None:
            return
        self._count += 1
        if self._count > self._settings.upload_files:
            raise invalid(("body", FIELD), f"at most {self._settings.upload_files} files", "too_long")
        name = file_name(given.decode("utf-8", "surrogateescape"))
        if name in self.files:
            raise invalid(
                ("body", FIELD), f"two of the files are called {name}; nothing was uploaded", "twice"
            )
        source = self._directory / str(self._count)
        self._file = source.open("wb")
        self.files[name] = Uploaded(name, source)

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        size = end - start
        self._size += size
        self._total += size
        settings = self._settings
        if self._file is None:
            if self._size > OTHER_BYTES:
                raise problem("too_large", f"a part that is not a file is larger than {OTHER_BYTES} bytes")
            return
        if self._size > settings.upload_bytes:
            most = f"{settings.upload_bytes / (1 << 20):g} MB (limits.upload_mb)"
            raise problem("too_large", f"{next(reversed(self.files))} is larger than {most}")
        if self._total > settings.upload_total_bytes:
            raise problem(
                "too_large",
                f"the files are larger than {settings.upload_total_bytes / (1 << 20):g} MB together",
            )
        self._file.write(memoryview(data)[start:end])


async def receive_files(
    chunks: AsyncIterator[bytes], content_type: str, directory: Path, settings: "ServerSettings"
) -> list[Uploaded]:
    """Store the files of a body below `directory`, which is the caller's to remove.

    Raises:
        Problem: 413 as soon as a limit is passed, 415 no multipart body, 422 no file, a bad name, or a
            body that does not parse.
    """
    from python_multipart.exceptions import FormParserError
    from python_multipart.multipart import MultipartParser, parse_options_header

    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data":
        raise problem("unsupported_media_type", "send the files as multipart/form-data")
    if not boundary:
        raise invalid(("header", "Content-Type"), "multipart/form-data has no boundary")
    parts = _Parts(directory, settings)
    try:
        parser = MultipartParser(boundary, parts.callbacks(), max_header_size=HEADER_BYTES)
        async for chunk in chunks:
            parser.write(chunk)
    except FormParserError:
        raise invalid(("body",), "the multipart body does not parse") from None
    finally:
        with contextlib.suppress(OSError):
            parts.close()
    if not parts.ended:
        raise invalid(("body",), "the multipart body is cut off")
    if not parts.files:
        raise invalid(("body", FIELD), "there is no file in the form field 'files'", "missing")
    return list(parts.files.values())
