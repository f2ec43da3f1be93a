"""What a subagent changed, as its caller is told (DE-8, DE-11).

Here: counts, and the patch with what is binary by size and hash. Not here: finding changes, patch
syntax (`workspace`). Calls block.
"""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import LimitExceeded

if TYPE_CHECKING:
    from bowerbird.workspace import Branch, Diff, FileDiff

PATCH_CHARS = 8_000
_HASHED = 64 * 1024 * 1024


def child_diff(fork: "Branch", chars: int = PATCH_CHARS) -> dict[str, Any]:
    """Return `{"written", "deleted", "patch", "patch_truncated"}` of a fork.

    Args:
        chars: most characters of the patch.
    """
    found = fork.diff()
    patch, truncated = _patch(fork, found, chars)
    return {
        "written": [_row(row) for row in found.written],
        "deleted": list(found.deleted),
        "patch": patch,
        "patch_truncated": truncated,
    }


def _row(change: "FileDiff") -> dict[str, Any]:
    encoded = {} if change.path_b64 is None else {"path_b64": change.path_b64}
    return {
        "path": change.path, **encoded, "kind": change.kind, "size": change.size,
        "added": change.added, "removed": change.removed,
    }  # fmt: skip


def counts(diff: dict[str, Any]) -> tuple[int, int, int]:
    """Return files, lines added and lines removed.

    >>> counts({"written": [{"added": 2, "removed": 1}], "deleted": ["/x"]})
    (2, 2, 1)
    """
    rows = diff["written"]
    added, removed = (sum(int(row[key]) for row in rows) for key in ("added", "removed"))
    return len(rows) + len(diff["deleted"]), added, removed


def summary(diff: dict[str, Any]) -> str:
    """Return one line per changed path."""
    lines = [f"{row['kind']} {row['path']} +{row['added']} -{row['removed']}" for row in diff["written"]]
    return "\n".join([*lines, *(f"delete {path}" for path in diff["deleted"])])


def _patch(fork: "Branch", diff: "Diff", chars: int) -> tuple[str, bool]:
    """Return the patch and whether it was cut; no more files are read than fit."""
    parts: list[str] = []
    left = chars
    for text in _pieces(fork, diff):
        parts.append(text[:left])
        left -= len(text)
        if left < 0:
            return "".join(parts), True
    return "".join(parts), False


def _pieces(fork: "Branch", diff: "Diff") -> Iterator[str]:
    """Yield the patches path by path; what has no lines goes last, by size and hash."""
    rows = {row.path: row for row in diff.written}
    for patch in fork.patches():
        row = rows.get(patch.path)
        if row is not None and row.binary and row.type == "file":
            continue
        try:
            sections = patch.sections()
        except LimitExceeded as error:
            yield f"No patch: {error}\n"
            continue
        stays = row if row is not None and row.type == "file" else None
        for text in sections:
            yield text if "\nGIT binary patch\n" not in text else _facts(fork, patch.path, stays)
    for path, row in rows.items():
        if row.binary and row.type == "file":
            yield _facts(fork, path, row)


def _facts(fork: "Branch", path: str, row: "FileDiff | None") -> str:
    """Return the line of a file without a text of its own, None = it was deleted."""
    if row is None:
        return f"Binary file {path}: deleted\n"
    digest = ""
    if row.size <= _HASHED:
        content = fork.read_overlay(path if row.path_b64 is None else {"b64": row.path_b64})
        digest = "" if content is None else f", sha256:{hashlib.sha256(content).hexdigest()}"
    return f"Binary file {path}: {row.size:,} bytes{digest}\n"
