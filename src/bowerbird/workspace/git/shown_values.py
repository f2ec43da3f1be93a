"""Which values of git's configuration branches are shown: those about content (GI-12).

Credentials, helpers, programs, hooks, URLs and includes stay outside.

Here: choosing, reading and writing them. Not here: where they are shown.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from bowerbird.core.processes.host_programs import run
from bowerbird.workspace.git.running import git_program

_LOOK_S = 10.0
_CONTENT = (
    r"core\.(autocrlf|eol|safecrlf|abbrev|quotepath|whitespace|commentchar)|user\.(name|email)"
    r"|init\.defaultbranch|diff\.[^.]+|diff\..+\.(xfuncname|binary)|merge\.[^.]+|pull\.(rebase|ff)|rebase\.[^.]+"
    r"|rerere\.enabled"
)
_OF_USER = re.compile(
    rf"{_CONTENT}|user\.useconfigonly|alias\.[^.]+|apply\.whitespace|commit\.(cleanup|verbose)"
    r"|format\.pretty|log\.[^.]+|status\.[^.]+|stash\.[^.]+|(branch|tag)\.sort|fetch\.prune|column\.[^.]+"
)
_OF_REPOSITORY = re.compile(
    rf"{_CONTENT}|core\.(repositoryformatversion|filemode|symlinks|ignorecase|precomposeunicode|sparsecheckout"
    r"|sparsecheckoutcone|worktree)|extensions\.(objectformat|compatobjectformat|refstorage|partialclone)"
    r"|branch\..+\.(remote|merge|rebase)|remote\.[^/]+\.(fetch|promisor|partialclonefilter)"
)
# Programs, and files that are not shown.
_NOT_CONTENT = frozenset(
    ("diff.external", "diff.tool", "diff.guitool", "diff.orderfile", "merge.tool", "merge.guitool")
)
_SECRET_ALIAS = re.compile(r"^\s*!|https?\.|extraheader|credential|token|passw|secret|command", re.IGNORECASE)

Rows = list[tuple[str, str]]


def repository_values(file: Path) -> Rows:
    """Return the values about content of a repository's configuration; nothing where Git cannot read it."""
    if file.is_symlink():
        return []
    listed = config_words(["--file", str(file), "--no-includes", "--null", "--list"])
    return about_content((pair_of(row) for row in listed), _OF_REPOSITORY)


def about_content(rows: Iterable[tuple[str, str]], names: re.Pattern[str] = _OF_USER) -> Rows:
    """Return the values that commands may see."""
    return [
        (key, value)
        for key, value in rows
        if names.fullmatch(key)
        and key not in _NOT_CONTENT
        and "://" not in value
        and not (key.startswith("alias.") and _SECRET_ALIAS.search(value))
    ]


def config_text(rows: Rows) -> str:
    """Return values as a configuration file."""
    lines: list[str] = []
    for key, value in rows:
        section, _, name = key.rpartition(".")
        first, dot, rest = section.partition(".")
        lines.append(f"[{first} {_quoted(rest)}]" if dot else f"[{first}]")
        lines.append(f"\t{name} = {_quoted(value)}")
    return "\n".join([*lines, ""])


def config_words(words: Sequence[str], directory: Path | None = None) -> list[str]:
    """Return what `git config` prints between zero bytes; nothing where it fails."""
    program = git_program()
    if program is None:
        return []
    try:
        # To list values starts nothing that they name.
        done = run(
            [program, "config", *words], cwd=directory, env=os.environ, timeout=_LOOK_S, check=True
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []  # a configuration that stops Git outside, too
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def pair_of(row: str) -> tuple[str, str]:
    """Return key and value of one printed row."""
    key, line, value = row.partition("\n")
    return key, value if line else "true"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
