"""What commands see of a repository outside the workspace: linked worktrees and submodules (GI-11, GI-12).

The directory that a `.git` file names is shown read-only, if that directory itself names the workspace:
anybody can write such a file, and it must not open any other place. Of the repository only what history
needs is shown, with a configuration of values about content: no credentials, URLs, helpers, hooks, includes.

Here: finding and naming it. Not here: mounting (`profile`), repositories inside the workspace.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bowerbird.sandbox.run.shown_trees import is_below

_HISTORY = ("objects", "refs", "packed-refs", "HEAD", "info", "logs", "shallow")
_OWN = (*_HISTORY, "index", "ORIG_HEAD")
_LONGEST_POINTER = 4096
_LOOK_S = 10.0
_ABOUT_CONTENT = re.compile(
    r"core\.(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|abbrev"
    r"|quotepath|whitespace|commentchar|sparsecheckout|sparsecheckoutcone|worktree)"
    r"|extensions\.(objectformat|compatobjectformat|refstorage|partialclone)|user\.(name|email)"
    r"|init\.defaultbranch|branch\..+\.(remote|merge|rebase)|diff\.[^.]+|diff\..+\.(xfuncname|binary)|merge\.[^.]+"
    r"|merge\..+\.name|pull\.(rebase|ff)|rebase\.[^.]+|rerere\.enabled"
)
_RUNS_PROGRAMS = frozenset(("diff.external", "diff.tool", "diff.guitool", "merge.tool", "merge.guitool"))


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
    rows = _configuration(common / "config")
    named = dict(rows).get("core.worktree")
    if own == common and (named is None or (own / named).resolve() != workspace.resolve()):
        return None
    if is_below(str(common), str(kept)) or not (common / "objects").is_dir():
        return None
    return GitShown(
        tuple(str(path) for path in found if path.exists() and not path.is_symlink()),
        str(common / "config"),
        tuple(str(path) for path in masked if path.exists()),
        _text(rows),
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


def _configuration(file: Path) -> list[tuple[str, str]]:
    """Return the values about content; nothing where Git cannot read it."""
    words = ["git", "config", "--file", str(file), "--no-includes", "--null", "--list"]
    try:
        listed = subprocess.run(words, capture_output=True, timeout=_LOOK_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    pairs = [row.partition("\n") for row in listed.decode("utf-8", "surrogateescape").split("\0") if row]
    return [
        (key, value)
        for key, _, value in pairs
        if _ABOUT_CONTENT.fullmatch(key) and key not in _RUNS_PROGRAMS and "://" not in value
    ]


def _text(rows: list[tuple[str, str]]) -> str:
    lines: list[str] = []
    for key, value in rows:
        section, _, name = key.rpartition(".")
        first, dot, rest = section.partition(".")
        lines.append(f"[{first} {_quoted(rest)}]" if dot else f"[{first}]")
        lines.append(f"\t{name} = {_quoted(value)}")
    return "\n".join([*lines, ""])


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
