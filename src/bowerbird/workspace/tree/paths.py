"""Virtual paths: reading what callers give, resolving it in a view, showing it.

Here: WS-10 … WS-14: the forms of input, links and `..` as the kernel resolves them,
errors with the nearest name, names that are not UTF-8. Not here: opening (`merged_view.py`).

A resolved path names an entry without links above it. Opening it goes by handles that
follow no link, so a link swapped in after resolution makes the opening fail, not wander.
"""

import base64
import binascii
import os
import posixpath
import re
import unicodedata
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bowerbird.core.errors import InvalidPath, NotDirectory, NotFound, PathEscape, TooManyLinks
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import Entry

PathInput = str | Mapping[str, str]
"""A path as callers give it: text, or `{"b64": "…"}` for names that are not UTF-8."""

_MOST_LINKS = 40
_LONGEST_NAME = 255
_LONGEST_PATH = 4096


class Resolved(msgspec.Struct, frozen=True):
    """Where a given path leads.

    Attributes:
        path: virtual path without links above its last name.
        entry: what stands there, None when nothing does.
    """

    path: str
    entry: Entry | None


def parse(given: PathInput, workspace: Path | None, copy: Path | None = None) -> list[str]:
    """Return the components of a given path, `.` and empty ones left out, `..` kept.

    Raises:
        InvalidPath: empty, NUL, a name over 255 bytes, over 4096 bytes in all.
    """
    text = _text(given)
    if not text or "\0" in text:
        raise InvalidPath("a path must not be empty" if not text else "a path must not contain NUL")
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise InvalidPath(f"{text!a} cannot be a file name: {error.reason}") from error
    if len(raw) > _LONGEST_PATH:
        raise InvalidPath(f"a path of {len(raw)} bytes is longer than {_LONGEST_PATH}")
    for root in (workspace, copy):
        own = str(root) if root is not None else "/"
        if own != "/" and (text == own or text.startswith(own + "/")):
            text = text[len(own) :]
            break
    parts = [part for part in text.split("/") if part not in ("", ".")]
    for part in parts:
        if len(os.fsencode(part)) > _LONGEST_NAME:
            raise InvalidPath(f"the name {shown(part)[:40]}… is longer than {_LONGEST_NAME} bytes")
    return parts


def _text(given: PathInput) -> str:
    if isinstance(given, str):
        return given
    try:
        return os.fsdecode(base64.b64decode(given["b64"], validate=True))
    except (KeyError, TypeError, AttributeError, binascii.Error, ValueError) as error:
        raise InvalidPath('a path is text or {"b64": "<base64 of its bytes>"}') from error


def lexical(given: PathInput, workspace: Path | None) -> str:
    """Return a path that names what calls are ordered by; links are not looked at."""
    return posixpath.normpath("/" + "/".join(parse(given, workspace)))


def chosen_path(given: PathInput, workspace: Path | None) -> str:
    """Return the virtual path of a change that a caller names; links are not looked at.

    Raises:
        PathEscape: it climbs above the root.
    """
    here: list[str] = []
    for part in parse(given, workspace):
        if part != "..":
            here.append(part)
        elif here:
            here.pop()
        else:
            raise PathEscape(f"{shown(_text(given))} leaves the workspace", _text(given))
    return "/" + "/".join(here)


def resolve(view: MergedView, given: PathInput, *, follow: bool = True) -> Resolved:
    """Resolve a given path in a view.

    Args:
        follow: whether a link at the last name is followed.

    Raises:
        InvalidPath, PathEscape, TooManyLinks: see WS-11 … WS-13.
        NotDirectory: something else than a directory is on the way.
        NotFound: `..` after a name that does not exist.
    """
    workspace = view.ground.root
    parts = parse(given, workspace, view.ground.copy)
    if ".." not in parts:
        path = "/" + "/".join(parts)
        entry = view.lookup(path)
        if entry is not None and (entry.kind != "symlink" or not follow):
            return Resolved(path, entry)
    return _walk(view, parts, shown(_text(given)), follow=follow)


