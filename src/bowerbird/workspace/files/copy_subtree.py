"""Copying a part of the merged view into one staged tree, to be switched in at once.

Here: making the tree in `work/`. Not here: switching it in (`Stack.put_tree`).
"""

import os
from pathlib import Path

from bowerbird.core.errors import WorkspaceError
from bowerbird.workspace.tree.nodes import Entry
from bowerbird.workspace.tree.open_layer import discard
from bowerbird.workspace.tree.paths import shown_path
from bowerbird.workspace.tree.stack import Stack


def stage_tree(stack: Stack, path: str) -> Path:
    """Copy what stands at `path`, directories with their content, into `work/`.

    Special files are left out. The caller switches the result in or discards it.
    """
    staged = stack.open_layer.stage_name()
    directories: list[tuple[Path, int]] = []
    try:
        for inner in (path, *stack.subtree(path)):
            below = stack.take(inner)  # what is copied is what the move will be compared with
            if below is None:
                continue  # its user took it away meanwhile
            _copy(stack, inner, below, staged / inner[len(path) + 1 :], directories)
        # Permissions last and from the inside out: a directory may forbid writing.
        for made, mode in reversed(directories):
            made.chmod(mode)
    except BaseException:
        discard(staged)
        raise
    return staged


def _copy(stack: Stack, path: str, entry: Entry, to: Path, directories: list[tuple[Path, int]]) -> None:
    if entry.kind == "dir":
        to.mkdir(mode=0o700)
        directories.append((to, entry.mode))
    elif entry.kind == "symlink":
        to.symlink_to(entry.target or "")
    elif entry.kind == "file":
        try:
            fd = stack.open(path, entry)
        except PermissionError as error:
            raise WorkspaceError(
                f"permission denied: {shown_path(path)} cannot be read and so not moved; leave it where "
                "it is, or ask the user to change its permissions",
                path,
            ) from error
        try:
            stack.open_layer.stage_file(fd, entry.mode, mtime_ns=entry.mtime_ns).rename(to)
        finally:
            os.close(fd)
