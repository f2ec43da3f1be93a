"""Bringing what was committed on a branch into the user's repository (GI-3).

Here: objects through git's own checks, refs of ours that keep them, and which refs of the user's may follow.
Not here: moving those (`moving.py`), what people see (`story.py`).

Each step is harmless by itself: objects without refs, then refs under `refs/bowerbird/`. Between the two a
`git gc --prune=now` of the user's would take the objects away again, so they arrive as a pack that git keeps
until the refs are there. Whatever git refuses is a trouble that is told; it keeps no file from landing.
"""

import os
import re
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bowerbird.workspace.git.apart import apart
from bowerbird.workspace.git.lacking import reason_of
from bowerbird.workspace.git.landed_history import Commits, HistoryRules, LandedHistory, LandedRef
from bowerbird.workspace.git.landed_refs import Landed, LandedRefs
from bowerbird.workspace.git.moving import head_of, value_of
from bowerbird.workspace.git.quarantine import Quarantine
from bowerbird.workspace.git.refs import RefMove, RefsFound
from bowerbird.workspace.git.repository import (
    Repository,
    checked_out,
    common_of,
    is_bare,
    repositories,
    under_way,
)
from bowerbird.workspace.git.running import Git, GitFailed
from bowerbird.workspace.git.signing import Signing, signed, signed_before
from bowerbird.workspace.marks.surroundings import around_changes
from bowerbird.workspace.tree.changes import Change
from bowerbird.workspace.tree.stack import Stack

_KEPT = "bowerbird is landing"
_FORGOTTEN_S = 3600.0
_MOST_LOST = 3
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
MOVED_ON = "it has moved on in your repository"


class Bringing(msgspec.Struct, frozen=True):
    """How history lands.

    Attributes:
        commits: `fetch` = into refs of ours; `fast_forward` = the user's refs follow where they can.
        session: names the refs of ours. rules: limits, signing.
        own_git: the user sits here, and their own git signs.
        left: virtual paths of files that this landing leaves on the branch.
    """

    commits: Commits
    session: str
    rules: HistoryRules = msgspec.field(default_factory=HistoryRules)
    own_git: bool = False
    left: Collection[str] = ()


class _Brought(msgspec.Struct):
    refs: list[LandedRef] = msgspec.field(default_factory=list[LandedRef])
    troubles: list[str] = msgspec.field(default_factory=list[str])
    notes: list[str] = msgspec.field(default_factory=list[str])
    keeps: list[Path] = msgspec.field(default_factory=list[Path])


def bring(
    stack: Stack, changes: Sequence[Change], directory: Path, how: Bringing
) -> tuple[LandedHistory, ...]:
    """Bring the new commits of a branch into the user's repositories; moves no ref of the user's.

    Args:
        changes: all of the branch, frozen. directory: the branch's.

    Returns:
        What arrived; refs whose state is `moving` are still to be moved. Nothing where there is nothing new.
    """
    if how.commits == "never":
        return ()
    around = around_changes(stack, changes)
    parts = apart(changes, around)
    if not parts.data:
        return ()
    landed = LandedRefs(directory).read()
    found: list[LandedHistory] = []
    for repository in repositories(stack, [*parts.settings, *parts.data], around):
        if repository.is_new or repository.is_removed:
            continue
        one = _of_one(repository, directory, landed, how)
        if one.refs or one.troubles:
            found.append(one)
    return tuple(found)


def has_new_commits(stack: Stack, changes: Sequence[Change], directory: Path) -> bool:
    """Whether a landing would bring something in; no git is asked."""
    parts = apart(changes, around_changes(stack, changes))
    if not parts.data:
        return False
    known = LandedRefs(directory).newest()
    inside = repositories(stack, [*parts.settings, *parts.data], around_changes(stack, changes))
    return any(
        move.new is not None and known.get(one.root, {}).get(move.name) != move.new
        for one in inside
        if not one.is_new and not one.is_removed
        for move in one.refs().find().moves
    )


