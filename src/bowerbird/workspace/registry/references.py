"""Which layers of a branch other branches stand on.

Here: reading it from the records of all branches. Not here: what is removed because nothing stands on it
(`history/layer_shelf.py`, `registry/registry.py`).
"""

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


def stood_on(branch: Path, all_branches: Iterable[Path]) -> set[int]:
    """Return the numbers of a branch's layers that others stand on.

    A branch whose record cannot be read now may stand on any of them.

    Args:
        branch: its directory. all_branches: the directories of all, those in the trash included.
    """
    found: set[int] = set()
    for directory in all_branches:
        if directory.name == branch.name:
            continue
        try:
            found |= {n for other, n in _lower_of(directory, branch.name) if other == branch.name}
        except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
            _log.warning("layers of %s are kept: %s cannot be read: %s", branch.name, directory.name, error)
            return layer_numbers(branch)
    return found


def layer_numbers(branch: Path) -> set[int]:
    """Return the numbers of all layers in a branch directory."""
    try:
        return {int(name) for name in os.listdir(branch / "layers") if name.isdecimal()}
    except FileNotFoundError:
        return set()


def _lower_of(directory: Path, branch: str) -> list[tuple[str, int]]:
    """The layers of others that a branch stands on; read only when it names `branch` at all."""
    try:
        data = (directory / "manifest.json").read_bytes()
    except FileNotFoundError:
        return []
    if branch.encode() not in data:
        return []
    rows: list[Any] = json.loads(data).get("lower", [])
    return [(str(row[0]), int(row[1])) for row in rows]
