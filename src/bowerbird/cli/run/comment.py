"""`bowerbird comment FILE:LINE TEXT`: a review remark that goes back to the agent (UI-45).

Here: reading the place, the message, the turn it starts. Not here: the message's form
(`sessions/inbox/comments.py`), running a turn (`run.py`).
"""

import re
from typing import Literal

import msgspec

from bowerbird.cli.client.protocol import Client
from bowerbird.cli.run.run import run_with
from bowerbird.cli.terminal.exits import USAGE, CliExit
from bowerbird.cli.terminal.run_options import RunOptions
from bowerbird.cli.terminal.shell import Shell

_PLACE = re.compile(r"(?P<path>.+):(?P<first>[1-9]\d{0,8})(?:-(?P<last>[1-9]\d{0,8}))?", re.DOTALL)


class Place(msgspec.Struct, frozen=True):
    """Lines of a file; `last` is `first` for one line."""

    path: str
    first: int
    last: int


class _Remark(msgspec.Struct, frozen=True):
    path: str
    side: Literal["old", "new"]
    line: int
    end_line: int | None
    text: str


def read_place(text: str) -> Place:
    """Return what `FILE:LINE` or `FILE:FIRST-LAST` names; CliExit 2 for anything else.

    Example:
        >>> read_place("src/a.py:3-5")
        Place(path='src/a.py', first=3, last=5)
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise CliExit(
            USAGE, f"{text!r} does not name a line; write FILE:LINE or FILE:FIRST-LAST, lines from 1"
        )
    first = int(found["first"])
    last = int(found["last"] or first)
    if last < first:
        raise CliExit(USAGE, f"{text!r}: line {last} comes before line {first}")
    return Place(found["path"], first, last)


def comment(
    shell: Shell,
    *,
    place: str,
    text: str,
    session: str | None,
    old: bool,
    output: str,
    quiet: bool,
    timeout: float | None,
    yes: bool,
    workspace: str | None,
) -> int:
    """Send a comment on a session's changes and watch the turn that answers it."""
    at = read_place(place)
    if not text.strip():
        raise CliExit(USAGE, "the comment is empty")
    options = RunOptions(
        output=output, quiet=quiet, timeout=timeout, yes=yes, resume=session or "", workspace=workspace
    )
    shell.terminal.quiet = quiet

    async def work(client: Client) -> int:
        from bowerbird.cli.run.oneshot import OneShot, who_answers

        (path,) = client.paths([at.path])
        end = None if at.last == at.first else at.last
        remark = _Remark("/" + path.lstrip("/"), "old" if old else "new", at.first, end, text)
        thread_id = await client.session_for(options)
        shot = OneShot(shell, client, options, who_answers(options, shell.terminal))
        return await shot.run(thread_id, lambda: client.comment(thread_id, remark))

    return run_with(shell, options, work)
