"""What a model sees of files: pages of text, listings, short diffs.

Here: pure formatting of the workspace's records. Not here: branches, tools.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from bowerbird.core.errors import LimitExceeded
from bowerbird.core.lines import whole_lines
from bowerbird.workspace.tree.hunks import Hunk, hunks_of

PAGE_CHARS = 50_000
_PAGE_NOTE = 200
DIFF_LINES = 60
DIFF_CHARS = 8000
DIFF_BYTES = 1024 * 1024  # of a file; the worst comparison of two such takes a moment, not seconds
_CONTEXT = 2
_PRUNED_SHOWN = 20


def shown(path: str) -> str:
    """Return a virtual path as models see it: without the leading slash."""
    return path.lstrip("/") or "."


def page(record: Mapping[str, Any], *, numbered: bool = False, limit: int = PAGE_CHARS) -> tuple[str, bool]:
    """Return a `read_file` record as one page, and whether it was cut here.

    Args:
        record: Of the workspace: `content`, `start_line`, `total_lines`, `next_offset` …
        numbered: Put line numbers before the lines.
        limit: Most characters, the last line about the next page included.
    """
    lines = whole_lines(str(record["content"]))
    first = int(record["start_line"])
    if numbered:
        lines = [f"{first + n:6d}\t{line}" for n, line in enumerate(lines)]
    if record["next_offset"] is None and sum(map(len, lines)) <= limit:
        return "".join(lines), False
    kept, size = 0, 0
    while kept < len(lines) and size + len(lines[kept]) <= limit - _PAGE_NOTE:
        size += len(lines[kept])
        kept += 1
    if kept == len(lines):
        return _with_next("".join(lines), record["next_offset"], record), False
    if kept == 0:  # one line longer than a page: its start is all that fits
        text = lines[0][: limit - _PAGE_NOTE] + " [line cut]\n"
        return _with_next(text, first + 1 if len(lines) > 1 or record["next_offset"] else None, record), True
    return _with_next("".join(lines[:kept]), first + kept, record), True


def _with_next(text: str, next_offset: object, record: Mapping[str, Any]) -> str:
    if not next_offset:
        return text
    total = f" of {record['total_lines']}" if record.get("total_lines") is not None else ""
    return f"{text.rstrip(chr(10))}\n[more: offset={next_offset}{total} lines]"


def listing(record: Mapping[str, Any]) -> str:
    """Return a `list_files` record as paths, then totals, next offset, pruned directories."""
    files: Sequence[str] = record["files"]
    lines = [shown(path) for path in files]
    first = int(record["offset"])
    notes = [f"{record['total']:,} files" if record["total"] != 1 else "1 file"]
    if record["truncated"]:
        notes.append(f"shown {first}-{first + len(files) - 1}; next: offset={first + len(files)}")
    notes += _pruned(record)
    return "\n".join([*lines, f"[{'; '.join(notes)}]"])


def directory(record: Mapping[str, Any], offset: int) -> str:
    """Return an `ls` record as names, directories with a slash, links with their target."""
    lines: list[str] = []
    for entry in record["entries"]:
        mark = {"dir": "/", "special": " (special file)"}.get(entry["type"], "")
        target = f" -> {entry['target']}" if entry["type"] == "symlink" else ""
        lines.append(f"{entry['name']}{mark}{target}")
    count = len(lines)
    note = f"{record['total']:,} entries" if record["total"] != 1 else "1 entry"
    if record["truncated"]:
        note += f"; shown {offset}-{offset + count - 1}; next: offset={offset + count}"
    if record.get("hidden"):
        note += f"; hidden from agents by the setting workspace.hide: {', '.join(record['hidden'])}"
    return "\n".join([*lines, f"[{note}]"])


def matches(record: Mapping[str, Any]) -> str:
    """Return a `search_files` record as `path:line: text` lines, context as `path-line- text`."""
    lines: list[str] = []
    found: Sequence[Mapping[str, Any]] = record["matches"]
    with_context = any(m.get("before") or m.get("after") for m in found)
    for number, match in enumerate(found):
        if with_context and number:
            lines.append("--")
        path, line = shown(match["path"]), int(match["line"])
        before: Sequence[str] = match.get("before") or ()
        lines += [f"{path}-{line - len(before) + n}- {text}" for n, text in enumerate(before)]
        lines.append(f"{path}:{line}: {match['text']}")
        lines += [f"{path}-{line + 1 + n}- {text}" for n, text in enumerate(match.get("after") or ())]
    return "\n".join([*lines, f"[{'; '.join(_match_notes(record, len(found)))}]"])


def _match_notes(record: Mapping[str, Any], count: int) -> list[str]:
    least = "at least " if record.get("total_is_minimum") else ""
    notes = [f"{least}{record['total']:,} match{'' if record['total'] == 1 else 'es'}"]
    first = int(record["offset"])
    if record["truncated"]:
        notes.append(f"shown {first}-{first + count - 1}; next: offset={first + count}")
    skipped: Sequence[Mapping[str, str]] = record.get("skipped") or ()
    if skipped:
        named = ", ".join(f"{shown(s['path'])} ({s['reason']})" for s in skipped[:5])
        notes.append(f"{len(skipped)} files skipped: {named}{' …' if len(skipped) > 5 else ''}")
    return notes + _pruned(record)


def _pruned(record: Mapping[str, Any]) -> list[str]:
    pruned: Sequence[str] = record.get("pruned") or ()
    if not pruned:
        return []
    names = ", ".join(shown(p) for p in pruned[:_PRUNED_SHOWN])
    return [f"not looked into: {names}{' …' if len(pruned) > _PRUNED_SHOWN else ''}"]


def diff_data(changes: Iterable[tuple[str, bytes | None, bytes | None]]) -> dict[str, Any]:
    """Return what a call changed, for people: its `diff`, or {} where lines cannot show it.

    Args:
        changes: path, old and new content, None where there is no file.

    Example:
        >>> diff_data([("a", b"x\\ny\\n", b"x\\nz\\n")])["diff"]
        {'text': '@@ -1,2 +1,2 @@\\n x\\n-y\\n+z\\n', 'added': 1, 'removed': 1}
    """
    parts: list[tuple[str, tuple[Hunk, ...]]] = []
    for path, old, new in changes:
        before, after = old or b"", new or b""
        if any(len(side) > DIFF_BYTES or b"\0" in side[:8192] for side in (before, after)):
            return {}
        parts.append((path, hunks_of(path, before, after, context=1)))
    text = ""
    for path, hunks in parts:
        text += f"--- {shown(path)}\n+++ {shown(path)}\n" if len(parts) > 1 else ""
        for hunk in hunks:
            spans = f"-{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines}"
            text += f"@@ {spans} @@\n{hunk.text}" + ("" if hunk.text.endswith("\n") else "\n")
    if len(text) > DIFF_CHARS:
        text = text[: text.rfind("\n", 0, DIFF_CHARS) + 1]
    every = [hunk for _, hunks in parts for hunk in hunks]
    added, removed = sum(h.added for h in every), sum(h.removed for h in every)
    return {"diff": {"text": text, "added": added, "removed": removed}}


def short_diff(before: str, after: str) -> str:
    """Return what changed as hunks of a unified diff, at most 60 lines.

    Example:
        >>> print(short_diff("a\\nb\\n", "a\\nc\\n"))
        @@ -1,2 +1,2 @@
         a
        -b
        +c
    """
    old, new = before.split("\n"), after.split("\n")
    if old and not old[-1] and new and not new[-1]:
        old, new = old[:-1], new[:-1]
    spans = _changed_lines(old, new) if len(old) == len(new) else [_middle(old, new)]
    lines: list[str] = []
    for start, old_stop, new_stop in spans:
        top, shift = max(0, start - _CONTEXT), new_stop - old_stop
        bottom = min(len(old), old_stop + _CONTEXT)
        lines.append(f"@@ -{top + 1},{bottom - top} +{top + 1},{bottom + shift - top} @@")
        lines += [f" {line}" for line in old[top:start]]
        lines += [f"-{line}" for line in old[start:old_stop]]
        lines += [f"+{line}" for line in new[start:new_stop]]
        lines += [f" {line}" for line in old[old_stop:bottom]]
        if len(lines) > DIFF_LINES:
            break
    if len(lines) > DIFF_LINES:
        return "\n".join([*lines[:DIFF_LINES], "[… more; show_changes shows all]"])
    return "\n".join(lines)


def _middle(old: list[str], new: list[str]) -> tuple[int, int, int]:
    """The one span between the lines both have at the start and at the end."""
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, len(old) - end, len(new) - end


def _changed_lines(old: list[str], new: list[str]) -> list[tuple[int, int, int]]:
    """Spans of lines that differ; those closer than twice the context are one."""
    spans: list[tuple[int, int, int]] = []
    for index, (a, b) in enumerate(zip(old, new, strict=True)):
        if a == b:
            continue
        if spans and index - spans[-1][1] <= 2 * _CONTEXT:
            spans[-1] = (spans[-1][0], index + 1, index + 1)
        else:
            spans.append((index, index + 1, index + 1))
    return spans


class Patch(Protocol):
    """The patch of one changed path, as `Branch.patches` gives it."""

    @property
    def path(self) -> str:
        """The path as it is shown."""
        ...

    def sections(self) -> list[str]:
        """Return its text in parts."""
        ...


def diff_pages(patches: Sequence[Patch], limit: int = PAGE_CHARS) -> tuple[str, list[str]]:
    """Return as many whole patches as fit, and the paths of those left out; no others are made.

    The first is cut when it alone is too long.
    """
    kept: list[str] = []
    size = 0
    for number, patch in enumerate(patches):
        try:
            text = "".join(patch.sections())
        except LimitExceeded as error:
            text = f"No patch: {error}\n"
        if kept and size + len(text) > limit - _PAGE_NOTE * 5:
            return "".join(kept), [shown(left.path) for left in patches[number:]]
        if text:
            kept.append(text)
            size += len(text)
    return "".join(kept), []
