"""The records of `ls` and `list_files` (WS-17, WS-19).

Here: listing one directory, listing files by glob. Not here: the walk itself (`walk.py`).
Listing opens no listed file.
"""

import os
from collections.abc import Mapping
from typing import Any

from bowerbird.core.errors import InvalidArgument, NotDirectory, WorkspaceError
from bowerbird.core.timestamps import to_iso
from bowerbird.workspace.find.walk import Walker
from bowerbird.workspace.tree.glob import compile_glob
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import Entry, Node
from bowerbird.workspace.tree.paths import (
    PathInput,
    add_path,
    missing,
    path_b64,
    resolve,
    shown,
    shown_path,
    sort_paths,
)
from bowerbird.workspace.tree.reserved import RESERVED

MOST_FILES = 10_000
MOST_PRUNED = 20
_MOST_HIDDEN = 20


def check_page(offset: int, limit: int) -> None:
    """Raise InvalidArgument for an offset below 1 or a negative limit."""
    if offset < 1:
        raise InvalidArgument(f"offset is {offset}; entries count from 1")
    if limit < 0:
        raise InvalidArgument(f"limit is {limit}; use 0 for as many as one call returns")


def ls(
    view: MergedView, path: str, own: Mapping[str, Node], *, offset: int = 1, limit: int = 1000
) -> dict[str, Any]:
    """List one directory.

    Args:
        path: resolved virtual path of the directory, or of a link or file (listed alone).
        own: what the branch's own layers say about the directory's children, by name.
        offset: 1-based. limit: most entries, 0 = 10,000.

    Raises:
        NotFound, NotDirectory, InvalidArgument.

    Returns:
        The entries; `hidden` names those that `workspace.hide` takes out, where there are any.
    """
    check_page(offset, limit)
    entry = view.lookup(path)
    if entry is None:
        raise missing(view, path)
    if entry.kind == "symlink":
        # `ls` acts on the link itself: its one line says where it leads.
        children = {path.rpartition("/")[2]: entry}
    elif entry.kind != "dir":
        raise NotDirectory(f"{shown_path(path)} is not a directory", path)
    else:
        children = view.children(path)
    names = sorted(children, key=os.fsencode)
    if path == "/":
        names = [name for name in names if name not in RESERVED]
    page = names[offset - 1 : offset - 1 + (limit or MOST_FILES)]
    record = add_path({}, "path", path)
    record["entries"] = [_row(name, children[name], changed=name in own) for name in page]
    record["total"] = len(names)
    record["truncated"] = offset - 1 + len(page) < len(names)
    hidden = view.ground.hidden_names(path, _MOST_HIDDEN) if entry.kind == "dir" else []
    if hidden:
        record["hidden"] = [shown(name) for name in hidden]
    return record


def stat(view: MergedView, path: PathInput, *, follow: bool = True) -> dict[str, Any] | None:
    """Return `path, type, size, mode, mtime_ns` of what stands at `path`, None when nothing does."""
    found = resolve(view, path, follow=follow)
    entry = found.entry
    if entry is None:
        return None
    facts = {"type": entry.kind, "size": entry.size, "mode": entry.mode, "mtime_ns": entry.mtime_ns}
    return add_path({}, "path", found.path) | facts


def _row(name: str, entry: Entry, *, changed: bool) -> dict[str, Any]:
    from datetime import UTC, datetime

    row = add_path({}, "name", name)
    row |= {
        "type": entry.kind,
        "size": entry.size,
        "mode": entry.mode,
        "mtime": to_iso(datetime.fromtimestamp(entry.mtime_ns / 1e9, UTC)),
    }
    if entry.target is not None:
        row["target"] = shown(entry.target)
    row["changed"] = changed
    return row


def list_files(
    view: MergedView, pattern: str, *, offset: int = 1, limit: int = 0, include_ignored: bool = False
) -> dict[str, Any]:
    """List files and links (not to directories) that fit a glob, sorted by path bytes.

    Args:
        view: made for this call.
        limit: most files, 0 = 10,000; `total` is exact in any case.

    Raises:
        InvalidPattern, InvalidArgument.
    """
    check_page(offset, limit)
    found = Walker(view, compile_glob(pattern), include_ignored=include_ignored).run()
    files = found.files + [link for link in found.links if not _to_directory(view, link)]
    sort_paths(files)
    page = files[offset - 1 : offset - 1 + (min(limit, MOST_FILES) if limit else MOST_FILES)]
    record: dict[str, Any] = {
        "files": page,
        "total": len(files),
        "offset": offset,
        "truncated": offset - 1 + len(page) < len(files),
        "pruned": [shown(path) for path in sort_paths(found.pruned)[:MOST_PRUNED]],
    }
    odd = {shown(path): encoded for path in page if (encoded := path_b64(path)) is not None}
    if odd:
        record |= {"files": [shown(path) for path in page], "path_b64": odd}
    return record


def _to_directory(view: MergedView, link: str) -> bool:
    try:
        entry = resolve(view, link).entry
    except WorkspaceError:
        return False  # a link that leads nowhere, or out, is an entry of its own
    return entry is not None and entry.kind == "dir"
