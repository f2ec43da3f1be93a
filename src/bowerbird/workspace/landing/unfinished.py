"""Landings that died half-way: finding them and bringing them to their end, as often as it takes (D-1, D-2).

Here: which landings of a registry never came to their end, holding what a landing holds, one try. Not here:
what finishing does to files (`apply.py`), the ways out that a person chooses (`fix.py`).
"""

import contextlib
import logging
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.errors import BranchBusy, InvalidWorkspace, WorkspaceError
from bowerbird.workspace.git.quarantine import sweep
from bowerbird.workspace.landing.landed_paths import LandedPaths
from bowerbird.workspace.registry.registry import BranchRegistry
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.real_directory import Beneath
from bowerbird.workspace.tree.stack import Stack

if TYPE_CHECKING:
    from bowerbird.workspace.landing.apply import Settle
    from bowerbird.workspace.landing.record import LandingFolder, LandingRecord

TRIES = 2  # a full table of open files is empty a moment later; what lasts longer, a later pass meets
REMOVED = ".removed-"

_log = logging.getLogger(__name__)


class Unfinished:
    """The landings of a registry's branches that a crash or an error left between their beginning and end."""

    def __init__(self, registry: BranchRegistry) -> None:
        self._registry = registry
        self._over: set[str] = set()  # ids that are known not to be pending

    def finish(self, branch: str | None, *, everywhere: bool) -> "list[LandingRecord]":
        """Finish or discard them; returns what was finished. Nothing that one meets stops another.

        What can be brought neither to its end nor back now, or cannot even be looked at, is logged, and
        tried again by the next call.
        """
        finished: list[LandingRecord] = []
        known = branch is not None
        for directory in [self._registry.directory(branch)] if known else self._directories():
            for folder in self._pending(directory, ours=known or everywhere):
                record = self._tried(folder)
                if record is not None:
                    finished.append(record)
        return finished

    def _directories(self) -> list[Path]:
        for _ in range(TRIES):
            try:
                return self._registry.directories()
            except OSError as error:
                _log.warning("unfinished landings were not looked for: %s", error)
        return []

    def _pending(self, directory: Path, *, ours: bool) -> "list[LandingFolder]":
        for _ in range(TRIES):
            try:
                return self._look(directory, ours=ours)
            except OSError as error:
                _log.warning("unfinished landings of %s were not looked for: %s", directory.name, error)
        return []

    def _look(self, directory: Path, *, ours: bool) -> "list[LandingFolder]":
        sweep(directory)
        # What has ended stays so: a landing does not read all before it again.
        fresh = [folder for folder in folders_of(directory) if folder.path.name not in self._over]
        if not fresh or not (ours or self._registry.is_ours(directory)):
            return []
        found = [folder for folder in fresh if is_pending(folder)]
        self._over |= {folder.path.name for folder in fresh if folder not in found}
        return found

    def _tried(self, folder: "LandingFolder") -> "LandingRecord | None":
        for _ in range(TRIES):
            try:
                return self._recover(folder)
            except BranchBusy:
                return None  # its process lives
            except Exception as error:  # noqa: BLE001 - reading goes on whatever one landing meets
                _log.warning("landing %s stays unfinished for now: %s", folder.path.name, error)
        return None

    def _recover(self, folder: "LandingFolder") -> "LandingRecord | None":
        with held(self._registry, folder) as (stack, tree):
            from bowerbird.workspace.landing.apply import recover

            if not presence.is_directory(folder.path) or not is_pending(folder):
                return None  # it ended while we waited for the lock
            return recover(tree, folder, settle_of(folder, stack, tree))


@contextlib.contextmanager
def held(registry: BranchRegistry, folder: "LandingFolder") -> Generator[tuple[Stack, Beneath]]:
    """Hold what a landing holds; the branch's lock comes before the workspace's, as in every landing."""
    with registry.borrowed(folder.path.parent.parent) as state, state.writing() as stack:
        from bowerbird.workspace.landing.lock import workspace_lock

        if state.workspace is None:
            raise InvalidWorkspace("the branch of this landing has no workspace")
        with Beneath(state.workspace) as tree, workspace_lock(tree, registry.data_dir):
            yield stack, tree
            state.account.forget()


def settle_of(folder: "LandingFolder", stack: Stack, tree: Beneath) -> "Settle":
    """Return what follows once the files of a landing or an undo are in place."""
    from bowerbird.workspace.landing.landing import settler, with_history

    if not folder.started:
        from bowerbird.workspace.landing.apply import settle_nothing

        return settle_nothing
    record = folder.record()
    if record.kind == "undo" and record.undoes is not None:
        from bowerbird.workspace.landing.record import LandingFolder
        from bowerbird.workspace.landing.undo import undo_settler

        settle = undo_settler(stack, LandingFolder(folder.path.parent / record.undoes), folder, tree)
    else:
        settle = settler(stack, folder, LandedPaths(stack.directory), tree)
    return with_history(settle, folder, stack, Path(record.workspace))


def folders_of(directory: Path) -> "list[LandingFolder]":
    """Return the landings of a branch directory; raises OSError when they cannot be looked through."""
    from bowerbird.workspace.landing.record import LandingFolder

    try:
        found = sorted((directory / "landings").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [LandingFolder(p) for p in found if not p.name.startswith(REMOVED) and presence.is_directory(p)]


def all_folders(registry: BranchRegistry) -> "Iterator[LandingFolder]":
    """Yield the landings of a registry's workspace; a branch that cannot be read is named and passed over."""
    for directory in registry.directories():
        for attempt in range(TRIES):
            try:
                found = folders_of(directory)
                ours = bool(found) and registry.is_ours(directory)
            except OSError as error:
                if attempt:
                    _log.warning("landings of %s cannot be listed: %s", directory.name, error)
            else:
                yield from found if ours else ()
                break


def is_pending(folder: "LandingFolder") -> bool:
    """Whether a landing never came to its end; one whose record makes no sense is left alone.

    Raises:
        OSError: it cannot be told now.
    """
    if not folder.started or presence.exists(folder.untidy):
        return True
    try:
        return folder.record().state in ("prepared", "applying")
    except WorkspaceError as error:
        if isinstance(error.__cause__, OSError) and not presence.is_absence(error.__cause__):
            raise error.__cause__ from error
        return False
