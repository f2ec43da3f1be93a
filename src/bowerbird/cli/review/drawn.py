"""Changes and landings as lines: what `diff`, `landings` and their like show (UI-43).

Here: the three forms of a diff, rows of landings. Not here: whose branch it is (`client/`), colours
(`terminal/drawing.py`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bowerbird.cli.client.protocol import Client
from bowerbird.cli.review.git_lines import git_lines
from bowerbird.cli.review.marking import taint_line
from bowerbird.cli.terminal.drawing import coloured_diff
from bowerbird.cli.terminal.exits import DONE
from bowerbird.cli.terminal.pager import show_paged
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import age, cut_path, harmless_path, plural, size, table
from bowerbird.core.timestamps import from_iso

_SHORTEST_PATH = 20


async def write_diff(
    shell: Shell, client: Client, thread_id: str, chosen: Sequence[str], *, stat: bool, json: bool
) -> int:
    """Show a session's changes in one of the three forms.

    Args:
        chosen: only these paths; none = all, without what every door folds: caches, and what git ignores.
    """
    paths: Sequence[str] | None = chosen or None
    found = await client.diff(thread_id, paths)
    if json:
        return shell.json({"folded": [], **found})
    said = taint_line([*found["written"], *found.get("marks", {}).values()])
    if said:
        shell.terminal.warn(said, "yellow")
    folded = folded_lines(found.get("folded", ()))
    for line in folded:
        shell.terminal.note(line)
    told = git_lines(found.get("git", ()))
    if stat:
        for line in [*stat_lines(found, width=shell.terminal.width), *told]:
            shell.terminal.line(line)
        return DONE
    for line in told:
        shell.terminal.note(line)
    patch = await client.patch(thread_id, paths)
    show_paged(shell.terminal, coloured_diff(patch, shell.terminal.out), patch)
    if not patch and not told and not folded:
        where = f" at {', '.join(map(harmless_path, chosen))}" if chosen else ""
        shell.terminal.note(f"session {thread_id} changes nothing{where}")
    return DONE


def folded_lines(folded: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line for each top directory of what stays on the branch.

    >>> folded_lines([{"path": "/build/", "files": 8000, "bytes": 32_500_000}])
    ['build/  8,000 files, 31.0 MiB, stays on the branch; --include build lands it']
    """
    return [
        f"{harmless_path(top)}  {folded_count(row)}, "
        f"stays on the branch; --include {harmless_path(top.rstrip('/'))} lands it"
        for row in folded
        for top in [row["path"].lstrip("/")]
    ]


def folded_count(row: Mapping[str, Any]) -> str:
    """Return how much is folded into one line."""
    return f"{row['files']:,} file{'s' * (row['files'] != 1)}, {size(row['bytes'])}"


def stat_lines(data: dict[str, Any], *, width: int) -> list[str]:
    """Return one line per changed path with its counts, flagged ones marked."""
    rows: list[list[str]] = []
    added = removed = 0
    moved = {row["renamed_from"] for row in data["written"] if row.get("renamed_from")}
    for row in data["written"]:
        plus, minus = _counts(row)
        added, removed = added + plus, removed + minus
        mark = "R" if row.get("renamed_from") else "A" if row["kind"] == "create" else "M"
        name = harmless_path(row["path"].lstrip("/"))
        if row.get("renamed_from"):
            name = f"{harmless_path(row['renamed_from'].lstrip('/'))} → {name}"
        lines = "binary" if row.get("binary") else f"+{plus} -{minus}"
        flags = f"  [{', '.join(row['flags'])}]" if row.get("flags") else ""
        rows.append([mark, name, lines + flags])
    marks: dict[str, Any] = data.get("marks") or {}
    for path in data["deleted"]:
        if path in moved and path not in marks:
            continue  # a file that only moved is one row, as in the page
        flags = f"[{', '.join(marks[path]['flags'])}]" if path in marks else ""
        rows.append(["D", harmless_path(path.lstrip("/")), flags])
    total = f"{plural(len(rows), 'file')}, +{added} -{removed}"
    room = max(_SHORTEST_PATH, width - len("M    ") - max((len(row[2]) for row in rows), default=0))
    for row in rows:
        row[1] = cut_path(row[1], room)
    return [*table(rows, width=width), total] if rows else []


def _counts(row: Mapping[str, Any]) -> tuple[int, int]:
    """Return the lines that came and went; of a renamed file since it lay elsewhere."""
    if not row.get("renamed_from"):
        return int(row.get("added") or 0), int(row.get("removed") or 0)
    signs = [line[:1] for hunk in row.get("edits") or () for line in hunk["text"].split("\n")]
    return signs.count("+"), signs.count("-")


def files_of(entries: Sequence[dict[str, Any]]) -> int:
    """Return how many files were changed: a renamed one is one, directories come and go with them.

    Example:
        >>> gone = {"op": "delete", "before": "sha256:1", "after": None}
        >>> came = {"op": "create", "before": None, "after": "sha256:1"}
        >>> files_of([gone, came, came]), files_of([{"op": "mkdir", "before": None, "after": "dir"}])
        (2, 1)
    """
    gone = Counter(row["before"] for row in entries if row["op"] == "delete" and row.get("before"))
    came = Counter(row["after"] for row in entries if row["op"] == "create" and row.get("after"))
    files = sum(row["op"] not in ("mkdir", "rmdir") for row in entries)
    return files - (gone & came).total() or len(entries)


def landing_rows(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return landings as rows of a table."""
    return [
        [row["id"], row["kind"], _state_of(row), _age_of(row["at"]), _paths_of(row["entries"])]
        for row in records
    ]


def _state_of(row: dict[str, Any]) -> str:
    return f"{row['state']}, tainted" if any(e.get("tainted") for e in row["entries"]) else row["state"]


def _age_of(at: str) -> str:
    return age((datetime.now(UTC) - from_iso(at)).total_seconds())


def _paths_of(entries: Sequence[dict[str, Any]]) -> str:
    names = [harmless_path(str(row["path"]).lstrip("/")) for row in entries]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    taint = taint_line(entries)
    return ", ".join(names[:3]) + more + (f" – {taint}" if taint else "")
