"""Directories that Bowerbird makes for itself: its data, and a workspace of its own (law 2, D-15, D-16).

Here: making them, whether a workspace is its own, and whether Bowerbird made it. Not here: what is written
there.
"""

import os
from pathlib import Path

from bowerbird.config import Loaded
from bowerbird.core.errors import StoreError
from bowerbird.core.text_paths import is_utf_8
from bowerbird.store.unfinished import refuse_unfinished

_MADE = "made-workspaces"  # in the data directory: one path a line


def make_data_dir(path: str) -> Path:
    """Return the data directory, made private (0700) when it was missing.

    Raises:
        StoreError: it cannot be made or entered, its path is not UTF-8, or a restore into it was killed; the
            message says what to do.
    """
    directory = Path(path)
    if not is_utf_8(directory):
        raise StoreError(
            f"the path of the data directory {directory} is not UTF-8, as records need it; choose another "
            "with --data-dir, agent.data_dir or Agent(data_dir=…)"
        )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the data directory {directory} cannot be made: {error.strerror}; "
            "choose another with --data-dir, agent.data_dir or Agent(data_dir=…)"
        ) from error
    refuse_unfinished(directory)
    return directory


def own_workspace(loaded: Loaded) -> Path | None:
    """Return the directory that settings give to Bowerbird for itself, None where it serves somebody's.

    A directory that was only named on the command line, or in which the server was started, is a project:
    nothing appears in it but by a landing.
    """
    leaf = loaded.leaves.get(("agent", "workspace"))
    if leaf is not None and leaf.origin.kind in ("default", "flag"):
        return None
    return Path(loaded.settings.agent.workspace)


def make_workspace(path: Path, data_dir: Path) -> None:
    """Make the server's workspace if it is missing, and note that it was Bowerbird who did. Blocks."""
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        path.mkdir(exist_ok=True)  # raises for a file
        return
    with (data_dir / _MADE).open("ab") as file:
        file.write(os.fsencode(os.path.realpath(path)) + b"\n")


def is_made_by_us(path: Path, data_dir: Path) -> bool:
    """Tell whether Bowerbird made a directory for itself: only there does it keep memory. Blocks."""
    try:
        made = (data_dir / _MADE).read_bytes()
    except OSError:
        return False
    return os.fsencode(os.path.realpath(path)) in made.split(b"\n")
