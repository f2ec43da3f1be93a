"""What commands see of the user's Git configuration: values about content (GI-12).

Commands get it as their Git's system configuration, the weakest of all: a repository's own values and those
that a command sets are stronger, as outside. Credentials, helpers, programs, hooks, URLs and includes stay
outside.

Here: which values, reading and writing them. Not here: repositories (`git_shown`), mounting (`profile`).
"""

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from bowerbird.core.atomic import replace_file

_LOOK_S = 10.0
_MOST_IGNORED = 1 << 20
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
    r"|branch\..+\.(remote|merge|rebase)"
)
# Programs, and files that are not shown.
_NOT_CONTENT = frozenset(
    ("diff.external", "diff.tool", "diff.guitool", "diff.orderfile", "merge.tool", "merge.guitool")
)
_SECRET_ALIAS = re.compile(r"^\s*!|https?\.|extraheader|credential|token|passw|secret|command", re.IGNORECASE)

Rows = list[tuple[str, str]]


def write_git_config(directory: Path, shown_at: str, workspace: Path | None) -> None:
    """Write `config` and `ignore`, what commands see of the user's configuration, into a directory. Blocks.

    Args:
        shown_at: the directory's path for commands. workspace: decides conditional includes.
    """
    directory.mkdir(mode=0o700, exist_ok=True)
    rows, ignore = _of_user(workspace or Path("/"))
    if ignore:
        replace_file(directory / "ignore", ignore)
        rows.append(("core.excludesfile", f"{shown_at}/ignore"))
    text = config_text(rows)  # another server's commands may be reading it
    replace_file(directory / "config", text.encode("utf-8", "surrogateescape"))


def repository_values(file: Path) -> Rows:
    """Return the values about content of a repository's configuration; nothing where Git cannot read it."""
    listed = _listed(["--file", str(file), "--no-includes", "--null", "--list"])
    return about_content((_pair(row) for row in listed), _OF_REPOSITORY)


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


def _of_user(workspace: Path) -> tuple[Rows, bytes]:
    listed = _listed(["--includes", "--null", "--show-scope", "--list"], workspace)
    rows = [
        _pair(row)
        for scope, row in zip(listed[::2], listed[1::2], strict=False)
        if scope in ("system", "global")
    ]
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    named = dict(rows).get("core.excludesfile", str(home / "git" / "ignore"))
    return about_content(rows), _ignored(named)


def _ignored(named: str) -> bytes:
    try:
        file = Path(named).expanduser()
        return file.read_bytes() if file.is_file() and file.stat().st_size <= _MOST_IGNORED else b""
    except (OSError, RuntimeError):  # RuntimeError: somebody's home who does not exist
        return b""  # it may not be read: Git outside goes on without it, too


def _listed(words: Sequence[str], directory: Path | None = None) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "config", *words], cwd=directory, capture_output=True, timeout=_LOOK_S, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []  # no Git, or a configuration that stops Git outside, too
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def _pair(row: str) -> tuple[str, str]:
    key, line, value = row.partition("\n")
    return key, value if line else "true"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
