"""`diff`, `land`, `undo`, `landings`, `landings fix`, `discard` (UI-43 … UI-45), of this machine or a server.

Here: the commands' steps and their JSON, which is REST's. Not here: the dialogue (`dialogue.py`), what
a landing is.
"""

import re
import sys
from collections.abc import Sequence
from typing import Any, cast

from bowerbird.cli.client.agent_sessions import AGENT_SESSION
from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client, Fix
from bowerbird.cli.review.dialogue import (
    checked,
    choose,
    code_of,
    land_chosen,
    one_of,
    say_discarded,
    say_landed,
    say_undone,
)
from bowerbird.cli.review.dialogue import discard as discard_asked
from bowerbird.cli.review.dialogue import undo as undo_one
from bowerbird.cli.review.drawn import landing_rows, write_diff
from bowerbird.cli.review.git_lines import is_uncommitted
from bowerbird.cli.terminal.exits import DONE, FAILED, PARTLY
from bowerbird.cli.terminal.pager import show_paged
from bowerbird.cli.terminal.shell import Shell, typed
from bowerbird.cli.terminal.terminal import Ability
from bowerbird.cli.terminal.text import harmless, harmless_path, table
from bowerbird.core.errors import LandingRefused, UnknownSession
from bowerbird.core.threads import to_thread
from bowerbird.sessions.wishes import NOTHING_CODE, NOTHING_TO_LAND, Commits, CommitWish, ToLand

_FIXED = {
    "done": "landed",
    "undone": "took back",
    "given_up": "ended, with every file as it is now,",
    "needs_attention": "could not finish",
}
_ID = re.compile(r"[0-9a-f]{4,12}")  # a session's, or how one begins
NOTHING = {"detail": NOTHING_TO_LAND, "code": NOTHING_CODE}


class TerminalScreen:
    """The review of a command: questions on standard error, hunks and results on standard output."""

    prefix = "bowerbird "

    def __init__(self, shell: Shell) -> None:
        self._terminal = shell.terminal

    @property
    def width(self) -> int:
        """See `Screen`."""
        return self._terminal.width

    @property
    def stream(self) -> Ability:
        """See `Screen`."""
        return self._terminal.out

    @property
    def can_ask(self) -> bool:
        """See `Screen`."""
        return sys.stdin.isatty() and self._terminal.err.is_terminal

    def warn(self, text: str, style: str = "") -> None:
        """See `Screen`."""
        self._terminal.warn(text, style)

    def tell(self, text: str, style: str = "") -> None:
        """See `Screen`."""
        self._terminal.line(text, style)

    def note(self, text: str) -> None:
        """See `Screen`."""
        self._terminal.note(text)

    def draw(self, text: str) -> None:
        """See `Screen`."""
        self._terminal.write(text)

    async def page(self, drawn: str, plain: str) -> None:
        """See `Screen`."""
        show_paged(self._terminal, drawn, plain)  # as `diff` does: nothing else goes on meanwhile

    def step(self, bar: str) -> None:
        """See `Screen`."""
        if bar:
            self._terminal.status(bar)
        else:
            self._terminal.clear_status()

    async def ask(self, question: str) -> str | None:
        """See `Screen`."""
        try:
            return await to_thread(typed, question)
        except EOFError:
            return None


async def left_here(shell: Shell, client: Client, given: str | None, open_too: Sequence[str] = ()) -> str:
    """Return the session that is meant: given, else the newest with unlanded changes, else the newest.

    Args:
        open_too: states in which one counts that has no changes.
    """
    rows = [] if given else await client.sessions(every=False)
    with_changes = [str(row["id"]) for row in rows if row["changed_files"]]
    meant = [str(row["id"]) for row in rows if row["changed_files"] or row["status"] in open_too]
    found = await client.find(given or next(iter(meant), None))
    if others := [one for one in with_changes if one != found]:
        many = "has" if len(others) == 1 else "have"
        named = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        shell.terminal.note(f"session {found}; {named} {many} unlanded changes, too")
    return found


