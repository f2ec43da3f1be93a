"""What happened in git on a branch, as values for people and programs (GI-2).

Here: the values, and how they come about from refs and commits. Not here: reading refs (`refs.py`), bringing
anything into the user's repository (`arrival.py`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from bowerbird.workspace.git.apart import apart
from bowerbird.workspace.git.lacking import reason_of
from bowerbird.workspace.git.landed_history import MOST_BYTES
from bowerbird.workspace.git.quarantine import Quarantine
from bowerbird.workspace.git.refs import RefMove, RefsFound
from bowerbird.workspace.git.repository import Repository, repositories
from bowerbird.workspace.git.running import GitFailed
from bowerbird.workspace.marks.flags import FlagRules
from bowerbird.workspace.marks.git_elsewhere import ROOT
from bowerbird.workspace.marks.surroundings import Surroundings, around_changes
from bowerbird.workspace.tree.changes import Change, Tops
from bowerbird.workspace.tree.paths import shown
from bowerbird.workspace.tree.stack import Stack

MOST_TOLD = 40
_MOST_NAMED = 10

RefChange = Literal["created", "moved", "rewritten", "deleted"]


class Commit(msgspec.Struct, frozen=True):
    """A commit as a line: its short id and its subject."""

    id: str
    subject: str


class RefStory(msgspec.Struct, frozen=True, kw_only=True):
    """One ref that the branch changed.

    Attributes:
        ref: `refs/heads/main`, `HEAD` where it is detached, `stash/0` (the oldest stash).
        change: `rewritten` = commits that it had are no longer before it.
        old, new: object ids. commits: how many are new to the user's repository; `subjects` of some of them,
            the newest first.
        landed: it has been brought into the user's repository as it is now.
    """

    ref: str
    change: RefChange
    old: str | None = None
    new: str | None = None
    commits: int = 0
    subjects: tuple[Commit, ...] = ()
    landed: bool = False

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "ref": self.ref,
            "change": self.change,
            "old": self.old,
            "new": self.new,
            "commits": self.commits,
            "subjects": [{"id": commit.id, "subject": commit.subject} for commit in self.subjects],
            "landed": self.landed,
        }


class SettingStory(msgspec.Struct, frozen=True, kw_only=True):
    """Something that git runs or obeys and the branch changed: lands only when accepted by name."""

    path: str
    change: Literal["created", "modified", "deleted"]
    reasons: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {"path": self.path, "change": self.change, "reasons": list(self.reasons)}


class RepositoryStory(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in one git directory.

    Attributes:
        path: of the git directory, as shown. is_new, is_removed: the branch made it, or removed it.
        head: where HEAD went, (before, after), None when it stayed.
        worktrees: `+name`, `-name`. troubles: what could not be looked at, and why.
    """

    path: str
    is_new: bool = False
    is_removed: bool = False
    head: tuple[str | None, str | None] | None = None
    refs: tuple[RefStory, ...] = ()
    worktrees: tuple[str, ...] = ()
    settings: tuple[SettingStory, ...] = ()
    troubles: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "path": self.path,
            "is_new": self.is_new,
            "is_removed": self.is_removed,
            "head": list(self.head) if self.head is not None else None,
            "refs": [ref.record() for ref in self.refs],
            "worktrees": list(self.worktrees),
            "settings": [setting.record() for setting in self.settings],
            "troubles": list(self.troubles),
        }


class GitStory(msgspec.Struct, frozen=True):
    """What happened in git on a branch; empty when nothing did that anybody should see."""

    repositories: tuple[RepositoryStory, ...] = ()

    def record(self) -> list[dict[str, Any]]:
        """Return plain data."""
        return [repository.record() for repository in self.repositories]


class Told(msgspec.Struct, frozen=True):
    """One repository with what was found in it, for whoever brings it in.

    Attributes:
        moves: those refs whose objects are all there.
    """

    repository: Repository
    story: RepositoryStory
    found: RefsFound = msgspec.field(default_factory=RefsFound)
    moves: tuple[RefMove, ...] = ()


