"""Moving refs and the index of the user's repository, by compare and swap (GI-3, GI-5, GI-6).

Here: one move that can be made twice, refreshing the index. Not here: which refs move (`arrival.py`).

Nothing here takes a commit out of reach: a ref goes only from the value that was expected, with a line in its
log, and a ref that a landing made goes again only while its log says nothing else.
"""

import os
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bowerbird.workspace.git.landed_history import LandedHistory, LandedRef, read_history, write_history
from bowerbird.workspace.git.landed_refs import LandedRefs
from bowerbird.workspace.git.repository import common_of, located
from bowerbird.workspace.git.running import Git, GitFailed

LOCK_WAIT_S = 2.0
_MOST_NAMED = 500
_NOTHING = "0" * 40
_LEFT_OUT = "git's index was not refreshed"


def settle_history(folder: Path, branch_directory: Path, top: Path) -> None:
    """Make the moves of a landing or an undo that are not made yet, and note what became of each.

    Args:
        folder: the landing's. branch_directory: of its branch. top: the workspace.
    """
    found = read_history(folder)
    if not found:
        return
    kept = branch_directory.parents[1]
    done = tuple(_settled(one, top, kept) for one in found)
    if done != found:
        write_history(folder, done)
    landed = LandedRefs(branch_directory)
    for one in done:
        kept = {ref.ref: [ref.id, ref.made_from] for ref in one.refs if ref.kept_as}
        landed.add(one.repository, {ref: [each for each in ids if each] for ref, ids in kept.items()})


def _settled(one: LandedHistory, top: Path, kept: Path) -> LandedHistory:
    if not any(ref.state == "moving" for ref in one.refs):
        return one
    git = Git(*located(top, one.repository, kept))
    refs = tuple(moved(git, ref) if ref.state == "moving" else ref for ref in one.refs)
    return msgspec.structs.replace(one, refs=refs)


def moved(git: Git, wanted: LandedRef) -> LandedRef:
    """Move one ref of the user's; may be done twice."""
    try:
        why = _move(git, wanted)
    except GitFailed as error:
        why = str(error)
    return msgspec.structs.replace(wanted, state="stays" if why else "moved", said=why)


def _move(git: Git, wanted: LandedRef) -> str:
    """Return why it stays; "" when it moved."""
    now = value_of(git, wanted.ref)
    if now not in (wanted.old, wanted.id):
        return "it has moved on in your repository"
    index = wanted.checked_out and head_of(git) == wanted.ref
    if index and not wait_for_index(git.git_dir):
        return "another git holds index.lock"
    old, new = (side or _empty_tree(git) if index else "" for side in (wanted.old, wanted.id))
    if index:
        git.run("read-tree", "-i", "-m", old, new)
    if now == wanted.old:
        try:
            _update(git, wanted)
        except GitFailed:
            if index:
                git.run("read-tree", "-i", "-m", new, old)
            raise
    if index:
        with suppress(GitFailed):  # it has moved; git finds out by itself, only later
            paths = git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
            refresh(git, [os.fsdecode(path) for path in paths.split(b"\0") if path])
    return ""


def _empty_tree(git: Git) -> str:
    """Return what stands for no commit: a repository's first one moves its branch from there."""
    return git.run("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()


def _update(git: Git, wanted: LandedRef) -> None:
    if wanted.id is None:
        log = common_of(git.git_dir) / "logs" / wanted.ref
        if log.is_file() and log.read_bytes().count(b"\n") > 1:
            raise GitFailed("you have worked on it since")
        git.run("update-ref", "-d", wanted.ref, str(wanted.old))
        return
    message = f"bowerbird: fast-forward to {wanted.kept_as}" if wanted.kept_as else "bowerbird: undo"
    git.run("update-ref", "--create-reflog", "-m", message, wanted.ref, wanted.id, wanted.old or _NOTHING)


def value_of(git: Git, ref: str) -> str | None:
    """Return what a ref points to, None when there is none."""
    try:
        return git.run("rev-parse", "--verify", "-q", ref).decode().strip() or None
    except GitFailed:
        return None


def head_of(git: Git) -> str | None:
    """Return the branch that is checked out, None when HEAD is detached."""
    try:
        return git.run("symbolic-ref", "-q", "HEAD").decode().strip() or None
    except GitFailed:
        return None


def wait_for_index(git_dir: Path) -> bool:
    """Wait until nobody holds the index, for 2 s at most; returns whether it is free."""
    deadline = time.monotonic() + LOCK_WAIT_S
    while os.path.lexists(git_dir / "index.lock"):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def refresh(git: Git, paths: Collection[str]) -> str:
    """Let the index know files again whose content it has, by their times; never adds content.

    Where the repository has filters of its own nothing is done: comparing would run them.

    Returns:
        Why it was left out, "" when it was not.
    """
    if not paths or not (git.git_dir / "index").is_file():
        return ""
    tracked = {os.fsdecode(name) for name in git.run("ls-files", "-z").split(b"\0") if name}
    named = [os.fsencode(path) for path in paths if path in tracked]
    if not named:
        return ""
    if not wait_for_index(git.git_dir):
        return f"{_LEFT_OUT}: another git holds index.lock"
    if git.says("config", "--get-regexp", r"^filter\..*\.(clean|process)$"):
        return f"{_LEFT_OUT}: this repository has filters of its own, and comparing would run them"
    if len(named) <= _MOST_NAMED:
        words = ("add", "--refresh", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
        with suppress(GitFailed):  # an older git, which does not know the option: then all of it
            git.run(*words, stdin=b"\0".join(named))
            return ""
    git.says("update-index", "-q", "--refresh")
    return ""


def refresh_index(top: Path, paths: Iterable[bytes]) -> str:
    """Refresh the index of the repository that a directory belongs to; returns why it was left out."""
    try:
        found = _repository_above(top)
        if found is None:
            return ""
        work_tree, git_dir = found
        below = os.path.relpath(top, work_tree)
        names: Sequence[str] = [os.path.normpath(os.path.join(below, os.fsdecode(path))) for path in paths]
        return refresh(Git(git_dir, work_tree), names)
    except (GitFailed, OSError) as error:  # it has landed; git finds out by itself, only later
        return f"{_LEFT_OUT}: {error}"


def _repository_above(top: Path) -> tuple[Path, Path] | None:
    for place in (top, *top.parents):
        there = place / ".git"
        if there.is_dir():
            return place, there
        if there.is_file():
            text = there.read_text("utf-8", "replace").strip()
            target = text.removeprefix("gitdir: ") if text.startswith("gitdir: ") else ""
            git_dir = (place / target).resolve()
            return (place, git_dir) if target and git_dir.is_dir() else None
    return None