def _of_one(repository: Repository, directory: Path, landed: Landed, how: Bringing) -> LandedHistory:
    found = repository.refs().find()
    known = landed.get(repository.root, {})
    theirs = Git(repository.git_dir)
    brought = _Brought()
    again = signed_before(directory.parents[1], repository.git_dir)
    wanted = [m for m in found.moves if m.new is not None and _is_wanted(m, known, again, theirs, how)]
    if wanted:
        try:
            with Quarantine(repository, directory, how.rules.most_bytes) as quarantine:
                _bring(repository, quarantine, wanted, found, known, how, brought)
                lost = sorted(quarantine.nowhere)[:_MOST_LOST]
                brought.notes += [
                    f"a ref of yours points to {name[:12]}, which is not there" for name in lost
                ]
        except (GitFailed, OSError) as error:
            brought.troubles.append(reason_of(error, repository))
        finally:
            _let_go(repository, brought.keeps)
    place = repository.elsewhere.place if repository.elsewhere is not None else ""
    refs, troubles, notes = tuple(brought.refs), tuple(brought.troubles), tuple(brought.notes)
    return LandedHistory(repository.root, refs, troubles, notes, place=place)


def _is_wanted(
    move: RefMove, known: dict[str, list[str]], again: Mapping[str, str], theirs: Git, how: Bringing
) -> bool:
    if known.get(move.name, [None])[-1] != move.new:
        return True
    # It has arrived before; now the user's own ref may follow.
    own = move.name.startswith("refs/heads/") and how.commits == "fast_forward"
    now = value_of(theirs, move.name) if own else None
    return own and now != again.get(str(move.new)) and now in (move.old, *known[move.name][:-1])


def _bring(
    repository: Repository,
    quarantine: Quarantine,
    wanted: Sequence[RefMove],
    found: RefsFound,
    known: dict[str, list[str]],
    how: Bringing,
    brought: _Brought,
) -> None:
    missing = quarantine.missing({str(move.new) for move in wanted})
    there = [move for move in wanted if move.new not in missing]
    brought.troubles += [
        f"{move.name} points to {str(move.new)[:12]}, which is not there"
        for move in wanted
        if move not in there
    ]
    arrived = _objects(repository, quarantine, there, brought)
    fetched = {str(move.new) for move in there if move.name.startswith("refs/remotes/")}
    data = repository.stack.directory.parents[1]
    again = signed(repository, arrived, fetched, Signing(how.rules, how.session, data, how.own_git))
    brought.notes += again.notes
    made_from = {new: old for old, new in again.ids.items()}
    arrived = [msgspec.structs.replace(move, new=again.ids.get(str(move.new), move.new)) for move in arrived]
    for move in _kept(Git(repository.git_dir), arrived, how.session, brought):
        kept_as = kept_name(how.session, move.name)
        own = made_from.get(str(move.new))
        start = move.old or found.start
        base = again.ids.get(str(start), start)
        ref = LandedRef(move.name, move.new, kept_as, base=base, made_from=own)
        if how.commits == "fast_forward":
            ref = _following(repository, quarantine, move, ref, known.get(move.name, []), how)
        brought.refs.append(ref)


def _kept(theirs: Git, moves: Sequence[RefMove], session: str, brought: _Brought) -> list[RefMove]:
    """Point refs of ours at what arrived, all at once or else one by one; returns those that are kept."""
    if not moves:
        return []
    lines = "".join(f"update {kept_name(session, move.name)} {move.new}\n" for move in moves).encode()
    try:
        message = f"bowerbird: session {session}"
        theirs.run("update-ref", "--create-reflog", "-m", message, "--stdin", stdin=lines)
        return list(moves)
    except GitFailed as error:
        if len(moves) == 1:
            brought.troubles.append(f"{moves[0].name}: {error}")
            return []
    return [move for one in moves for move in _kept(theirs, [one], session, brought)]


def _objects(
    repository: Repository, quarantine: Quarantine, moves: Sequence[RefMove], brought: _Brought
) -> list[RefMove]:
    """Bring the objects of some refs over, together or else one by one; returns the refs that have them."""
    if not moves:
        return []
    try:
        brought.keeps += _transfer(repository, quarantine, [str(move.new) for move in moves])
        return list(moves)
    except GitFailed as error:
        if len(moves) == 1:
            brought.troubles.append(f"{moves[0].name}: {reason_of(error, repository)}")
            return []
    return [move for one in moves for move in _objects(repository, quarantine, [one], brought)]


