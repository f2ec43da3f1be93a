"""Copies of teams on branches and in the server's own workspace (DE-57, DE-61; law 2).

Here: which files are written where, after the commits. Not here: their content (`teams/readable_copies.py`).
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import Connection

from bowerbird.core.errors import BowerbirdError
from bowerbird.core.threads import to_thread
from bowerbird.sessions.branches.branches import Branches
from bowerbird.store.rows.sessions import SessionRow, find_session
from bowerbird.store.rows.team_mail import MessageRow, messages_of
from bowerbird.store.rows.teams import MemberRow, members_of
from bowerbird.store.store import Store
from bowerbird.teams.readable_copies import (
    CONFIG,
    DIRECTORY,
    INBOX,
    config_content,
    inbox_line,
    inbox_name,
    write_team,
)

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

_log = logging.getLogger(__name__)
_MOST_KNOWN = 256


class _Known(msgspec.Struct):
    """What this process has read of a team's mail."""

    newest: int = 0
    boxes: dict[str, bytes] = msgspec.field(default_factory=dict[str, bytes])


class TeamCopies:
    """Keeps the copies of a process's teams up to date.

    Args:
        own: the server's own workspace, in which copies are real files, too; None = there is none.
    """

    def __init__(self, store: Store, branches: Branches, own: Path | None = None) -> None:
        self._store = store
        self._branches = branches
        self._own = None if own is None else os.path.realpath(own)
        self._known: dict[str, _Known] = {}

    async def refresh(self, lead: str) -> None:
        """Write what a team's files should say now; what cannot be written is said in the log.

        The caller sees to it that one call runs at a time for each team.

        The records are in the store: a copy that is missing is written with the next change.
        """
        if lead not in self._known and len(self._known) >= _MOST_KNOWN:
            self._known.clear()  # their mail is read again
        known = self._known.setdefault(lead, _Known())
        read = await self._store.read(lambda c: _team(c, lead, known.newest))
        session, members, fresh, forks = read
        if session is None or not members:
            return
        for message in fresh:
            known.boxes[message.box] = known.boxes.get(message.box, b"") + inbox_line(message)
            known.newest = message.n
        config = config_content(lead, members)
        boxes = {inbox_name(box): content for box, content in known.boxes.items()}
        for row in (session, *forks):
            await self._on_branch(row, config, boxes)
        if session.workspace and await to_thread(os.path.realpath, session.workspace) == self._own:
            await self._in_own(session.workspace, config, boxes)

    async def _on_branch(self, row: SessionRow, config: bytes, boxes: dict[str, bytes]) -> None:
        if row.branch_id is None:
            return
        try:
            branch = await self._branches.of(row)
            await to_thread(_write, branch, config, boxes)
        except (BowerbirdError, OSError) as error:
            _log.info("session %s: its copies of the team are out of date: %s", row.thread_id, error)

    async def _in_own(self, workspace: str, config: bytes, boxes: dict[str, bytes]) -> None:
        if await to_thread(os.path.realpath, workspace) != self._own:
            return
        try:
            await to_thread(write_team, Path(workspace), config, boxes)
        except OSError as error:
            _log.warning("the copies in %s/%s are out of date: %s", workspace, DIRECTORY, error)


def _write(branch: "Branch", config: bytes, boxes: dict[str, bytes]) -> None:
    branch.sync_private(f"/{DIRECTORY}", {CONFIG: config}, complete=False)
    if boxes:
        branch.sync_private(f"/{DIRECTORY}/{INBOX}", boxes, complete=False)


def _team(
    connection: Connection, lead: str, after: int
) -> tuple[SessionRow | None, Sequence[MemberRow], Sequence[MessageRow], Sequence[SessionRow]]:
    members = members_of(connection, lead)
    working = [find_session(connection, row.thread_id) for row in members if row.status == "working"]
    return (
        find_session(connection, lead),
        members,
        messages_of(connection, lead, after),
        [row for row in working if row is not None],
    )