def story_of(
    stack: Stack,
    changes: Sequence[Change],
    rules: FlagRules,
    place: Path,
    landed: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[GitStory, list[Told]]:
    """Tell what happened in every git directory; nothing of the branch's is run or obeyed.

    Args:
        changes: all of the branch. place: a directory on the branch's file system, for the time of the call.
        landed: by repository and ref, what was brought into the user's repository before.
    """
    around = around_changes(stack, changes)
    parts = apart(changes, around)
    if not parts.settings and not parts.data:
        return GitStory(), []
    settings = {c.path: c for c in parts.settings}
    told: list[Told] = []
    for repository in repositories(stack, [*parts.settings, *parts.data], around):
        mine = [c for c in repository.changed.values() if c.path in settings]
        told_only = [c.path for c in parts.told if repository.elsewhere is not None]
        lines = _settings(mine, lambda c: rules.marks(c.path, c.base, c.new, around).reasons, around)
        known = (landed or {}).get(repository.root, {})
        one = _told(repository, lines, place, known)
        told.append(
            msgspec.structs.replace(
                one,
                story=msgspec.structs.replace(
                    one.story, troubles=(*one.story.troubles, *_staying(told_only))
                ),
            )
        )
    gone = Tops(f"{one.repository.root}/modules" for one in told if one.story.is_removed)
    stories = [one.story for one in told if not (one.story.is_removed and gone.cover(one.repository.root))]
    return GitStory(tuple(story for story in stories if _says_something(story))), told


def _staying(paths: Sequence[str]) -> list[str]:
    """Say which settings stay on the branch, since their repository lies outside of the workspace."""
    named = [shown(path) for path in paths if not path.startswith(f"{ROOT}/worktrees/")]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    listed = ", ".join(named[:_MOST_NAMED])
    return (
        [f"{listed}{more}: stays on the branch, the repository lies outside of the workspace"]
        if named
        else []
    )


def _settings(
    changes: Sequence[Change], why: Callable[[Change], tuple[str, ...]], around: Surroundings
) -> tuple[SettingStory, ...]:
    """Tell settings one by one; a git directory that the branch made inside (a worktree's) is one thing."""
    told: dict[str, SettingStory] = {}
    for change in changes:
        place = around.git_place(change.path)
        made = place.root if place is not None and place.is_new else None
        kind = "created" if change.base is None or made else "deleted" if change.new is None else "modified"
        path = made or change.path
        if path not in told:
            told[path] = SettingStory(path=shown(path), change=kind, reasons=why(change))
    return tuple(told.values())


def _says_something(story: RepositoryStory) -> bool:
    parts = (story.is_new, story.is_removed, story.head, story.refs, story.worktrees, story.settings)
    return any(parts) or bool(story.troubles)


def _told(
    repository: Repository, settings: tuple[SettingStory, ...], place: Path, landed: Mapping[str, str]
) -> Told:
    path = shown(repository.root)
    if repository.is_new:
        return Told(repository, RepositoryStory(path=path, is_new=True))
    if repository.is_removed:
        return Told(repository, RepositoryStory(path=path, is_removed=True))
    found = repository.refs().find()
    troubles = list(found.troubles)
    refs: list[RefStory] = [
        RefStory(ref=move.name, change="deleted", old=move.old) for move in found.moves if move.new is None
    ]
    moves: list[RefMove] = []
    wanted = [move for move in found.moves if move.new is not None]
    if wanted:
        try:
            with Quarantine(repository, place, MOST_BYTES) as quarantine:
                refs += _ref_stories(quarantine, wanted, found, landed, moves, troubles)
        except (GitFailed, OSError) as error:
            troubles.append(f"its commits cannot be looked at: {reason_of(error, repository)}")
            refs += [_plain(move, landed) for move in wanted]
    head = found.head if found.head[0] != found.head[1] else None
    story = RepositoryStory(
        path=path, head=head, refs=tuple(refs), worktrees=tuple(found.worktrees), settings=settings,
        troubles=tuple(troubles),
    )  # fmt: skip
    return Told(repository, story, found, tuple(moves))


def _plain(move: RefMove, landed: Mapping[str, str]) -> RefStory:
    change: RefChange = "created" if move.old is None else "moved"
    is_landed = landed.get(move.name) == move.new
    return RefStory(ref=move.name, change=change, old=move.old, new=move.new, landed=is_landed)


def _ref_stories(
    quarantine: Quarantine,
    wanted: Sequence[RefMove],
    found: RefsFound,
    landed: Mapping[str, str],
    moves: list[RefMove],
    troubles: list[str],
) -> list[RefStory]:
    ids = {move.new for move in wanted if move.new is not None}
    missing = quarantine.missing(ids)
    stories: list[RefStory] = []
    alike: dict[tuple[str | None, str | None], RefStory] = {}  # tags and branches often stand on one commit
    for move in wanted:
        assert move.new is not None, "chosen so"
        if move.new in missing:
            troubles.append(f"{move.name} points to {move.new[:12]}, which is not there")
            continue
        moves.append(move)
        plain = _plain(move, landed)
        known = alike.get((move.old, move.new))
        if known is not None and not move.name.startswith("stash/"):
            stories.append(msgspec.structs.replace(known, ref=move.name, landed=plain.landed))
            continue
        if len(alike) >= MOST_TOLD:
            stories.append(plain)
            continue
        try:
            stories.append(_with_commits(quarantine, plain, found.begins))
            alike[move.old, move.new] = stories[-1]
        except GitFailed as error:
            troubles.append(f"{move.name}: {reason_of(error, quarantine.repository)}")
            moves.remove(move)
            stories.append(plain)
    return stories


def _with_commits(quarantine: Quarantine, plain: RefStory, begins: Collection[str]) -> RefStory:
    new = plain.new or ""
    without = {*begins, *(quarantine.known() if plain.old is None else ())} - ({new} & set(begins))
    count, rows = quarantine.commits(new, without)
    if plain.ref.startswith("stash/"):
        count, rows = 1, rows[:1]
    change = plain.change
    if (
        plain.old is not None
        and not quarantine.missing([plain.old])
        and not quarantine.is_after(plain.old, new)
    ):
        change = "rewritten"
    return RefStory(
        ref=plain.ref, change=change, old=plain.old, new=new, commits=count,
        subjects=tuple(Commit(*row) for row in rows), landed=plain.landed,
    )  # fmt: skip
