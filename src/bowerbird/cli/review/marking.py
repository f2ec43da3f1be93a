"""Flags, grades and taint of changed paths as lines for people (D-5, D-6).

Here: which rows need an answer of their own, and what is said of the others. Not here: asking (the commands
do), what a flag means (`workspace`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from bowerbird.cli.terminal.text import harmless, harmless_path, plural

MOST_MARKS = 12
Row = Mapping[str, Any]
T = TypeVar("T", bound=Mapping[str, Any])


def grade_of(row: Row) -> str:
    """Return the grade of a plan's or a diff's row; a server of an older version sends flags only."""
    return str(row.get("grade") or ("needs_accept" if row.get("flags") else "free"))


def path_of(row: Row) -> str:
    """Return a row's path as it is shown."""
    return harmless_path(str(row["path"]).lstrip("/"))


def reason_of(row: Row) -> str:
    """Return why a row is marked: its flags, a sentence, and what had been read from outside.

    >>> reason_of({"flags": ["ci"], "reasons": ["runs on GitHub"]})
    'ci: runs on GitHub'
    """
    sources = [harmless(str(source)) for source in row.get("taint") or ()]
    read = f" ({', '.join(sources[:3])}{', …' if len(sources) > 3 else ''})" if sources else ""
    said = "; ".join(str(reason).rstrip(".") for reason in row.get("reasons") or ())
    flags = ", ".join(row.get("flags") or ())
    return (f"{flags}: {said}" if said else flags) + read


def to_accept(entries: Sequence[Row], accepted: Sequence[str]) -> list[tuple[str, str]]:
    """Return what must be named, and why: paths, and directories that git would take for repositories.

    A new git directory is asked for once, by its own name, not for each file in it.

    Args:
        accepted: paths that were named already, `*` = all, or the file of that name where there is one.
    """
    if "*" in accepted and not any(str(row["path"]).lstrip("/") == "*" for row in entries):
        return []
    named = {path.lstrip("/") for path in accepted}
    found: dict[str, str] = {}
    for row in entries:
        if grade_of(row) != "needs_accept":
            continue
        path = str(row["path"]).lstrip("/")
        unit = _new_repository(row) if "git-dir" in row["flags"] else None
        if path not in named and unit not in named:
            found.setdefault(unit or path, reason_of(row))
    return list(found.items())


def without_unnamed(entries: Sequence[T], accepted: Sequence[str]) -> list[T]:
    """Return the rows without those of git directories that nobody accepted: they hold nothing up."""
    waiting = {path for path, _ in to_accept(entries, accepted)}

    def stays(row: T) -> bool:
        path = str(row["path"]).lstrip("/")
        in_git = ".git" in path.lower().split("/") or "repository" in row
        return in_git and bool({path, _new_repository(row)} & waiting)

    return [row for row in entries if not stays(row)]


def _new_repository(row: Row) -> str | None:
    if "repository" in row:
        return str(row["repository"]).lstrip("/")
    parts = str(row["path"]).lstrip("/").split("/")
    return "/".join(parts[: parts.index(".git") + 1]) if ".git" in parts else None


def held_lines(entries: Sequence[Row]) -> list[str]:
    """Return a line for each path that a person's landing takes and an automatic one leaves."""
    held = [row for row in entries if grade_of(row) == "held"]
    lines = [f"marked: {path_of(row)} – {reason_of(row)}" for row in held[:MOST_MARKS]]
    more = len(held) - MOST_MARKS
    return (
        [*lines, f"marked: {plural(more, 'path')} more; `bowerbird diff --stat` shows all"]
        if more > 0
        else lines
    )


def taint_line(entries: Sequence[Row]) -> str:
    """Return what to say of paths that were written after something from outside was read; "" for none."""
    tainted = [row for row in entries if row.get("tainted")]
    if not tainted:
        return ""
    sources = dict.fromkeys(harmless(str(s)) for row in tainted for s in row.get("taint") or ())
    shown = ", ".join(list(sources)[:3]) + (", …" if len(sources) > 3 else "")
    said = f": {shown}" if sources else ""
    return f"{plural(len(tainted), 'path')} tainted: written after reading text from outside{said}"


def why_empty(entries: Sequence[Row], *, named: Sequence[str] = ()) -> str:
    """Return why there is nothing to land, of the paths that were named, if any.

    >>> why_empty([], named=["/a.py", "/b"])
    'the branch changes neither a.py nor b'
    """
    if entries:
        return "only files that Git ignores have changed (`--include PATH` lands them, too)"
    if not named:
        return "there are no changes to land"
    paths = [harmless_path(path.lstrip("/")) for path in named]
    if len(paths) == 1:
        return f"the branch does not change {paths[0]}"
    if len(paths) == 2:
        return f"the branch changes neither {paths[0]} nor {paths[1]}"
    return f"the branch changes none of the {len(paths)} paths that were named"
