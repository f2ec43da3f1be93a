"""What commands see of a repository outside the workspace: linked worktrees and submodules (GI-11, GI-12).

The directory that a `.git` file names is shown read-only, if that directory itself names the workspace:
anybody can write such a file, and it must not open any other place. Of the repository only what history
needs is shown, with a configuration of values about content: no credentials, URLs, helpers, hooks, includes.

Here: finding and naming it. Not here: mounting (`profile`), repositories inside the workspace.
"""

from dataclasses import dataclass
from pathlib import Path

from bowerbird.sandbox.run.git_config import config_text, repository_values
from bowerbird.sandbox.run.shown_trees import is_below

_HISTORY = ("objects", "refs", "packed-refs", "HEAD", "info", "logs", "shallow")
_OWN = (*_HISTORY, "index", "ORIG_HEAD")
_LONGEST_POINTER = 4096


@dataclass(frozen=True, slots=True)
class GitShown:
    """A repository outside of the workspace.

    Attributes:
        trees: what of it is shown read-only, at its own path. config: where its configuration stands.
        masked: files in `trees` in whose place an empty one stands. text: the configuration to show.
    """

    trees: tuple[str, ...]
    config: str
    masked: tuple[str, ...]
    text: str


def git_shown(workspace: Path, kept: Path) -> GitShown | None:
    """Return what a workspace's `.git` file leads to, None when that is nothing to show. Blocks.

    Args:
        kept: nothing in this directory is shown, that is, the data directory.
    """
    own = _pointed(workspace / ".git", "gitdir: ")
    if own is None or is_below(str(own), str(workspace)):
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
