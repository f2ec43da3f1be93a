"""Who works on a branch's copy, and what follows when that process was killed (SB-12, SB-13).

Here: the note beside the copy while processes work on it, and taking the copy's changes into the branch. Not
here: the comparison itself (`mirror.py`).
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.workspace.history.branch_journal import Step
from bowerbird.workspace.processes.mirror import Mirror
from bowerbird.workspace.tree.stack import Stack

if TYPE_CHECKING:
    from bowerbird.workspace.processes.capture import Captured


class CopyUse:
    """The note of the process whose commands work on the copy below `directory`.

    It stands while they do; one that names another process was left by a kill, for whoever works on a branch
    has its writer's lock.
    """

    def __init__(self, directory: Path) -> None:
        self._note = directory / "in-use"

    def begin(self) -> None:
        """Say that processes of this one work on the copy from now on."""
        self._note.write_text(_this_process())

    def end(self) -> None:
        """Say that none does any more, and that all they changed is in the branch."""
        self._note.unlink(missing_ok=True)

    @property
    def was_killed(self) -> bool:
        """Whether a process that is no more left the copy in use; only for who has the writer's lock."""
        try:
            return self._note.read_text() != _this_process()
        except FileNotFoundError:
            return False


def taken_back(stack: Stack, mirror: Mirror) -> "tuple[Captured, list[Step]]":
    """Take what processes changed in the copy into the branch; return it with its lines for the journal."""
    from bowerbird.workspace.processes.capture import Captured

    mirror.take_back(stack)
    written, deleted, special = mirror.collect()
    own = stack.private_paths()
    captured = Captured(_sorted(written - own), _sorted(deleted - own), _sorted(special))
    steps = [_written_step(stack, mirror, path) for path in captured.written]
    return captured, [*steps, *(Step("delete", path) for path in captured.deleted)]


def _written_step(stack: Stack, mirror: Mirror, path: str) -> Step:
    kind, size = mirror.kind_and_size(path)
    if kind == "dir":
        return Step("mkdir", path)
    base = stack.orig.get(path)
    return Step("write", path, "create" if base is None or base.entry is None else "modify", size)


def _this_process() -> str:
    """Return the process id with its start time: ids are used again."""
    try:
        started = Path("/proc/self/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[19]
    except FileNotFoundError:  # not Linux; any other error would make this process look like another
        started = ""
    return f"{os.getpid()} {started}"


def _sorted(paths: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=os.fsencode))
