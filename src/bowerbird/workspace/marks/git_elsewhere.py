"""Where a workspace's repository lies that is not in the workspace: worktrees, submodules, packages (GI-10).

Anybody can write a `.git` file, and it must not open any other place: a git directory counts only where it
names the workspace itself, a repository above only where it tracks files in it.

Here: finding it, without running git. Not here: what branches are shown of it (`git/shown_repository.py`).
"""

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import msgspec

ROOT = "/.git"
"""Where it stands on a branch."""
_MODULES = "modules"
_MOST_SUBMODULES = 1_000
_LONGEST_POINTER = 4096
_LONGEST_CONFIG = 256 * 1024


class Elsewhere(msgspec.Struct, frozen=True):
    """A repository outside of the workspace.

    Attributes:
        git_dir: has HEAD and the index. common: has objects and refs; another directory for linked worktrees.
        work_tree: the top of its files. prefix: of the workspace below that, "" or `libs/pkg`.
        root: the virtual path of its git directory on a branch.
        place: of a submodule the virtual path of its files, "" for the workspace's own repository.
    """

    git_dir: Path
    common: Path
    work_tree: Path
    prefix: str = ""
    root: str = ROOT
    place: str = ""

    def virtual(self, path: str) -> str | None:
        """Return the virtual path of a tracked path; None for one outside of the workspace."""
        if not self.prefix:
            return f"{self.place}/{path}"
        return path[len(self.prefix) :] if path.startswith(f"{self.prefix}/") else None


def git_elsewhere(workspace: Path | None, kept: Path) -> Elsewhere | None:
    """Return the repository that a workspace belongs to and that lies outside of it, None for none. Blocks.

    Args:
        kept: nothing in this directory is shown, that is, the data directory.
    """
    found = _look(workspace, kept) if workspace is not None else None
    return found if isinstance(found, Elsewhere) else None


def submodules_elsewhere(where: Elsewhere, workspace: Path, kept: Path) -> tuple[Elsewhere, ...]:
    """Return the submodules in the workspace of a repository outside of it; at most 1,000. Blocks.

    As with every pointer, one counts only where its git directory and its files name each other.
    """
    found: list[Elsewhere] = []
    workspace = workspace.resolve()
    todo = [where.git_dir / _MODULES]
    while todo and len(found) < _MOST_SUBMODULES:
        here = todo.pop()
        with suppress(OSError):  # one that may not be looked into is shown by nobody
            if here.is_symlink() or not here.is_dir():
                continue
            if not (here / "HEAD").is_file():  # names of submodules may have slashes
                todo += here.iterdir()
                continue
            todo.append(here / _MODULES)
            one = _submodule(where, here, workspace, kept)
            found += [one] if one is not None else []
    return tuple(sorted(found, key=lambda each: each.root))


def _submodule(where: Elsewhere, here: Path, workspace: Path, kept: Path) -> Elsewhere | None:
    files = core_worktree(here)
    if files is None or files == workspace or not files.is_relative_to(workspace):
        return None
    if pointer(files / ".git", "gitdir: ") != here.resolve():
        return None
    root = f"{ROOT}/{here.relative_to(where.git_dir).as_posix()}"
    place = f"/{files.relative_to(workspace).as_posix()}"
    one = _usable(Elsewhere(here, here, files, root=root, place=place), kept)
    return one if isinstance(one, Elsewhere) else None


class _Unrelated(str):
    """Why a repository is not shown that has nothing of the workspace."""

    __slots__ = ()


def not_shown(workspace: Path | None, kept: Path, *, asked: bool = True) -> str:
    """Return what of the workspace's repository branches are not shown and why, for people. Blocks.

    Args:
        asked: a command asked for Git; else a repository that has nothing of the workspace is not mentioned.
    """
    found = _look(workspace, kept) if workspace is not None else None
    if isinstance(found, _Unrelated) and not asked:
        return ""
    if isinstance(found, Elsewhere):
        return (
            f"the workspace is {found.prefix} of the repository at {found.work_tree}: commands are shown "
            "all of its history, and no file beside the workspace"
            if found.prefix
            else ""
        )
    return found or ""


