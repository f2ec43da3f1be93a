"""`diff`, `land`, `undo`, `landings`, `discard` (UI-43 … UI-45).

Here: the commands' steps. Not here: the hunk dialogue (`patching.py`), what a landing is.
"""

import json as json_text
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bowerbird.cli.exits import APPROVAL, DONE, FAILED, PARTLY, USAGE, CliExit
from bowerbird.cli.landing_check import passes_here
from bowerbird.cli.marking import held_lines, to_accept
from bowerbird.cli.patching import choose_hunks
from bowerbird.cli.picking import branch_paths, pick_session, pick_with_paths
from bowerbird.cli.review_shown import (
    BranchHere,
    Changes,
    LandingShown,
    files_of,
    landing_rows,
    steps_of,
    write_diff,
)
from bowerbird.cli.shell import Shell, directory_of
from bowerbird.cli.shell import run as run_async
from bowerbird.cli.text import harmless, plural, table
from bowerbird.core.errors import LandingRefused
from bowerbird.core.threads import to_thread
from bowerbird.sessions.review import ToLand

if TYPE_CHECKING:
    from bowerbird.app.application import Application
    from bowerbird.sessions import SessionInfo
    from bowerbird.workspace import Branch, Landing

T = TypeVar("T")


def opened(shell: Shell, workspace: str | None, work: "Callable[[Application, Path], Awaitable[T]]") -> T:
    """Run `work` with an application that drives nothing, in the command's directory."""
    directory = directory_of(workspace)
    loaded = shell.load(directory)

    async def framed() -> T:
        from bowerbird.app import open_application

        async with open_application(loaded, workspace=directory) as application:
            return await work(application, directory)

    return run_async(framed)


async def _branch_of(application: "Application", session: "SessionInfo") -> "Branch":
    if session.branch_id is None:
        raise CliExit(USAGE, f"session {session.thread_id} has no branch")
    return await application.sessions.branch(session.thread_id)


def _place_of(session: "SessionInfo") -> Path | None:
    return Path(session.workspace) if session.workspace else None


# ---------------------------------------------------------------- diff


def diff(
    shell: Shell, *, session: str | None, paths: Sequence[str], stat: bool, json: bool, workspace: str | None
) -> int:
    """Show a branch's changes: coloured and paged at a terminal, a patch for `git apply` in a pipe."""

    async def work(application: "Application", directory: Path) -> int:
        found, words = await pick_with_paths(application.sessions, session, paths, directory)
        here = BranchHere(await _branch_of(application, found))
        chosen = branch_paths(words, _place_of(found)) or None
        place = _place_of(found)
        folds = place is not None and place.is_dir()
        return await to_thread(
            lambda: write_diff(shell, here, found.thread_id, chosen, stat=stat, json=json, folds=folds)
        )

    return opened(shell, workspace, work)


# ---------------------------------------------------------------- land


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
) -> int:
    """Write a branch's changes into its directory, all or some; nothing lands on a conflict.

    Args:
        check: the command of `landing.check` runs first; nothing lands when it fails.
    """

    async def work(application: "Application", directory: Path) -> int:
        found, words = await pick_with_paths(application.sessions, session, paths, directory)
        branch = await _branch_of(application, found)
        place = _place_of(found)
        request: dict[str, Any] = {
            "paths": branch_paths(words, place) or None,
            "accept": ["*"] if "*" in accept else branch_paths(accept, place),
            "force": force,
            "partial": partial,
        }
        chosen = await to_thread(prepare, shell, BranchHere(branch), request, patch=patch, yes=yes)
        if chosen is None:
            shell.terminal.note("nothing was chosen; nothing landed")
            return DONE
        if check and not await passes_here(shell, application, found.thread_id, json=json):
            return FAILED
        told, review = chosen.pop("told", None), application.sessions.review
        landing = review.land(found.thread_id, ToLand(**chosen), actor="cli", door="cli", told=told)
        return say_landed(shell, await caught(landing), json)

    return opened(shell, workspace, work)


