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

from bowerbird.skills.library import read_inside
from bowerbird.skills.skill import SkillProblem, front_fields, split_front_matter

PLACE = ".bowerbird/commands"
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
    found = {command.name: command for command in _under(workspace, mine=False)}
    found |= {command.name: command for command in _under(home, mine=True)}
    return sorted(found.values(), key=lambda command: command.name)


def _under(top: Path | None, *, mine: bool) -> Iterator[CustomCommand]:
    if top is None:
        return
    inside = Path(os.path.realpath(top))
    place = Path(os.path.realpath(inside / PLACE))
    if not place.is_relative_to(inside):
        return  # a link that leads out of the workspace shows nobody's files
    try:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".md"))
    except OSError:
        return
    room = MOST_TEXT
    for at, name in enumerate(names):
        if at >= MOST or room <= 0:
            if _NAME.fullmatch(name[:-3]):
                yield CustomCommand(name[:-3], "", UNREAD, mine=mine)
            continue
        try:
            data = read_inside(inside, f"{PLACE}/{name}", MAX_BYTES + 1)
            room -= len(data)
            yield parse_command(name[:-3], data, mine=mine)
        except SkillProblem:
            continue


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
