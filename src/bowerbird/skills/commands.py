"""Custom commands: Markdown files that become messages (UI-76).

Here: which there are, their front matter, the text that is sent. Not here: who sends it.

A file of a workspace is text for the model and nothing else: nothing in it is run, and it is read as landed,
like a skill, so that an agent's edit of one counts after a person has landed it.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from bowerbird.skills.library import read_inside
from bowerbird.skills.skill import SkillProblem, front_fields, split_front_matter

PLACE = ".bowerbird/commands"
CLAUDE = (".claude/commands", ".claude/skills")
"""Where Claude Code looks for the commands of a project; a skill is one under its name, and wins."""
MAX_BYTES = 64 * 1024
MOST = 2_000  # files of one directory that are read
MOST_TEXT = 16 << 20  # bytes of them together
UNREAD = f"not read: a directory of commands has at most {MOST:,} files and {MOST_TEXT >> 20} MB"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HOLE = re.compile(r"\$(ARGUMENTS\b|[1-9])")


class CustomCommand(msgspec.Struct, frozen=True):
    """One command.

    Attributes:
        arguments: what is typed after its name, as a hint. model: of its turn, "" for the session's.
        body: what is sent; empty where the file was not read, and the description says why.
        tools: what the model is asked to keep to, empty for all. mine: of the person, not of the workspace.
    """

    name: str
    body: str
    description: str = ""
    arguments: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    mine: bool = False

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "description": self.description,
            "arguments": self.arguments,
            "model": self.model,
            "tools": list(self.tools),
            "body": self.body,
        }


def filled(body: str, arguments: str) -> str:
    """Return a command's text with `$ARGUMENTS` and `$1` … `$9` in place; without a place, they come last.

    Example:
        >>> filled("Fix $1 of $ARGUMENTS", "12 $ARGUMENTS"), filled("Review.", "src/")
        ('Fix 12 of 12 $ARGUMENTS', 'Review.\\n\\nArguments: src/')
    """
    words = arguments.split()

    def value(hole: re.Match[str]) -> str:
        if hole[1] == "ARGUMENTS":
            return arguments
        return words[int(hole[1]) - 1] if int(hole[1]) <= len(words) else ""

    text, holes = _HOLE.subn(value, body)
    return text if holes or not arguments else f"{text.rstrip()}\n\nArguments: {arguments}"


def custom_commands(workspace: Path | None, home: Path | None) -> list[CustomCommand]:
    """Return the commands of a workspace and of a person's home by name; the person's own win. Blocks.

    A file that is no command is left out: a repository must not break anybody's prompt. One that the bounds
    leave out is named, without a body, and says so.
    """
    found: dict[str, CustomCommand] = {}
    for place in CLAUDE:  # a model's name there is one of another program
        found |= {each.name: replace(each, model="") for each in _under(workspace, place, mine=False)}
    found |= {command.name: command for command in _under(workspace, PLACE, mine=False)}
    found |= {command.name: command for command in _under(home, PLACE, mine=True)}
    return sorted(found.values(), key=lambda command: command.name)


def _under(top: Path | None, place: str, *, mine: bool) -> Iterator[CustomCommand]:
    if top is None:
        return
    inside = Path(os.path.realpath(top))
    if not Path(os.path.realpath(inside / place)).is_relative_to(inside):
        return  # a link that leads out of the workspace shows nobody's files
    room = MOST_TEXT
    for at, (name, path) in enumerate(_named(inside, place)):
        if at >= MOST or room <= 0:
            if _NAME.fullmatch(name):
                yield CustomCommand(name, "", UNREAD, mine=mine)
            continue
        try:
            data = read_inside(inside, path, MAX_BYTES + 1)
            room -= len(data)
            yield parse_command(name, data, mine=mine)
        except SkillProblem:
            continue


def _named(inside: Path, place: str) -> list[tuple[str, str]]:
    """Return name and path of each command in a directory; Claude Code's may have directories of them."""
    found: list[tuple[str, str]] = []
    for folder in ("", "*/") if place in CLAUDE else ("",):
        for path in sorted((inside / place).glob(f"{folder}*.md")):
            is_skill = place == CLAUDE[1]
            if is_skill == (path.name == "SKILL.md"):
                found.append((path.parent.name if is_skill else path.stem, str(path.relative_to(inside))))
    return found


def parse_command(name: str, data: bytes, *, mine: bool = False) -> CustomCommand:
    """Return the command of a file; front matter may be missing.

    Raises:
        SkillProblem: its name cannot be typed, it is too large, empty, or its front matter does not parse.
    """
    if not _NAME.fullmatch(name):
        raise SkillProblem(f"name is {name!r}; use lower-case letters, digits, '-' and '_', at most 64")
    if len(data) > MAX_BYTES:
        raise SkillProblem(f"a command has at most {MAX_BYTES:,} bytes")
    fields: dict[str, Any] = {}
    if data.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
        front, data = split_front_matter(data)
        fields = front_fields(front)
    body = data.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if not body:
        raise SkillProblem("a command without text sends nothing")
    tools = fields.get("tools") or ""
    listed = cast("list[object]", tools) if isinstance(tools, list) else str(tools).replace(",", " ").split()
    first = next((line.strip("# ") for line in body.split("\n") if line.strip("# ")), "")
    return CustomCommand(
        name,
        body,
        _line(fields.get("description")) or first[:100],
        _line(fields.get("arguments") or fields.get("argument-hint")),
        _line(fields.get("model")),
        tuple(map(_line, listed)),
        mine,
    )


def _line(value: object) -> str:
    return " ".join(str(value).split())[:200] if value is not None else ""
