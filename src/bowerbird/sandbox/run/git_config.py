"""What commands see of the user's Git configuration: values about content (GI-12).

Commands get it as their Git's system configuration, the weakest of all: a repository's own values and those
that a command sets are stronger, as outside. Credentials, helpers, programs, hooks, URLs and includes stay
outside.

Here: which of the user's, writing them. Not here: a repository's own (`workspace/git/shown_values.py`),
mounting (`profile`).
"""

import os
from pathlib import Path

from bowerbird.core.atomic import replace_file
from bowerbird.workspace.git.shown_values import Rows, about_content, config_text, config_words, pair_of

_MOST_IGNORED = 1 << 20


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


def _of_user(workspace: Path) -> tuple[Rows, bytes]:
    listed = config_words(["--includes", "--null", "--show-scope", "--list"], workspace)
    rows = [
        pair_of(row)
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
