"""Branches over small real directories, for tests of the workspace and of what stands on it."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.trees import write_tree

from bowerbird.workspace.branch import Branch
from bowerbird.workspace.workspace import Workspace


@contextmanager
def branch_of(
    tmp_path: Path, files: Mapping[str, str | bytes] | None = None, **options: Any
) -> Generator[Branch]:
    """Give a branch of `tmp_path/ws` that holds `files`; the data directory is `tmp_path/data`.

    Args:
        options: of `Workspace`.
    """
    write_tree(tmp_path / "ws", files or {})
    with Workspace(tmp_path / "ws", data_dir=tmp_path / "data", **options) as workspace:
        yield workspace.branch()


async def view_of(branch: Branch) -> dict[str, tuple[str, Any]]:
    """Return everything the file tools show: path → (type, bytes or link target or mode)."""
    found: dict[str, tuple[str, Any]] = {}
    todo = ["/"]
    while todo:
        here = todo.pop()
        for row in (await branch.ls(here, limit=0))["entries"]:
            path = f"{here.rstrip('/')}/{row['name']}"
            if row["type"] == "dir":
                todo.append(path)
                found[path] = ("dir", None)
            elif row["type"] == "symlink":
                found[path] = ("symlink", row["target"])
            else:
                found[path] = (row["type"], (row["mode"], await branch.read_bytes(path)))
    return found
