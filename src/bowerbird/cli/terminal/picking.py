"""Which paths of a branch a command means (UI-43).

Here: words as paths from the workspace's top. Not here: which session (`client/`).
"""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from bowerbird.cli.terminal.exits import USAGE, CliExit


def branch_paths(paths: Sequence[str], workspace: Path | None) -> list[str]:
    """Return paths as a branch knows them, none for all of it: relative ones start in the current directory.

    A path from `/` that is none of this machine starts at the workspace's top, as in `--json`.

    Args:
        workspace: None for one of another machine: paths start at its top.

    Raises:
        CliExit: a path lies outside the workspace.
    """
    if workspace is None:
        return _whole([_from_top(path) for path in paths])
    try:
        start = Path.cwd()
    except FileNotFoundError:  # it was removed: names are of the workspace
        start = workspace
    start = start if start.is_relative_to(workspace) else workspace
    result: list[str] = []
    for path in paths:
        normal = Path(os.path.normpath(start / path))
        if path.startswith("/") and not normal.is_relative_to(workspace) and not os.path.lexists(normal):
            result.append(_from_top(path))  # as `--json` and the pages name it
            continue
        if not normal.is_relative_to(workspace):
            raise CliExit(USAGE, f"{path} is not in {workspace}")
        result.append(normal.relative_to(workspace).as_posix())
    return _whole(result)


def _from_top(path: str) -> str:
    normal = os.path.normpath(path.lstrip("/") or ".")
    if PurePosixPath(normal).parts[:1] == ("..",):
        raise CliExit(USAGE, f"{path} leads outside the session's directory")
    return normal


def _whole(paths: list[str]) -> list[str]:
    """Return no paths, which is all, where one of them is the top."""
    return [] if "." in paths else paths
