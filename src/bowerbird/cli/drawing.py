"""Diffs, tool lines and Markdown as coloured text (UI-43, UI-53).

Here: strings for a terminal of a given width. Not here: when they are shown.
"""

import json
import re
from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any, cast

from bowerbird.cli.terminal import Ability, Terminal
from bowerbird.cli.text import cut, harmless, one_line, plural

RESULT_LINES = 6
_INDEX = re.compile(r"index ([0-9a-f]{40})\.\.([0-9a-f]{40})(.*)")
_KEY_PARAMETERS = (
    "path", "pattern", "command", "query", "url", "src", "skill", "task", "prompt", "question", "tier",
    "code", "file_path", "thought",
)  # fmt: skip


def coloured_diff(patch: str, ability: Ability) -> str:
    """Return a unified diff as the stream shows it: in a pipe exactly `patch`, for `git apply`."""
    if not ability.is_terminal:
        return patch
    return "".join(_diff_line(line, ability) for line in patch.splitlines(keepends=True))


def _diff_line(line: str, ability: Ability) -> str:
    body = line.rstrip("\n")
    end = line[len(body) :]
    style = ""
    if found := _INDEX.fullmatch(body):  # whole hashes are for git; a person's line has no room for them
        body, style = f"index {found[1][:7]}..{found[2][:7]}{found[3]}", "dim"
    if body.startswith(("diff --git", "--- ", "+++ ", "new file", "deleted file", "old mode", "new mode")):
        style = "bold"
    elif body.startswith("@@"):
        style = "cyan"
    elif body.startswith("+"):
        style = "green"
    elif body.startswith("-"):
        style = "red"
    return Terminal.styled(harmless(body), style, ability) + end


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


def result_note(tool: str, arguments: Mapping[str, Any], content: str) -> str:
    """Return what a folded result is worth saying beside its call: lines changed, else lines to read.

    Example:
        >>> result_note("edit_file", {"old": "a\\nb\\n", "new": "a\\n"}, "done")
        '+0 -1'
        >>> result_note("ls", {}, "a\\nb")
        '2 lines'
    """
    if tool == "write_file":
        return f"+{len(str(arguments.get('content', '')).splitlines())}"
    if tool == "edit_file":
        old, new = (str(arguments.get(name, "")).splitlines() for name in ("old", "new"))
        same = sum(
            block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        )
        return f"+{len(new) - same} -{len(old) - same}"
    lines = content.rstrip("\n").count("\n") + 1
    return f"{lines} lines" if lines > 1 else ""


def tool_line(number: int, tool: str, arguments: Mapping[str, Any], state: str, *, width: int) -> str:
    """Return the line of one tool call: number, name, key parameter, state.

    Example:
        >>> tool_line(3, "read_file", {"path": "a.py"}, "ok", width=60)
        '  3 ✓ read_file a.py'
    """
    mark = {"ok": "✓", "error": "✗", "denied": "⊘", "interrupted": "…", "abandoned": "?"}.get(state, "·")
    return cut(f"{number:3} {mark} {harmless(tool)} {key_parameter(arguments)}".rstrip(), width)


def result_lines(content: str, number: int, *, width: int, limit: int = RESULT_LINES) -> list[str]:
    """Return at most `limit` lines of a result, its beginning and its end; the rest is on `/show N`."""
    lines = harmless(content).rstrip("\n").expandtabs(4).split("\n")
    if len(lines) > limit:  # a long output says most at its end
        head, tail = limit // 2 - 1, limit // 2
        left_out = f"… {len(lines) - head - tail} more lines: /show {number}"
        lines = [*lines[:head], left_out, *lines[-tail:]]
    return [cut(f"      {line}", width) for line in lines] if content.strip() else []


def todo_lines(todos: list[Mapping[str, Any]], *, width: int) -> list[str]:
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
        from bowerbird.cli.markdown import draw

        return draw(harmless(block), width=width, colour=self._colour, code_theme=self._code_theme)
