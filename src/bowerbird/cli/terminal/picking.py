"""Which paths of a branch a command means (UI-43).

Here: words as paths from the workspace's top. Not here: which session (`client/`).
"""

from collections.abc import Sequence
from pathlib import Path

from bowerbird.cli.terminal.exits import USAGE, CliExit


def branch_paths(paths: Sequence[str], workspace: Path | None) -> list[str]:
    """Return paths as a branch knows them: relative ones start in the current directory.

    Raises:
        CliExit: a path lies outside the workspace.
    """
    if workspace is None:
        return [path.lstrip("/") for path in paths]
    here = Path.cwd()
    start = here if here.is_relative_to(workspace) else workspace
    result: list[str] = []
    for path in paths:
        absolute = Path(path) if path.startswith("/") else start / path
        normal = Path(*[part for part in absolute.parts if part != "."])
        if not normal.is_relative_to(workspace):
            raise CliExit(USAGE, f"{path} is not in {workspace}")
        result.append(normal.relative_to(workspace).as_posix())
    return ["" if path == "." else path for path in result]