def _transfer(repository: Repository, quarantine: Quarantine, tips: Sequence[str]) -> list[Path]:
    """Pack what is new, let git check it, put it into the user's repository, prove that all is there.

    Returns:
        The files that keep the pack there, to be deleted once refs lead to it.
    """
    theirs, keeps = Git(repository.git_dir), list[Path]()
    with tempfile.TemporaryFile(dir=repository.stack.directory) as pack:
        count = quarantine.pack(tips, pack)
        size = pack.seek(0, os.SEEK_END)
        pack.seek(0)
        if count:
            words = ("index-pack", "--stdin", "--strict", f"--keep={_KEPT}")
            said = theirs.with_time_for(size).run(*words, stdin=pack).decode().split()
            if said[0] == "keep":  # otherwise the user keeps it already
                keeps.append(_packs_of(repository) / f"pack-{said[1]}.keep")
    try:
        theirs.run("rev-list", "--objects", "--quiet", "--stdin", stdin=quarantine.lacking(tips))
    except GitFailed:
        _let_go(repository, keeps)
        raise
    return keeps


def _packs_of(repository: Repository) -> Path:
    return common_of(repository.git_dir) / "objects/pack"


def _let_go(repository: Repository, keeps: Sequence[Path]) -> None:
    """Leave packs to the user's git, those of a landing that was killed too."""
    with suppress(OSError):  # a file too many, which the next landing finds
        long_ago = time.time() - _FORGOTTEN_S
        for found in _packs_of(repository).glob("*.keep"):
            is_ours = found.read_bytes().strip() == _KEPT.encode()
            if found in keeps or (is_ours and found.stat().st_mtime < long_ago):
                found.unlink(missing_ok=True)


def kept_name(session: str, name: str) -> str:
    """Return the ref of ours that keeps a ref of a session.

    >>> kept_name("s_1", "refs/heads/main"), kept_name("a b/c", "stash/0")
    ('refs/bowerbird/s_1/heads/main', 'refs/bowerbird/a-b-c/stash/0')
    """
    label = _NO_NAME.sub("-", session).strip("-") or "branch"
    return f"refs/bowerbird/{label}/{name.removeprefix('refs/')}"


# ------------------------------------------------------------ fast-forward


def _following(
    repository: Repository,
    quarantine: Quarantine,
    move: RefMove,
    ref: LandedRef,
    known: Sequence[str],
    how: Bringing,
) -> LandedRef:
    """Return the ref with whether the user's own of that name is to follow."""
    if not move.name.startswith(("refs/heads/", "refs/tags/")):
        return ref
    theirs = Git(repository.git_dir, repository.work_tree)
    now = value_of(theirs, move.name)
    is_head = head_of(theirs) == move.name and not is_bare(repository.git_dir)
    why = ""
    if now == move.new:
        return ref
    if now != move.old and now not in known:
        why = MOVED_ON
    elif move.name.startswith("refs/tags/") and now is not None:
        why = "a tag of yours is never moved"
    elif now is not None and not quarantine.is_after(now, str(move.new)):
        why = "the branch has rewritten commits of yours"
    elif move.name in set(checked_out(repository.git_dir)):
        why = "it is checked out in another working tree"
    elif is_head:
        why = _head_stays(repository, quarantine, now, str(move.new), how)
    if why:
        return msgspec.structs.replace(ref, state="stays", old=now, said=why)
    return msgspec.structs.replace(ref, state="moving", old=now, checked_out=is_head)


def _head_stays(
    repository: Repository, quarantine: Quarantine, now: str | None, new: str, how: Bringing
) -> str:
    """Return why what is checked out cannot move; "" when it can."""
    busy = under_way(repository.git_dir)
    if busy is not None:
        return f"your repository is in the middle of a {busy}"
    if repository.work_tree is None:
        return "its files are not where its own configuration says"
    between = {path: repository.virtual(path) for path in quarantine.paths_between(now, new)}
    outside = [path for path, here in between.items() if here is None]
    if outside:
        return f"its commits change files outside of the workspace: {outside[0]}"
    hidden = [path for path, here in between.items() if here and repository.stack.ground.hidden(here)]
    if hidden:
        return f"its commits change what is hidden from the agent: {hidden[0]}"
    left = [path for path, here in between.items() if here in how.left]
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return f"files of its commits did not land: {left[0]}{more}"
    return ""