def _walk(view: MergedView, parts: list[str], given: str, *, follow: bool) -> Resolved:
    here: list[str] = []
    todo = deque(parts)
    entry = view.lookup("/")
    hops = 0
    while todo:
        name = todo.popleft()
        if name == "..":
            if not here:
                raise PathEscape(f"{given} leaves the workspace", given)
            here.pop()
            entry = view.lookup("/" + "/".join(here))
            continue
        path = "/" + "/".join([*here, name])
        entry = view.lookup(path)
        if entry is None:
            if ".." in todo:
                raise NotFound(f"{shown_path(path)} does not exist", path)
            return Resolved("/" + "/".join([*here, name, *todo]), None)
        if entry.kind == "symlink" and (todo or follow):
            hops += 1
            if hops > _MOST_LINKS:
                raise TooManyLinks(f"{given} goes through more than {_MOST_LINKS} links", path)
            absolute, target = _target(entry.target or "", view.ground.root, given)
            if absolute:
                here = []
            todo.extendleft(reversed(target))
            if not todo:
                entry = view.lookup("/" + "/".join(here))
            continue
        if todo and entry.kind != "dir":
            raise NotDirectory(f"{shown_path(path)} is not a directory", path)
        here.append(name)
    return Resolved("/" + "/".join(here), entry)


def _target(target: str, workspace: Path | None, given: str) -> tuple[bool, list[str]]:
    """Return whether a link's target is absolute, and its components below the root."""
    absolute = target.startswith("/")
    if absolute:
        own = str(workspace) if workspace is not None else None
        plain = re.sub(r"/(\./)*/*", "/", target)
        if own is None or (plain != own and not plain.startswith(own.rstrip("/") + "/")):
            raise PathEscape(f"{given} leaves the workspace", given)
        target = plain[len(own.rstrip("/")) :]
    return absolute, [part for part in target.split("/") if part not in ("", ".")]


HIDDEN = "is hidden from agents by the setting workspace.hide"
"""What is said of such a path wherever it is asked for."""


def missing(view: MergedView, path: str) -> NotFound:
    """Return the error for a path where nothing stands: it is hidden, or a sibling nearly fits."""
    if view.ground.hidden(path):
        return NotFound(f"{shown_path(path)} {HIDDEN}: whether it exists is not shown", path)
    near = nearly(view, path)
    hint = f"; did you mean {shown_path(near)}?" if near is not None else ""
    return NotFound(f"{shown_path(path)} does not exist{hint}", path)


def nearly(view: MergedView, path: str) -> str | None:
    """Return what stands where `path` would be but for case or normalisation of any name in it, or None.

    Names that exist as given are taken; of several others the first by name.
    """
    here = ""
    for name in path[1:].split("/"):
        if view.lookup(f"{here}/{name}") is None:
            wanted = _folded(name)
            try:
                near = sorted(other for other in view.children(here or "/") if _folded(other) == wanted)
            except (NotFound, NotDirectory):
                return None
            if not near:
                return None
            name = near[0]  # noqa: PLW2901 - the name as it is written there
        here = f"{here}/{name}"
    return None if here == path else here


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def shown(text: str) -> str:
    r"""Return `text` with undecodable bytes as `\xHH`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\udc80-\udcff]", lambda m: f"\\x{ord(m[0]) - 0xDC00:02x}", text)
    return text


def on_one_line(path: str) -> str:
    r"""Return a path for a sentence: a name with a line's end in it begins no line of its own.

    >>> print(on_one_line("/a\nlanded everything"))
    a\nlanded everything
    """
    return shown(path).lstrip("/").replace("\n", "\\n").replace("\r", "\\r")


def listed(paths: Sequence[str], most: int = 5) -> str:
    """Return some paths for a sentence.

    >>> listed(["/a", "/b", "/c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(map(on_one_line, paths[:most])) + more


def shown_path(path: str) -> str:
    """Return a path as models read it: without the leading slash, the root as `.`."""
    return shown(path[1:]) or "."


def path_b64(path: str) -> str | None:
    """Return base64 of the bytes of a path that is not UTF-8, else None."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return base64.b64encode(os.fsencode(path)).decode()
    return None


def add_path(record: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    """Put a path into a record, with `<key>_b64` beside it when it is not UTF-8.

    `path` and `name` both add `path_b64`.
    """
    record[key] = shown(path)
    encoded = path_b64(path)
    if encoded is not None:
        record["path_b64" if key in ("path", "name") else f"{key}_b64"] = encoded
    return record


def sort_paths(paths: list[str]) -> list[str]:
    """Sort in place by name bytes; the common case compares text, which orders alike."""
    try:
        "\n".join(paths).encode()
        paths.sort()
    except UnicodeEncodeError:
        paths.sort(key=os.fsencode)
    return paths