def _look(workspace: Path, kept: Path) -> Elsewhere | str | None:
    own = workspace / ".git"
    if own.is_dir() and not own.is_symlink():
        return None
    if os.path.lexists(own):
        return _pointed_at(workspace, kept)
    top = next((path for path in workspace.parents if os.path.lexists(path / ".git")), None)
    return None if top is None else _above(workspace, top, kept)


def _pointed_at(top: Path, kept: Path) -> Elsewhere | str | None:
    own = pointer(top / ".git", "gitdir: ")
    if own is None:
        return f"{top / '.git'} names no git directory: Git does not work in the sandbox"
    if own.is_relative_to(top):
        return None
    common = pointer(own / "commondir", "")
    if common is None:
        common, names_it = own, core_worktree(own) == top
    else:
        names_it = own.parent == common / "worktrees" and pointer(own / "gitdir", "") == top / ".git"
    if not names_it:
        return (
            f"{top / '.git'} names the git directory {own}, which does not name this directory, so it is "
            "not shown and Git does not work in the sandbox; if it is yours, "
            f"`git --git-dir={own} config core.worktree {top}` shows it to new sessions"
        )
    return _usable(Elsewhere(own, common, top), kept)


def _above(workspace: Path, top: Path, kept: Path) -> Elsewhere | str:
    """Return the repository that tracks a package below its top; none of a whole home."""
    own = top / ".git"
    start = f"Git works in sessions that are started in {top}"
    if own.is_symlink() or Path.home().is_relative_to(top):
        return f"the repository at {top} lies above the workspace, and commands are not shown it; {start}"
    found = Elsewhere(own, own, top) if own.is_dir() else _pointed_at(top, kept)
    if not isinstance(found, Elsewhere):
        return found or f"the repository at {top} lies above the workspace, and commands are not shown it"
    if own.is_dir() and core_worktree(own) not in (None, top):
        return f"the repository at {top} has its files elsewhere, and commands are not shown it"
    prefix = workspace.relative_to(top).as_posix()
    if not _tracks(found.git_dir / "index", prefix):
        return _Unrelated(
            f"the repository at {top} lies above the workspace and tracks nothing in it: "
            f"commands are not shown it; {start}"
        )
    return _usable(Elsewhere(found.git_dir, found.common, top, prefix), kept)


def _usable(found: Elsewhere, kept: Path) -> Elsewhere | str:
    objects = found.common / "objects"
    if found.common.is_relative_to(kept) or objects.is_symlink() or not objects.is_dir():
        return f"the repository at {found.common} is not shown: it is Bowerbird's own, or no repository"
    if (found.common / "reftable").is_dir():
        return f"the repository at {found.common} keeps its refs as reftables, which are not shown yet"
    return found


def _tracks(index: Path, prefix: str) -> bool:
    try:
        seen = index.stat()
    except OSError:
        return False
    return _tracks_as_of(str(index), prefix, (seen.st_ino, seen.st_mtime_ns, seen.st_size))


@lru_cache(maxsize=64)
def _tracks_as_of(index: str, prefix: str, sign: tuple[int, ...]) -> bool:
    import pygit2  # costs 30 ms, and most workspaces do not ask

    del sign
    try:
        with Path(index).open("rb") as file:
            if file.read(4) != b"DIRC":
                return False
        names: list[str] = [entry.path for entry in cast("Any", pygit2.Index(index))]
        return any(name.startswith(f"{prefix}/") for name in names)
    except (pygit2.GitError, OSError):
        return False  # damaged, or not ours to read


def core_worktree(git_dir: Path) -> Path | None:
    """Return the top of the files that a git directory's own configuration names, None for none."""
    import pygit2

    try:
        file = git_dir / "config"
        if file.is_symlink() or file.stat().st_size > _LONGEST_CONFIG:
            return None
        named = pygit2.Config(str(file))["core.worktree"]
        return Path(os.path.realpath(git_dir / str(named)))
    except (OSError, KeyError, pygit2.GitError):
        return None


def pointer(file: Path, before: str) -> Path | None:
    """Return the path in a small file, None when there is none."""
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > _LONGEST_POINTER:
            return None
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not text.startswith(before) or len(text) == len(before):
        return None
    return Path(os.path.realpath(file.parent / text[len(before) :]))
