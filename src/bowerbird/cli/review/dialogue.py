"""The review as a conversation with a person: what to land, by file or by hunk; undoing; discarding (UI-44).

Here: the questions and what is said, over a `Screen`, so that `bowerbird land` and `/land` are the same. Not
here: which hunks (`hunks.py`), landing itself, options of commands.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.review.drawn import files_of
from bowerbird.cli.review.git_lines import commit_of, history_lines, is_uncommitted
from bowerbird.cli.review.hunks import choose_hunks
from bowerbird.cli.review.marking import held_lines, to_accept, why_empty, without_unnamed
from bowerbird.cli.review.screen import Screen
from bowerbird.cli.terminal.exits import APPROVAL, DONE, PARTLY, USAGE, CliExit, NothingToLand
from bowerbird.cli.terminal.terminal import LandingBar
from bowerbird.cli.terminal.text import harmless, harmless_path, plural, table
from bowerbird.core.errors import LandingRefused
from bowerbird.sessions.wishes import ToLand

MOST_LISTED = 20
MARKS = {"create": "A", "mkdir": "A", "symlink": "L", "delete": "D", "rmdir": "D", "chmod": "m"}
_CONFLICTS = frozenset({"both_modified", "both_created", "delete_modify", "modify_delete"})
_DRIFT = {"mergeable": "edited since: will be merged", "conflict": "CONFLICT", "same": "already there"}
Outcome = Row | LandingRefused | None
MOST_REFUSED = 50  # named one by one
"""The record of what landed, the refusal, or nothing: then nothing was chosen."""


async def land(
    screen: Screen, client: Client, thread_id: str, wanted: ToLand, *, patch: bool = False, yes: bool = False
) -> Outcome:
    """Ask what a landing would need to know, then land."""
    chosen = await choose(screen, client, thread_id, wanted, patch=patch, yes=yes)
    return None if chosen is None else await land_chosen(screen, client, thread_id, chosen)


async def choose(
    screen: Screen, client: Client, thread_id: str, wanted: ToLand, *, patch: bool, yes: bool
) -> ToLand | None:
    """Return what is to land after the person's choices; None for nothing.

    Args:
        patch: ask hunk by hunk. yes: ask nothing but for paths that must be accepted by name.
    """
    plan = await client.plan(thread_id, wanted.paths, wanted.include)
    entries = [row for row in plan["entries"] if not row["ignored"]]
    # What has arrived before is no more among the commits to land; the user's branch may still follow it.
    follows = wanted.commits == "fast_forward" and wanted.paths is None
    if not entries and not follows and not (plan.get("commits") and wanted.commits != "never"):
        return _nothing(screen, why_empty(plan["entries"], named=wanted.paths or ()))
    if patch and entries:
        choice = await choose_hunks(screen, entries, await client.diff(thread_id, wanted.paths))
        if choice.is_empty:
            return _nothing(screen)
        paths, accept = choice.paths or None, (*wanted.accept, *choice.accept)
        wanted = replace(wanted, accept=accept, include=(), seen=_seen(plan))
        return replace(wanted, paths=paths, hunks=choice.hunks or None)
    for line in held_lines(entries):
        screen.warn(line, "yellow")
    accept = await _accept_flagged(screen, entries, wanted.accept) if screen.can_ask else wanted.accept
    entries = without_unnamed(entries, accept)
    declined = [path for path, _ in to_accept(entries, accept)] if screen.can_ask else []
    rest = [str(row["path"]).lstrip("/") for row in entries]
    rest = [path for path in rest if path not in declined]
    if declined and (rest or not plan.get("commits")):  # what was declined stays, the rest lands
        for path in declined:
            screen.warn(f"stays on the branch: {harmless_path(path)}", "yellow")
        if not rest:
            return _nothing(screen)
        chosen = replace(wanted, paths=rest, accept=accept, include=())  # the rest names what was included
        return await choose(screen, client, thread_id, chosen, patch=False, yes=yes)
    if entries and not yes and screen.can_ask and not await _confirm(screen, entries):
        return _nothing(screen)
    return replace(wanted, accept=accept, plan=plan["plan"], seen=_seen(plan))


def _seen(plan: Row) -> dict[str, str]:
    return {str(row["path"]): str(row["state"]) for row in plan["entries"]}


def _nothing(screen: Screen, why: str = "nothing was chosen") -> None:
    screen.note(f"{why}; nothing landed")


async def land_chosen(screen: Screen, client: Client, thread_id: str, wanted: ToLand) -> Outcome:
    """Land what was chosen, or say that there was nothing; a landing of many files has a bar."""
    try:
        landed = await client.land(thread_id, wanted, LandingBar(screen.step, width=screen.width - 1))
    except LandingRefused as refusal:
        return refusal
    except NothingToLand:
        landed = None
    finally:
        screen.step("")
    if landed is None or not (landed["entries"] or landed["refused"] or landed.get("history")):
        return _nothing(screen, why_empty([], named=wanted.paths or ()))
    return landed


async def _accept_flagged(screen: Screen, entries: Sequence[Row], accept: Sequence[str]) -> tuple[str, ...]:
    """Ask for each path that must be named, by itself; `--yes` is no answer to this."""
    accepted = list(accept)
    for path, reason in to_accept(entries, accept):
        screen.warn(f"{harmless_path(path)} needs its own review: {reason}", "yellow")
        if await confirmed(screen, "Land it?"):
            accepted.append(path)
    return tuple(accepted)


async def _confirm(screen: Screen, entries: Sequence[Row]) -> bool:
    rows = [
        [MARKS.get(row["op"], "M"), harmless_path(row["path"].lstrip("/")), _DRIFT.get(row["drift"], "")]
        for row in entries
    ]
    for line in table(rows[:MOST_LISTED], width=screen.width):
        screen.warn(line)
    if len(rows) > MOST_LISTED:
        screen.warn(f"… and {len(rows) - MOST_LISTED} more: {screen.prefix}diff shows all")
    return await confirmed(screen, f"Land {plural(len(entries), 'change')}?")


async def confirmed(screen: Screen, question: str) -> bool:
    """Ask a yes-or-no question; no where nobody sits."""
    if not screen.can_ask:
        return False
    return (await screen.ask(f"{question} [y/N] ") or "").strip().lower() in ("y", "yes")


# ---------------------------------------------------------------- what is said


def _way_on(reasons: Sequence[str], *, partial: bool) -> str:
    """Return what lands all the same, and how.

    Args:
        partial: all but these was asked for already, and there is nothing else.

    Example:
        >>> [_way_on(["changed while landing"], partial=partial) for partial in (False, True)]
        ['land again; --partial lands the rest', 'land again']
    """
    if any(reason.startswith("flagged") for reason in reasons):
        others = "" if partial else ", or the others without it with --partial"
        return f"land such a path with --accept PATH{others}"
    if _CONFLICTS.issuperset(reasons):
        force = "the agent's version of these, whole; undo gives yours back"
        return f"--force lands {force}" if partial else f"--partial lands the rest, --force {force}"
    again = ["land again"] if partial or set(reasons) == {"changed while landing"} else []
    return "; ".join(again if partial else [*again, "--partial lands the rest"])


def say_landed(screen: Screen, outcome: Outcome, *, partial: bool = False) -> None:
    """Say what landed, or why nothing did (`partial`: alone); of nothing it has been said already."""
    if outcome is None:
        return
    if isinstance(outcome, LandingRefused):
        screen.warn("nothing landed:", "red")
        _say_refused(screen, outcome.refused)
        if screen.prefix != "/":
            screen.note(_way_on([row["reason"] for row in outcome.refused], partial=partial))
        return
    landed, made = plural(files_of(outcome["entries"]), "change"), commit_of(outcome)
    aside = outcome["kind"] == "commit"
    if aside and made:
        screen.tell(f"committed {landed} on {harmless(made['branch'])}; no file of yours changed", "green")
    elif not aside:
        screen.tell(f"landed {landed} as {outcome['id']}", "green")
    for line in history_lines(outcome.get("history") or [], outcome["entries"] and screen.prefix):
        screen.note(line)
    if not aside:
        screen.note(f"take it back with: {screen.prefix}undo {outcome['id']}")
    if outcome["refused"]:
        screen.warn("not landed:", "yellow")
        _say_refused(screen, outcome["refused"])


def code_of(outcome: Outcome) -> int:
    """Return the exit code of a landing."""
    if outcome is None:
        return DONE
    if isinstance(outcome, LandingRefused):
        return APPROVAL if all(row["reason"].startswith("flagged") for row in outcome.refused) else PARTLY
    return PARTLY if outcome["refused"] or is_uncommitted(outcome) else DONE


def _say_refused(screen: Screen, refused: Sequence[Mapping[str, str]]) -> None:
    from bowerbird.workspace.landing.refusals import meaning  # a command over --server needs it here only

    for row in refused[:MOST_REFUSED]:
        screen.warn(f"  {harmless_path(row['path'].lstrip('/'))}: {meaning(row['reason'])}")
    if len(refused) > MOST_REFUSED:
        screen.warn(f"  … and {len(refused) - MOST_REFUSED} more; --json has them all")


# ---------------------------------------------------------------- undo, discard


async def undo(
    screen: Screen,
    client: Client,
    wanted: str | None,
    *,
    force: bool,
    commit: bool = False,
    yes: bool = False,
) -> Row | LandingRefused:
    """Take a landing back, by default the newest that stands.

    Args:
        wanted: its id, or the beginning of it. commit: the revert is to be a commit.
        yes: is the answer where it was a commit and that is asked.

    Raises:
        CliExit: nothing stands, or `wanted` fits none or several.
    """
    known = await client.landings()
    standing = [row["id"] for row in known if row["state"] == "done" and row["kind"] == "land"]
    if not wanted and not standing:
        raise CliExit(USAGE, f"nothing has landed in {client.where} that could be taken back")
    landing = one_of([row["id"] for row in known], wanted, client.where) if wanted else standing[0]
    made = next((commit_of(row) for row in known if row["id"] == landing), None)
    if made and not commit:
        what = f"{made['id'][:12]} on {harmless(made['branch'])}"
        commit = yes or await confirmed(screen, f"It is commit {what}. Commit the revert, too?")
        if not commit:
            screen.note(f"commit {what} stays; `{screen.prefix}undo --commit` also commits the revert")
    try:
        bar = LandingBar(screen.step, width=screen.width - 1)
        return await client.undo(landing, force=force, commit=commit, told=bar)
    except LandingRefused as refusal:
        return refusal
    finally:
        screen.step("")


def one_of(known: Sequence[str], wanted: str, where: str) -> str:
    """Return the one landing whose id begins so."""
    matches = [each for each in known if each.startswith(wanted)]
    if len(matches) == 1:
        return matches[0]
    what = f"fits several landings: {', '.join(matches)}" if matches else f"is not a landing of {where}"
    raise CliExit(USAGE, f"{harmless(wanted)} {what}; `bowerbird landings` lists them")


def say_undone(screen: Screen, outcome: Row | LandingRefused) -> None:
    """Say what was taken back, or why nothing was."""
    if isinstance(outcome, LandingRefused):
        screen.warn("nothing was taken back; edited since:", "red")
        _say_refused(screen, outcome.refused)
        screen.note(f"`{screen.prefix}undo --force` takes it back anyway; that can be undone too")
        return
    count = plural(files_of(outcome["entries"]), "change")
    screen.tell(f"took {outcome.get('undoes') or 'it'} back ({count})", "green")
    for line in history_lines(outcome.get("history") or []):
        screen.note(line)
    screen.note(f"bring it back with: {screen.prefix}undo {outcome['id']}")


async def discard(screen: Screen, client: Client, thread_id: str, *, yes: bool) -> Row | None:
    """Throw a session's changes away, once that is confirmed; None when there are none.

    Raises:
        CliExit: it was not confirmed.
    """
    plan = await client.plan(thread_id)
    changed = len(plan["entries"]) + sum(row["files"] for row in plan["folded"])
    if not changed:
        screen.note(f"session {thread_id} has nothing to discard")
        return None
    question = f"Discard {plural(changed, 'change')} of session {thread_id}?"
    if not yes and not await confirmed(screen, question):
        raise CliExit(USAGE, "nothing was discarded; --yes discards without asking")
    return await client.discard(thread_id)


def say_discarded(screen: Screen, thread_id: str, gone: Row) -> None:
    """Say what was thrown away and how it is brought back."""
    screen.tell(f"discarded {plural(len(gone['paths']), 'change')} of session {thread_id}", "green")
    screen.note(f"kept for 7 days; bring them back with: bowerbird trash restore {gone['branch']}")


async def checked(
    screen: Screen, client: Client, thread_id: str, show: Callable[[Row], object] | None = None
) -> bool:
    """Run the command of `landing.check`, say what it found and return whether it passed.

    Args:
        show: shows a failure in another way.
    """
    found = await client.check(thread_id, lambda command: screen.note(f"checking: {harmless(command)}"))
    if found["state"] == "passed":
        screen.note(f"check passed in {found['seconds']:.1f} s")
        return True
    if show is not None:
        show(found)
        return False
    tail = harmless(found["output_tail"].rstrip())
    if tail:
        screen.warn(tail)
    if found["state"] == "failed":
        how = f"ended with code {found['exit_code']} after {found['seconds']:.1f} s"
        screen.warn(f"nothing landed: the check {how}", "red")
    else:
        why = harmless(str(found["error"]))
        screen.warn(f"nothing landed: the check could not run: {why}", "red")
    return False
