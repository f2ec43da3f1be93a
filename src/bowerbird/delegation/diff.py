"""What a subagent changed, as its caller is told (DE-8, DE-11).

Here: counts, and the patch with what is binary by size and hash. Not here: finding changes, patch
syntax (`workspace`). Calls block.
"""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bowerbird.core.errors import LimitExceeded

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

PATCH_CHARS = 8_000
_KEPT = ("path", "path_b64", "kind", "size", "added", "removed")
_HASHED = 64 * 1024 * 1024
_FILES_AT_ONCE = 64


def child_diff(fork: "Branch", chars: int = PATCH_CHARS) -> dict[str, Any]:
    """Return `{"written", "deleted", "patch", "patch_truncated"}` of a fork.

    Args:
        chars: most characters of the patch.
    """
    found = fork.diff()
    written: list[dict[str, Any]] = found["written"]
    patch, truncated = _patch(fork, found, chars)
    return {
        "written": [{key: row[key] for key in _KEPT if key in row} for row in written],
        "deleted": found["deleted"],
        "patch": patch,
        "patch_truncated": truncated,
    }


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


def _patch(fork: "Branch", diff: dict[str, Any], chars: int) -> tuple[str, bool]:
    """Return the patch and whether it was cut; no more files are read than fit."""
    parts: list[str] = []
    left = chars
    for text in _pieces(fork, diff):
        parts.append(text[:left])
        left -= len(text)
        if left < 0:
            return "".join(parts), True
    return "".join(parts), False


def _pieces(fork: "Branch", diff: dict[str, Any]) -> Iterator[str]:
    rows: dict[str, dict[str, Any]] = {row["path"]: row for row in diff["written"]}
    paths: list[str] = [*diff["deleted"], *(path for path, row in rows.items() if not row["binary"])]
    seen: set[str] = set()  # a deleted directory also names what was in it
    for start in range(0, len(paths), _FILES_AT_ONCE):
        try:
            patch = fork.unified(paths[start : start + _FILES_AT_ONCE])
        except LimitExceeded as error:
            yield f"No patch: {error}\n"
            continue
        for header, text in _sections(patch):
            if header not in seen:
                seen.add(header)
                yield text if "\nGIT binary patch\n" not in text else _binary(fork, rows, header)
    for path, row in rows.items():
        if row["binary"]:
            yield _facts(fork, path, row)


def _sections(patch: str) -> Iterator[tuple[str, str]]:
    """Yield header and text of each file of a patch; lines of content never begin like a header."""
    lines: list[str] = []
    for line in patch.splitlines(keepends=True):
        if line.startswith("diff --git ") and lines:
            yield lines[0], "".join(lines)
            lines = []
        lines.append(line)
    if lines:
        yield lines[0], "".join(lines)


def _binary(fork: "Branch", rows: dict[str, dict[str, Any]], header: str) -> str:
    path = "/" + header.rstrip("\n").rpartition(" b/")[2]
    row = rows.get(path)
    return f"Binary file {path}: deleted\n" if row is None else _facts(fork, path, row)


def _facts(fork: "Branch", path: str, row: dict[str, Any]) -> str:
    digest = ""
    if row["size"] <= _HASHED:
        content = fork.read_overlay(path)
        digest = "" if content is None else f", sha256:{hashlib.sha256(content).hexdigest()}"
    return f"Binary file {path}: {row['size']:,} bytes{digest}\n"
