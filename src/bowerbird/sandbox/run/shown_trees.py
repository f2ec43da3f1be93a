"""Which directories of the host commands are shown, without what in them is not for commands (SB-23).

A toolchain tree such as `/opt` may hold the data directory, settings files or somebody's workspace. Such a
tree is not shown whole: its entries are, each for itself, without the one that leads there. Here: that
choice. Not here: which trees there are (`profile`), how they are shown.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

_MOST_ENTRIES = 2_000
"""A directory of more entries is left out whole: each of them is a mount or a rule."""


class Shown(msgspec.Struct, frozen=True):
    """What of some trees is shown.

    Attributes:
        trees: directories and files, by their own paths.
        links: links of directories that are shown in parts, with their targets.
        notes: what is left out, and why, for people.
    """

    trees: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def is_below(path: str, top: str) -> bool:
    """Whether `path` is `top` or lies in it, by their names."""
    return path == top or path.startswith(top.rstrip("/") + "/")


def without(trees: Sequence[str], kept: Iterable[Path], workspaces: Iterable[Path] = ()) -> Shown:
    """Return `trees` without what must not be seen. Reads directories only where something is left out.

    Args:
        kept: what lies in these is never shown: the data directory, settings files.
        workspaces: trees that hold one of these are shown in parts; trees inside of one were named by people.
    """
    closed = tuple(dict.fromkeys(os.path.realpath(path) for path in kept))
    apart = tuple(dict.fromkeys([*closed, *(os.path.realpath(path) for path in workspaces)]))
    shown: list[str] = []
    links: list[tuple[str, str]] = []
    notes: list[str] = []
    for tree in trees:
        todo = [tree]
        while todo:
            path = todo.pop()
            real = os.path.realpath(path)
            if any(is_below(real, each) for each in closed) or real in apart:
                notes.append(f"{path} is not shown to commands")
                continue
            inside = [each for each in apart if is_below(each, real)]
            if not inside:
                shown.append(path)
                continue
            entries = sorted(os.listdir(path)) if os.access(path, os.R_OK | os.X_OK) else None
            if entries is None or len(entries) > _MOST_ENTRIES:
                notes.append(f"{path} is not shown to commands: {inside[0]} lies in it")
                continue
            for entry in reversed(entries):
                full = f"{path.rstrip('/')}/{entry}"
                try:
                    links.append((full, str(Path(full).readlink())))
                except OSError:  # no link; looking first would leave a moment to become one
                    todo.append(full)
    return Shown(tuple(shown), tuple(links), tuple(dict.fromkeys(notes)))


class Workspaces:
    """The workspaces that a data directory's branches belong to; each record is read once."""

    def __init__(self, data_dir: Path) -> None:
        self._branches = data_dir / "branches"
        self._known: dict[str, Path | None] = {}

    def all(self) -> tuple[Path, ...]:
        """Return them. Blocks."""
        try:
            present = os.listdir(self._branches)
        except FileNotFoundError:
            present = []
        for name in present:
            if name not in self._known:
                self._known[name] = self._read(name)
        return tuple({path for path in self._known.values() if path is not None})

    def _read(self, name: str) -> Path | None:
        try:
            row = json.loads((self._branches / name / "manifest.json").read_bytes())
            found = row.get("workspace")
        except (OSError, ValueError, AttributeError):
            return None  # it is being made, or damaged: what is open now says its workspace itself
        return Path(found) if isinstance(found, str) else None