def prepare(
    shell: Shell, branch: Changes, request: dict[str, Any], *, patch: bool, yes: bool, shows: bool = True
) -> dict[str, Any] | None:
    """Return the landing's arguments after the person's choices; None when nothing is left.

    Args:
        shows: the landing tells of its steps, so a long one has a bar (UI-53).
    """
    plan = branch.plan_landing(request["paths"])
    entries = [row for row in plan["entries"] if not row["ignored"] or request["paths"]]
    if not entries:
        return None
    if patch:
        choice = choose_hunks(shell.terminal, entries, branch.diff(request["paths"]))
        if choice.is_empty:
            return None
        return {
            **request,
            "paths": list(choice.paths) or None,
            "hunks": list(choice.hunks) or None,
            "accept": [*request["accept"], *choice.accept],
        }
    can_ask = sys.stdin.isatty() and shell.terminal.err.is_terminal
    for line in held_lines(entries):
        shell.terminal.warn(line, "yellow")
    accepted = _accept_flagged(shell, entries, request["accept"], can_ask=can_ask)
    if not yes and can_ask and not _confirm(shell, entries):
        return None
    told = steps_of(shell.terminal.status, len(entries), width=shell.terminal.width) if shows else None
    return {**request, "accept": accepted, "plan": plan["plan"]} | ({"told": told} if told else {})


def _accept_flagged(
    shell: Shell, entries: Sequence[dict[str, Any]], accept: Sequence[str], *, can_ask: bool
) -> list[str]:
    """Ask for each path that must be named, by itself; `--yes` is no answer to this (UI-44)."""
    accepted = list(accept)
    for path, reason in to_accept(entries, accept) if can_ask else ():
        shell.terminal.warn(f"{harmless(path)} is shown apart: {reason}", "yellow")
        if input("Land it? [y/N] ").strip().lower() in ("y", "yes"):
            accepted.append(path)
    return accepted


def _confirm(shell: Shell, entries: Sequence[dict[str, Any]]) -> bool:
    rows = [[MARKS.get(row["op"], "M"), harmless(row["path"].lstrip("/")), drift_of(row)] for row in entries]
    for line in table(rows, width=shell.terminal.width):
        shell.terminal.warn(line)
    return input(f"Land {plural(len(entries), 'change')}? [y/N] ").strip().lower() in ("y", "yes")


MARKS = {"create": "A", "mkdir": "A", "symlink": "L", "delete": "D", "rmdir": "D", "chmod": "m"}


def drift_of(row: dict[str, Any]) -> str:
    notes = {"mergeable": "edited since: will be merged", "conflict": "CONFLICT", "same": "already there"}
    return notes.get(row["drift"], "")


async def caught(landing: "Awaitable[Landing]") -> LandingShown | LandingRefused:
    """Return a landing, or its refusal."""
    try:
        return LandingShown((await landing).record())
    except LandingRefused as refusal:
        return refusal


def land_chosen(shell: Shell, branch: Changes, arguments: dict[str, Any], json: bool) -> int:
    """Land on a server and say how it went."""
    try:
        landing = branch.land(**arguments, actor="cli", door="cli")
    except LandingRefused as refusal:
        landing = refusal
    return say_landed(shell, landing, json)


def say_landed(shell: Shell, landing: LandingShown | LandingRefused, json: bool) -> int:
    """Say what landed, or why nothing did; returns the exit code."""
    shell.terminal.clear_status()
    if isinstance(landing, LandingRefused):
        refusal = landing
        if json:
            data = {"landing_id": None, "landed": [], "refused": refusal.refused}
            shell.terminal.write(json_text.dumps(data, ensure_ascii=False) + "\n")
        shell.terminal.warn("nothing landed:", "red")
        say_refused(shell, refusal.refused)
        only_flags = all(row["reason"].startswith("flagged") for row in refusal.refused)
        return APPROVAL if only_flags else PARTLY
    return _landed(shell, landing, json)


def say_refused(shell: Shell, refused: Sequence[dict[str, str]]) -> None:
    for row in refused:
        shell.terminal.warn(f"  {row['path'].lstrip('/')}: {row['reason']}")


