"""Diffs, tool lines and Markdown as coloured text (UI-43, UI-53).

Here: strings for a terminal of a given width. Not here: when they are shown.
"""

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, cast

from bowerbird.cli.terminal.terminal import Ability, Terminal
from bowerbird.cli.terminal.text import cut, harmless, one_line, plural
from bowerbird.core.lines import lines_of, whole_lines

RESULT_LINES = 6
DIFF_LINES = 12
_MOST_COMPARED = 10_000  # pairs of lines: comparing a hundred with a hundred is quick in the worst case too
_INDEX = re.compile(r"index ([0-9a-f]{40})\.\.([0-9a-f]{40})(.*)")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_HUNK_START = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")
_LINE_STYLES = {"+": "green", "-": "red"}
_KEY_PARAMETERS = (
    "path", "pattern", "command", "query", "url", "src", "skill", "task", "prompt", "question", "tier",
    "code", "file_path", "thought",
)  # fmt: skip


def coloured_diff(patch: str, ability: Ability) -> str:
    """Return a unified diff as the stream shows it: in a pipe exactly `patch`, for `git apply`."""
    if not ability.is_terminal:
        return patch
    shown: list[str] = []
    left = [0, 0]  # lines of the old and the new side that the present hunk still has
    for line in whole_lines(patch):
        body = line.removesuffix("\n")
        end = line[len(body) :]
        if max(left) > 0:  # a line of a file, whatever it looks like
            left[0] -= body[:1] in (" ", "-", "")
            left[1] -= body[:1] in (" ", "+", "")
            style = _LINE_STYLES.get(body[:1], "")
        else:
            if found := _HUNK.match(body):
                left = [int(count or 1) for count in found.groups()]
            body, style = _header_line(body)
        shown.append(Terminal.styled(harmless(body), style, ability) + end)
    return "".join(shown)