async def pick_with_paths(
    shell: Shell, client: Client, given: str | None, paths: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the session and the paths of `diff [ID] [PATHS…]`, where the first word may be either.

    A word that names a session is one; otherwise it is a path of the newest session here with changes.
    """
    words = list(paths)
    if given is not None and not client.is_path(given):
        try:
            return await client.find(given), client.paths(words)
        except UnknownSession as error:
            if "fits" in str(error) or given.startswith(AGENT_SESSION):
                raise
    return await left_here(shell, client, None), client.paths(
        [*([given] if given is not None else []), *words]
    )


async def check_word(client: Client, thread_id: str, given: str) -> None:
    """Raise UnknownSession where a word taken for a path is none: nothing stands or changed there."""
    there = await client.diff(thread_id, client.paths([given]))
    if not any(there.get(part) for part in ("written", "deleted", "folded")):
        raise UnknownSession(f"{given!r} is neither a session nor a path that session {thread_id} changes")


# ---------------------------------------------------------------- diff, land


def diff(
    shell: Shell, *, session: str | None, paths: Sequence[str], stat: bool, json: bool, workspace: str | None
) -> int:
    """Show a branch's changes: coloured and paged at a terminal, a patch for `git apply` in a pipe."""

    async def work(client: Client) -> int:
        thread_id, chosen = await pick_with_paths(shell, client, session, paths)
        if session is not None and len(chosen) > len(paths) and not client.is_path(session):
            await check_word(client, thread_id, session)
        return await write_diff(shell, client, thread_id, chosen, stat=stat, json=json)

    return with_client(shell, workspace, work)


def land(
    shell: Shell,
    *,
    session: str | None,
    paths: Sequence[str],
    patch: bool,
    yes: bool,
    accept: Sequence[str],
    force: bool,
    partial: bool,
    json: bool,
    workspace: str | None,
    check: bool = False,
    commits: str | None = None,
    commit: bool = False,
    message: str | None = None,
    branch: str | None = None,
    include: Sequence[str] = (),
) -> int:
    """Write a branch's changes into its directory, all or some; nothing lands on a conflict.

    Args:
        commits: `fetch`, `fast-forward`, `never`; None = as `git.land` says.
        commit, message: what lands is to be one commit, too; a message alone says so.
        branch: the commit is all that happens, on this git branch.
        include: ignored paths that land with the rest.
        check: the command of `landing.check` runs first; nothing lands when it fails.
    """
    screen = TerminalScreen(shell)

    async def work(client: Client) -> int:
        thread_id, chosen = await pick_with_paths(shell, client, session, paths)
        named = ("*",) if "*" in accept else tuple(client.paths(accept))
        history = cast("Commits | None", commits and commits.replace("-", "_"))
        wanted = ToLand(
            paths=chosen or None, accept=named, force=force, partial=partial, commits=history,
            include=tuple(client.paths(include)),
            commit=CommitWish(message, branch=branch) if commit or (message or branch) is not None else None,
        )  # fmt: skip
        if session is not None and len(chosen) > len(paths) and _ID.fullmatch(session):
            await check_word(client, thread_id, session)  # the id of a session that is not there?
        asked = await choose(screen, client, thread_id, wanted, patch=patch, yes=yes)
        if asked is None:
            return shell.json(NOTHING) if json else DONE
        if check:
            show = shell.json if json else None
            if not await checked(screen, client, thread_id, show):
                return FAILED
        outcome = await land_chosen(screen, client, thread_id, asked)
        if json and outcome is None:
            return shell.json(NOTHING)
        if json:
            shell.json(_refusal(outcome) if isinstance(outcome, LandingRefused) else outcome)
        else:
            say_landed(screen, outcome, partial=partial)
        return code_of(outcome)

    return with_client(shell, workspace, work)


def _refusal(refused: LandingRefused) -> dict[str, Any]:
    return {"detail": str(refused), "code": refused.code, "refused": refused.refused}


# ---------------------------------------------------------------- undo, landings, discard


def undo(
    shell: Shell,
    *,
    landing: str | None,
    force: bool,
    json: bool,
    workspace: str | None,
    commit: bool = False,
    yes: bool = False,
) -> int:
    """Take a landing back; by default the newest of this directory that still stands."""
    screen = TerminalScreen(shell)

    async def work(client: Client) -> int:
        outcome = await undo_one(screen, client, landing, force=force, commit=commit, yes=yes)
        if json:
            shell.json(_refusal(outcome) if isinstance(outcome, LandingRefused) else outcome)
        else:
            say_undone(screen, outcome)
        return PARTLY if isinstance(outcome, LandingRefused) or is_uncommitted(outcome) else DONE

    return with_client(shell, workspace, work)


def landings(shell: Shell, *, json: bool, workspace: str | None) -> int:
    """List what landed in a directory, newest last."""

    async def work(client: Client) -> int:
        records = list(reversed(await client.landings()))
        if json:
            return shell.json(records)
        for line in table(landing_rows(records), width=shell.terminal.width):
            shell.terminal.line(line)
        if not records:
            shell.terminal.note(f"nothing has landed in {client.where}")
        return DONE

    return with_client(shell, workspace, work)


def fix(shell: Shell, *, landing: str, how: str, json: bool, workspace: str | None) -> int:
    """Lead a landing that needs attention out of it: try it again, take it back, or give it up."""

    async def work(client: Client) -> int:
        wanted = one_of([row["id"] for row in await client.landings()], landing, client.where)
        record = await client.fix(wanted, cast("Fix", how))
        state = str(record["state"])
        if json:
            shell.json(record)
        else:
            shell.terminal.line(f"{_FIXED.get(state, state)} {record['id']}")
        if state != "needs_attention":
            return DONE
        for row in () if json else record.get("troubles", ()):
            path = harmless_path(str(row["path"]).lstrip("/"))
            shell.terminal.note(f"{path}: {harmless(str(row['reason']))}")
        return PARTLY

    return with_client(shell, workspace, work)


def discard(
    shell: Shell, *, session: str | None, yes: bool, workspace: str | None, json: bool = False
) -> int:
    """Throw a branch's unlanded changes away; the session goes on with a fresh branch."""
    screen = TerminalScreen(shell)

    async def work(client: Client) -> int:
        thread_id = await left_here(shell, client, session)
        gone = await discard_asked(screen, client, thread_id, yes=yes)
        if json:
            return shell.json(gone or {"status": "discarded", "paths": [], "branch": None})
        if gone is None:
            return DONE
        say_discarded(screen, thread_id, gone)
        return DONE

    return with_client(shell, workspace, work)