def _landed(shell: Shell, landing: LandingShown, json: bool) -> int:
    rows = landing.entries
    if json:
        data = {"landing_id": landing.id, "landed": [row["path"] for row in rows], "refused": landing.refused}
        shell.terminal.write(json_text.dumps(data, ensure_ascii=False) + "\n")
    else:
        shell.terminal.line(f"landed {plural(files_of(rows), 'change')} as {landing.id}", "green")
        shell.terminal.note(f"take it back with: bowerbird undo {landing.id}")
    if landing.refused:
        shell.terminal.warn("not landed:", "yellow")
        say_refused(shell, landing.refused)
        return PARTLY
    return DONE


# ---------------------------------------------------------------- undo, landings, discard


def undo(shell: Shell, *, landing: str | None, force: bool, json: bool, workspace: str | None) -> int:
    """Take a landing back; by default the newest of this directory that still stands."""

    async def work(application: "Application", directory: Path) -> int:
        review, place = application.sessions.review, str(directory)
        try:
            known = await review.landings(place)
            wanted = landing or _newest_standing(known)
            if wanted is None:
                raise CliExit(USAGE, f"nothing has landed in {directory} that could be taken back")
            matches = [row.id for row in known if row.id.startswith(wanted)]
            if not matches:
                raise CliExit(
                    USAGE, f"no landing {harmless(wanted)} in {directory}; `bowerbird landings` lists them"
                )
            if len(matches) > 1:
                raise CliExit(USAGE, f"{wanted} fits several landings: {', '.join(matches)}")
            landing_ = await review.undo(place, matches[0], force=force, actor="cli", door="cli")
            undone = landing_.record()
        except LandingRefused as refusal:
            shell.terminal.warn("nothing was taken back; edited since:", "red")
            say_refused(shell, refusal.refused)
            shell.terminal.note("`--force` takes it back all the same; that can be undone too")
            return PARTLY
        if json:
            data = {
                "landing_id": undone["id"],
                "undoes": undone["undoes"],
                "paths": [r["path"] for r in undone["entries"]],
            }
            shell.terminal.write(json_text.dumps(data, ensure_ascii=False) + "\n")
        else:
            changed = plural(files_of(undone["entries"]), "change")
            shell.terminal.line(f"took {matches[0]} back ({changed})", "green")
            shell.terminal.note(f"bring it back with: bowerbird undo {undone['id']}")
        return DONE

    return opened(shell, workspace, work)


def _newest_standing(landings: "Sequence[Landing]") -> str | None:
    standing = [row.id for row in landings if row.state == "done" and row.kind == "land"]
    return standing[-1] if standing else None


def landings(shell: Shell, *, json: bool, workspace: str | None) -> int:
    """List what landed in a directory, newest last."""

    async def work(application: "Application", directory: Path) -> int:
        records = [row.record() for row in await application.sessions.review.landings(str(directory))]
        if json:
            shell.terminal.write(json_text.dumps(records, ensure_ascii=False, indent=2) + "\n")
            return DONE
        for line in table(landing_rows(records), width=shell.terminal.width):
            shell.terminal.line(line)
        if not records:
            shell.terminal.note(f"nothing has landed in {directory}")
        return DONE

    return opened(shell, workspace, work)


def discard(
    shell: Shell, *, session: str | None, yes: bool, workspace: str | None, json: bool = False
) -> int:
    """Throw a branch's unlanded changes away; the session goes on with a fresh branch."""

    async def work(application: "Application", directory: Path) -> int:
        found = await pick_session(application.sessions, session, directory)
        branch = await _branch_of(application, found)
        changes = await to_thread(branch.changes)
        count = len(changes.paths)
        if not count:
            shell.terminal.note(f"session {found.thread_id} has nothing to discard")
            return DONE
        if not yes and not ask_sure(f"Discard {plural(count, 'change')} of session {found.thread_id}?"):
            raise CliExit(USAGE, "nothing was discarded; --yes discards without asking")
        gone = await application.sessions.review.discard(found.thread_id)
        if json:
            shell.terminal.write(json_text.dumps(gone.record()) + "\n")
            return DONE
        shell.terminal.line(f"discarded {plural(count, 'change')} of session {found.thread_id}", "green")
        shell.terminal.note(f"kept for 7 days; bring them back with: bowerbird trash restore {gone.branch}")
        return DONE

    return opened(shell, workspace, work)


def ask_sure(question: str) -> bool:
    """Ask a yes-or-no question; no where nobody sits."""
    if not sys.stdin.isatty():
        return False
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