def _header_line(body: str) -> tuple[str, str]:
    """Return a line outside of hunks as it is shown, and its style."""
    if found := _INDEX.fullmatch(body):  # whole hashes are for git; a person's line has no room for them
        return f"index {found[1][:7]}..{found[2][:7]}{found[3]}", "dim"
    if body.startswith(("diff --git", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode")):
        return body, "bold"
    return body, "cyan" if body.startswith("@@") else ""


def key_parameter(arguments: Mapping[str, Any]) -> str:
    """Return the argument that tells most of a call, on one line.

    Example:
        >>> key_parameter({"limit": 3, "path": "src/a.py"})
        'src/a.py'
    """
    for name in _KEY_PARAMETERS:
        if arguments.get(name) not in (None, ""):
            return one_line(_as_text(arguments[name]), 120)
    for value in arguments.values():
        return one_line(_as_text(value), 120)
    return ""


def _as_text(value: Any) -> str:
    if isinstance(value, list) and value and not isinstance(value[0], str):
        return plural(len(cast("list[Any]", value)), "item")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def diff_lines(
    diff: Mapping[str, Any], *, width: int, rest: str, limit: int | None = DIFF_LINES
) -> list[tuple[str, str]]:
    """Return the lines that a call changed, each with its style: a number, a sign, the text.

    Args:
        diff: of a tool's result: `text`, `added`, `removed`.
        rest: the command that shows all. limit: most changed lines; None = all there are.

    Example:
        >>> diff = {"text": "@@ -4,1 +4,1 @@\\n-a\\n+b\\n", "added": 1, "removed": 1}
        >>> [line for line, _ in diff_lines(diff, width=60, rest="/show 1")]
        ['         4 - a', '         4 + b']
    """
    shown: list[tuple[str, str]] = []
    old = new = changed = 0
    left = [0, 0]
    for line in str(diff.get("text", "")).split("\n")[:-1]:
        sign, text = line[:1], harmless(line[1:]).expandtabs(4)
        if max(left) <= 0:
            if found := _HUNK_START.match(line):
                old, new = int(found[1]), int(found[3])
                left = [int(found[2]), int(found[4])]
                shown += [("         ⋮", "dim")] if changed else []
            elif line.startswith("+++ "):
                shown.append((cut(f"      {harmless(line[4:])}", width), "bold"))
            continue
        if sign in ("+", "-"):
            if changed == limit:
                break
            changed += 1
        number = old if sign == "-" else new
        left = [left[0] - (sign in " -"), left[1] - (sign in " +")] if sign != "\\" else left
        old, new = old + (sign in ("-", " ")), new + (sign in ("+", " "))
        if sign != "\\":
            shown.append(
                (cut(f"    {number:6} {sign} {text}".rstrip(), width), _LINE_STYLES.get(sign, "dim"))
            )
    more = int(diff.get("added", 0)) + int(diff.get("removed", 0)) - changed
    if more > 0:
        shown.append((cut(f"      … {plural(more, 'more changed line')}: {rest}", width), "dim"))
    return shown


def result_note(
    tool: str, arguments: Mapping[str, Any], content: str, diff: Mapping[str, Any] | None = None
) -> str:
    """Return what a folded result is worth saying beside its call: lines changed, else lines to read.

    Example:
        >>> result_note("edit_file", {"old": "a\\nb\\n", "new": "a\\n"}, "done")
        '+0 -1'
        >>> result_note("ls", {}, "a\\nb")
        '2 lines'
    """
    if diff is not None:
        return f"+{diff['added']} -{diff['removed']}"
    if tool == "write_file":
        return f"+{len(lines_of(str(arguments.get('content', ''))))}"
    if tool == "edit_file":
        old, new = (lines_of(str(arguments.get(name, ""))) for name in ("old", "new"))
        same = _lines_in_common(old, new)
        return f"+{len(new) - same} -{len(old) - same}"
    lines = content.rstrip("\n").count("\n") + 1
    return f"{lines} lines" if lines > 1 else ""


def _lines_in_common(old: list[str], new: list[str]) -> int:
    """Return how many lines stay: those at both ends, and what comparing finds between if it is cheap."""
    start = end = 0
    most = min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if len(before) * len(after) > _MOST_COMPARED:
        return start + end
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return start + end + sum(block.size for block in blocks)


def tool_line(number: int, tool: str, arguments: Mapping[str, Any], state: str, *, width: int) -> str:
    """Return the line of one tool call: number, name, key parameter, state.

    Example:
        >>> tool_line(3, "read_file", {"path": "a.py"}, "ok", width=60)
        '  3 ✓ read_file a.py'
    """
    mark = {"ok": "✓", "error": "✗", "denied": "⊘", "interrupted": "…", "abandoned": "?"}.get(state, "·")
    return cut(f"{number:3} {mark} {harmless(tool)} {key_parameter(arguments)}".rstrip(), width)


def result_lines(content: str, rest: str, *, width: int, limit: int = RESULT_LINES) -> list[str]:
    """Return at most `limit` lines of a result, its beginning and its end; `rest` is what shows all."""
    lines = harmless(content).rstrip("\n").expandtabs(4).split("\n")
    if len(lines) > limit:  # a long output says most at its end
        head, tail = limit // 2 - 1, limit // 2
        left_out = f"… {len(lines) - head - tail} more lines{f': {rest}' if rest else ''}"
        lines = [*lines[:head], left_out, *lines[-tail:]]
    return [cut(f"      {line}", width) for line in lines] if content.strip() else []


def todo_lines(todos: Sequence[Mapping[str, Any]], *, width: int) -> list[str]:
    """Return a task list as lines with glyphs."""
    glyphs = {"completed": "☑", "in_progress": "▶", "pending": "☐"}
    return [
        cut(
            f"      {glyphs.get(str(item.get('status')), '☐')} "
            + one_line(str(item.get("content") or item.get("subject") or "")),
            width,
        )
        for item in todos
    ]


class MarkdownPainter:
    """Draws finished blocks of an answer; rich is loaded at the first one."""

    def __init__(self, *, colour: bool, theme: str = "auto") -> None:
        self._colour = colour
        self._code_theme = "default" if theme == "light" else "ansi_dark"

    def paint(self, block: str, width: int) -> str:
        """Return `block` drawn for `width` columns, every line ended, no blank ones around it."""
        from bowerbird.cli.terminal.markdown import draw

        return draw(harmless(block), width=width, colour=self._colour, code_theme=self._code_theme)
