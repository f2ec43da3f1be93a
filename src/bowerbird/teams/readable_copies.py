"""The readable copies of a team: `.team/config.json`, `.team/inbox/{name}.jsonl` (DE-57, DE-61; law 2).

Here: their content, and writing them into a real directory. Not here: when that is due, copies on branches
(`sessions/teams/readable_copies.py`). They are written for people and never read back as truth.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from bowerbird.core.atomic import replace_at
from bowerbird.store.rows.team_mail import MessageRow
from bowerbird.store.rows.teams import MemberRow
from bowerbird.teams.rules import wire

DIRECTORY = ".team"
CONFIG = "config.json"
INBOX = "inbox"


def team_name(lead: str) -> str:
    """Return the name of the team of a session.

    >>> team_name("3f2a9c41d0b7")
    'team_3f2a9c41d0b7'
    """
    return f"team_{lead}"


def newest_by_name(members: Iterable[MemberRow]) -> list[MemberRow]:
    """Return one teammate per name, the newest, in the order of their numbers."""
    found = {row.name: row for row in sorted(members, key=lambda row: row.number)}
    return sorted(found.values(), key=lambda row: row.number)


def config_content(lead: str, members: Iterable[MemberRow]) -> bytes:
    """Return what `config.json` holds."""
    rows = [{"name": r.name, "role": r.role, "status": r.status} for r in newest_by_name(members)]
    value = {"team_name": team_name(lead), "members": rows}
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def inbox_name(box: str) -> str:
    """Return the file name of a box; names of members are safe as they are."""
    return f"{box}.jsonl"


def inbox_line(message: MessageRow) -> bytes:
    """Return the line of a message."""
    return msgspec.json.encode(wire(message)) + b"\n"


def write_team(workspace: Path, config: bytes, boxes: Mapping[str, bytes]) -> None:
    """Make `.team` of a workspace hold these files. Blocks.

    All work goes through handles of the directories, so that a link in their place leads nowhere.

    Args:
        boxes: content by file name.

    Raises:
        OSError: a directory cannot be written, or something else has its name.
    """
    if not workspace.is_dir():
        return
    root = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _Directory(root, DIRECTORY) as team:
            replace_at(team, CONFIG, config)
            with _Directory(team, INBOX) as inbox:
                for name, content in boxes.items():
                    replace_at(inbox, name, content)
    finally:
        os.close(root)


class _Directory(contextlib.AbstractContextManager[int]):
    """A handle of a directory in another, made when it is missing; never one that a link leads to."""

    def __init__(self, parent: int, name: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        self._handle = os.open(name, flags, dir_fd=parent)

    def __enter__(self) -> int:
        return self._handle

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)
