"""What commands see of a repository outside the workspace: worktrees, submodules, packages (GI-11, GI-12).

The directory that a `.git` file names is shown read-only, if that directory itself names the workspace:
anybody can write such a file, and it must not open any other place. Of the repository only what history
needs is shown, with a configuration of values about content: no credentials, URLs, helpers, hooks, includes.

A package below the top of a repository that tracks it is shown that history, too. Files beside the package
are not shown; in the index that commands see they are marked as not checked out, so that none looks deleted.

Here: finding and naming it. Not here: mounting (`profile`), repositories inside the workspace.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bowerbird.sandbox.run.git_config import config_text, repository_values
from bowerbird.sandbox.run.shown_trees import is_below

_HISTORY = ("objects", "refs", "packed-refs", "HEAD", "info", "logs", "shallow")
_OWN = (*_HISTORY, "index", "ORIG_HEAD")
_LONGEST_POINTER = 4096
_LOOK_S = 10.0


@dataclass(frozen=True, slots=True)
class GitShown:
    """A repository outside of the workspace.

    Attributes:
        trees: what of it is shown read-only, at its own path. config: where its configuration stands.
        masked: files in `trees` in whose place an empty one stands. text: the configuration to show.
        index: where the index stands, for a package. beside: what it tracks beside it, as `-z` has it.
    """

    trees: tuple[str, ...]
    config: str
    masked: tuple[str, ...]
    text: str
    index: str | None = None
    beside: bytes = b""

    def write_index(self, file: Path) -> bool:
        """Write the index for a package's commands; False where Git cannot. Blocks."""
        assert self.index is not None
        try:
            shutil.copyfile(self.index, file)
            if self.beside:
                words = ("update-index", "-z", "--skip-worktree", "--stdin")
                _git(Path(self.index).parent.parent, words, self.beside, {"GIT_INDEX_FILE": str(file)})
        except (OSError, subprocess.SubprocessError):
            return False  # merges in progress, for one: their paths cannot be marked
        return True


def git_shown(workspace: Path, kept: Path) -> GitShown | None:
    """Return what a workspace's `.git` file leads to, None when that is nothing to show. Blocks.

    Args:
        kept: nothing in this directory is shown, that is, the data directory.
    """
    own = _pointed(workspace / ".git", "gitdir: ")
    if own is None:
        return _above(workspace, kept)
    if is_below(str(own), str(workspace)):
        return None
    common = _pointed(own / "commondir", "")
    if common is None:
        found = [own / name for name in _OWN]
        masked: list[Path] = []
        common = own
    else:
        if own.parent != common / "worktrees" or _pointed(own / "gitdir", "") != workspace / ".git":
            return None
        found = [*(common / name for name in _HISTORY), own]
        masked = [own / "config.worktree"]
    rows = repository_values(common / "config")
    named = dict(rows).get("core.worktree")
    if own == common and (named is None or (own / named).resolve() != workspace.resolve()):
        return None
    if is_below(str(common), str(kept)) or not (common / "objects").is_dir():
        return None
    return GitShown(
        tuple(str(path) for path in found if path.exists() and not path.is_symlink()),
        str(common / "config"),
        tuple(str(path) for path in masked if path.exists()),
        config_text(rows),
    )


def _above(workspace: Path, kept: Path) -> GitShown | None:
    """Return the repository that tracks a package below its top; none of a whole home."""
    if os.path.lexists(workspace / ".git"):
        return None
    top = next((path for path in workspace.parents if os.path.lexists(path / ".git")), None)
    if top is None or is_below(str(Path.home()), str(top)):
        return None
    own = top / ".git"
    if own.is_symlink() or not (own / "index").is_file() or is_below(str(own), str(kept)):
        return None
    try:
        tracked = _git(top, ("ls-files", "-z")).split(b"\0")[:-1]
    except (OSError, subprocess.SubprocessError):
        return None  # damaged, or somebody else's
    package = os.fsencode(f"{workspace.relative_to(top)}/")
    beside = [path for path in tracked if not path.startswith(package)]
    if len(beside) == len(tracked):
        return None
    rows = repository_values(own / "config")
    if "core.worktree" in dict(rows):
        return None
    shown = [own / name for name in (*_HISTORY, "ORIG_HEAD")]
    return GitShown(
        tuple(str(path) for path in shown if path.exists() and not path.is_symlink()),
        str(own / "config"),
        (),
        config_text(rows),
        str(own / "index"),
        b"".join(path + b"\0" for path in beside),
    )


def _git(top: Path, words: tuple[str, ...], given: bytes = b"", env: dict[str, str] | None = None) -> bytes:
    """Run Git in the user's repository, without hooks and watchers."""
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.splitIndex=false")
    done = subprocess.run(
        ["git", *quiet, *words], cwd=top, env={**os.environ, **(env or {})}, input=given,
        capture_output=True, timeout=_LOOK_S, check=True,
    )  # fmt: skip
    return done.stdout


def _pointed(file: Path, before: str) -> Path | None:
    """Return the path in a small file, None when there is none."""
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > _LONGEST_POINTER:
            return None
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not text.startswith(before) or len(text) == len(before):
        return None
    return Path((file.parent / text[len(before) :]).resolve())
