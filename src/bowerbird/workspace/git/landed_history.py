"""What a landing did in the user's repositories, as its folder keeps it (GI-3, GI-5).

Here: frozen values and their file `history.json`, written before any ref of the user's moves. Not here:
moving refs (`moving.py`), making them (`arrival.py`).
"""

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from bowerbird.core.atomic import replace_file
from bowerbird.core.forms import decode

Commits = Literal["fetch", "fast_forward", "never"]
MOST_BYTES = 1024**3
State = Literal["arrived", "moving", "moved", "stays"]
_NAME = "history.json"


class HistoryRules(msgspec.Struct, frozen=True):
    """What landings do with commits, from settings.

    Attributes:
        land: `fetch`, `fast_forward` or `never`, where nobody says otherwise (`git.land`).
        most_bytes: of new objects that one landing brings (`git.max_bytes`).
        resign: where the user signs commits, those of the agent are made again, signed (`git.resign`).
        agent_identity: `Name <address>` that the agent commits under, "" = the user's (`git.agent_identity`).
    """

    land: Commits = "fetch"
    most_bytes: int = MOST_BYTES
    resign: bool = True
    agent_identity: str = ""


class LandedRef(msgspec.Struct, frozen=True):
    """A ref of the branch that was brought into the user's repository.

    Attributes:
        ref: its name on the branch. id: the object; None where a ref goes (undo of one that was made).
        kept_as: the ref of ours that keeps it, `refs/bowerbird/SESSION/heads/main`.
        state: `arrived` = under `kept_as` only; `moving` = the user's ref of that name is to go from `old` to
            `id`; `moved` = it did; `stays` = it did not, `said` tells why.
        checked_out: it is what the user has checked out: the index follows.
        base: where it began, for the commands that bring it in.
        made_from: the branch's own object, where `id` is a signed one that took its place.
    """

    ref: str
    id: str | None
    kept_as: str = ""
    state: State = "arrived"
    old: str | None = None
    checked_out: bool = False
    said: str = ""
    base: str | None = None
    made_from: str | None = None


class LandedCommit(msgspec.Struct, frozen=True):
    """The commit that a landing was asked to make of what landed.

    Attributes:
        branch: on which. id: None where none was made; `said` tells why.
        notes: what is not in it, and which rules of the user's did not apply.
    """

    branch: str
    id: str | None = None
    subject: str = ""
    said: str = ""
    notes: tuple[str, ...] = ()


class LandedHistory(msgspec.Struct, frozen=True):
    """What landed in one repository.

    Attributes:
        repository: virtual path of its git directory.
        troubles: what could not be brought in, and why: the files landed all the same.
        notes: what else is to be said: that the index was not refreshed, that hard links were split.
        commit: what became of the commit that was asked for, None where none was.
        place: of a submodule of a repository outside of the workspace, the virtual path of its files.
    """

    repository: str
    refs: tuple[LandedRef, ...] = ()
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    commit: LandedCommit | None = None
    place: str = ""

    def to_data(self) -> dict[str, Any]:
        """Return plain data, with the commands that bring in what stands beside the user's refs."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        for row, ref in zip(data["refs"], self.refs, strict=True):
            is_beside = ref.state in ("arrived", "stays") and bool(ref.kept_as)
            where = f"{self.place}/.git" if self.place else self.repository
            row["commands"] = commands(ref, where) if is_beside else []
        return data


def commands(ref: LandedRef, repository: str = "/.git") -> list[str]:
    """Return the three ways to bring in a ref that was left beside the user's own, typed in the workspace.

    >>> commands(LandedRef("refs/heads/main", "1" * 40, "refs/bowerbird/s/heads/main", base="0" * 40))[1]
    'git cherry-pick 000000000000..refs/bowerbird/s/heads/main'
    >>> commands(LandedRef("refs/heads/main", "1" * 40, "refs/bowerbird/s/heads/x"), "/.git/modules/sub")[0]
    'git --git-dir=.git/modules/sub merge refs/bowerbird/s/heads/x'
    """
    git, kept = _git_in(repository), shlex.quote(ref.kept_as)  # git allows `;` and `$` in names
    if ref.ref.startswith("stash/"):
        return [f"{git} stash apply {kept}"]
    if not ref.ref.startswith(("refs/heads/", "HEAD")):
        return []
    picked = f"{ref.base[:12]}..{kept}" if ref.base else kept
    return [f"{git} merge {kept}", f"{git} cherry-pick {picked}", f"{git} rebase {kept}"]


def _git_in(repository: str) -> str:
    """Return git's name with what leads it to a repository that is not the workspace's own."""
    place = repository.strip("/")
    if place == ".git":
        return "git"
    if place.endswith("/.git"):
        return f"git -C {shlex.quote(place.removesuffix('/.git'))}"
    return f"git --git-dir={shlex.quote(place)}"  # of a submodule: it knows its working tree


def read_history(folder: Path) -> tuple[LandedHistory, ...]:
    """Return what a landing did; nothing where it did nothing or its file cannot be read."""
    try:
        return decode((folder / _NAME).read_bytes(), tuple[LandedHistory, ...])
    except (OSError, msgspec.MsgspecError):
        return ()


def write_history(folder: Path, found: tuple[LandedHistory, ...]) -> None:
    """Keep it, on disk when this returns."""
    replace_file(folder / _NAME, msgspec.json.encode(found))


def add_note(folder: Path, note: str) -> None:
    """Add to what a landing's folder says a sentence for people; "" = none."""
    if not note:
        return
    with suppress(OSError):  # it has landed: a full disk takes the note, and must not take the word for it
        found = read_history(folder) or (LandedHistory("/.git"),)
        first = msgspec.structs.replace(found[0], notes=(*found[0].notes, note))
        write_history(folder, (first, *found[1:]))


def note_commit(folder: Path, made: LandedCommit) -> None:
    """Add to what a landing's folder says what became of its commit."""
    with suppress(OSError):  # as above: it has landed
        found = read_history(folder) or (LandedHistory("/.git"),)
        write_history(folder, (msgspec.structs.replace(found[0], commit=made), *found[1:]))


def reversed_history(found: tuple[LandedHistory, ...]) -> tuple[LandedHistory, ...]:
    """Return what takes the moves of a landing back; what only arrived stays where it is."""
    undone = [
        LandedHistory(
            one.repository,
            tuple(
                msgspec.structs.replace(ref, id=ref.old, old=ref.id, state="moving", kept_as="")
                for ref in one.refs
                if ref.state == "moved"
            ),
        )
        for one in found
    ]
    return tuple(one for one in undone if one.refs)
