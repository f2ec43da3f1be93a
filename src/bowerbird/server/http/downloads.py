"""A file as an attachment, whole or one range of it (SV-17): read in pieces, closed whatever happens.

Here: the response. Not here: which file (`conversations/files.py`).
"""

import hashlib
import os
import posixpath
import re
from email.utils import formatdate, parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import Response

from bowerbird.core.threads import to_thread
from bowerbird.server.common.errors import problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.datastructures import Headers
    from starlette.types import Receive, Scope, Send

    from bowerbird.workspace.find.browsing import OpenFile

PIECE = 256 * 1024
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


def range_of(header: str | None, size: int) -> tuple[int, int] | None:
    """Return (first, last) of a Range header, None to send the whole file.

    Several ranges, or one that is malformed, are ignored, as HTTP allows.

    Raises:
        Problem: 416, the range begins behind the end.

    Example:
        >>> range_of("bytes=2-", 10), range_of("bytes=-3", 10), range_of(None, 10)
        ((2, 9), (7, 9), None)
    """
    match = _RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or match.groups() == ("", ""):
        return None
    first_text, last_text = match.groups()
    if not first_text:
        length = int(last_text)
        first, last = max(0, size - length), size - 1
        unsatisfiable = length == 0 or size == 0
    else:
        first = int(first_text)
        last = min(int(last_text), size - 1) if last_text else size - 1
        if last_text and int(last_text) < first:
            return None
        unsatisfiable = first >= size
    if unsatisfiable:
        raise problem(
            "range_not_satisfiable",
            "the range begins beyond the end",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return first, last


def disposition(name: str) -> str:
    """Return a Content-Disposition that says `attachment`, for any name.

    Example:
        >>> disposition('a "b".txt')
        "attachment; filename=\\"a _b_.txt\\"; filename*=UTF-8''a%20%22b%22.txt"
    """
    plain = re.sub(r'[^ -~]|["\\%]', "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"


def validators(file: "OpenFile") -> dict[str, str]:
    """Return the headers by which a client tells later whether an open file is still what it has."""
    facts = os.fstat(file.fd)
    # The change time moves with every write, whatever modification time a program sets.
    known = f"{facts.st_dev:x}-{facts.st_ino:x}-{facts.st_size:x}-{facts.st_mtime_ns:x}-{facts.st_ctime_ns:x}"
    return {
        "ETag": f'"{hashlib.sha256(known.encode()).hexdigest()[:32]}"',
        "Last-Modified": formatdate(facts.st_mtime, usegmt=True),
        "Cache-Control": "private, no-cache",
    }


def is_known(request: "Headers", present: "Mapping[str, str]") -> bool:
    """Tell whether a request names the present version: then the answer is 304."""
    tags = request.get("if-none-match")
    if tags is not None:
        return any(tag.strip().removeprefix("W/") in ("*", present["ETag"]) for tag in tags.split(","))
    since = request.get("if-modified-since")
    try:
        return since is not None and parsedate_to_datetime(since) >= parsedate_to_datetime(
            present["Last-Modified"]
        )
    except (TypeError, ValueError):
        return False  # not a date: as if it were not there


def file_answer(file: "OpenFile", request: "Headers") -> Response:
    """Return a file, the wanted range of it, or 304; whatever happens, the file is closed."""
    present = validators(file)
    if is_known(request, present):
        os.close(file.fd)
        return Response(status_code=304, headers=present)
    whole = request.get("if-range") not in (None, present["ETag"])  # a range of another version is no use
    return FileAnswer(file, None if whole else request.get("range"))


class FileAnswer(Response):
    """Sends an open file and closes it.

    Args:
        file: owned from now on. range_header: the request's, or None.
    """

    def __init__(self, file: "OpenFile", range_header: str | None) -> None:
        try:
            wanted = range_of(range_header, file.size)
        except BaseException:
            os.close(file.fd)
            raise
        first, last = wanted or (0, file.size - 1)
        headers = {
            "Content-Length": str(last - first + 1),
            "Content-Disposition": disposition(posixpath.basename(file.path)),
            "X-Content-Type-Options": "nosniff",
            "Accept-Ranges": "bytes",
            **validators(file),
        }
        if wanted is not None:
            headers["Content-Range"] = f"bytes {first}-{last}/{file.size}"
        self.status_code = 200 if wanted is None else 206
        self.media_type = "application/octet-stream"
        self.background = None
        self.init_headers(headers)
        self._file, self._at, self._end = file, first, last + 1

    def init_headers(self, headers: "dict[str, str] | None" = None) -> None:  # type: ignore[override]  # Starlette takes any Mapping
        """Take the headers as they are: there is no body to count."""
        given = {"Content-Type": self.media_type or "", **(headers or {})}
        self.raw_headers = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in given.items()]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            at = self._at
            while at < self._end:
                piece = await to_thread(os.pread, self._file.fd, min(PIECE, self._end - at), at)
                if not piece:
                    # It was cut meanwhile; the promised length cannot be kept, so the connection ends.
                    raise OSError(f"{self._file.path} became shorter while it was sent")
                at += len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            os.close(self._file.fd)
