"""The branches of one data directory: where they lie, what stands on what, the trash.

Here: making, opening and listing branch directories, references between branches, discarding
for 7 days. Not here: what a branch can do (`branch.py`), landings (`landing/landings.py`), temporary data
directories (`tree/temporary.py`).

A branch is `branches/<id>/`. A discarded one lies in the trash by the file `discarded_at` in
it and stays where it is, so that its children keep working: they stand on its frozen layers,
named by (branch, number).
"""

import contextlib
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Collection, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from bowerbird.core.errors import InvalidWorkspace, NotFound
from bowerbird.core.ids import new_id
from bowerbird.core.timestamps import from_iso, now_iso
from bowerbird.workspace.find.searchable import SearchMemory
from bowerbird.workspace.registry.discarded import discarded_at, note_discarded, take_out
from bowerbird.workspace.registry.limits import WorkspaceLimits
from bowerbird.workspace.registry.references import stood_on
from bowerbird.workspace.registry.removal import delete_half, extra_of, remove, remove_if, remove_left
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.layers import FrozenLayer, Pile, Storage, probe_storage
from bowerbird.workspace.tree.manifest import Manifest, ManifestFile
from bowerbird.workspace.tree.temporary import remove_orphans, temporary_directory

_KIND = "b"  # of ids; whatever else lies beside branches is being made, tried or removed
TRASH_DAYS = 7

Lower = Sequence[tuple[str, int]]

_log = logging.getLogger(__name__)


class BranchInfo(msgspec.Struct, frozen=True):
    """One row of a listing.

    Attributes:
        damaged: its manifest was unreadable and rebuilt from the directories.
        discarded_at: when it went to the trash, None when it is not there.
    """

    id: str
    name: str | None
    workspace: str | None
    policy: str
    parent: str | None
    created_at: str
    damaged: bool
    discarded_at: str | None = None


class BranchRegistry:
    """Branches of one data directory, for one workspace.

    Args:
        data_dir: made if missing; None = a private temporary one, removed by `close`.
        root: the workspace, resolved; None for branches of nothing.
        limits: sizes of branches.

    Attributes:
        is_temporary: the data directory goes with `close`.
    """

    def __init__(self, data_dir: Path | None, root: Path | None, limits: WorkspaceLimits) -> None:
        self.root = root
        self.limits = limits
        self._owner: int | None = None  # of a temporary directory, until `close` removes that
        self._states: dict[str, BranchState] = {}
        self._memory = SearchMemory()
        self._guard = threading.Lock()
        self.is_temporary = data_dir is None
        if data_dir is None:
            remove_orphans(Path(tempfile.gettempdir()))
            self.data_dir, self._owner = temporary_directory()
        else:
            self.data_dir = data_dir.resolve()
        self._check_places()
        self.branches = self.data_dir / "branches"
        self.branches.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.storage: Storage = probe_storage(self.branches)

    def _check_places(self) -> None:
        root = self.root
        if root is not None and (root == self.data_dir or self.data_dir in root.parents):
            raise InvalidWorkspace(f"workdir lies inside the data directory {self.data_dir}: {root}")

    @property
    def masked(self) -> str | None:
        """The data directory as a virtual path of the workspace, None when it lies elsewhere."""
        return self._masked_in(self.root)

    def _masked_in(self, root: Path | None) -> str | None:
        if root is None or root not in self.data_dir.parents:
            return None
        return "/" + self.data_dir.relative_to(root).as_posix()

    # ------------------------------------------------------------ making and opening

    def create(
        self,
        *,
        name: str | None,
        policy: str,
        hide: tuple[str, ...],
        parent: dict[str, str] | None = None,
        lower: Lower = (),
        below: Pile | None = None,
        private: tuple[str, ...] = (),
        root: Path | None = None,
        throwaway: bool = False,
    ) -> BranchState:
        """Make a branch; costs the same for a tree of any size.

        Args:
            lower: layers of other branches that it stands on, oldest first.
            below: the same layers, already read.
            root: the parent's workspace, where it is not this registry's.
            throwaway: it goes with this process; see `remove_left`.
        """
        self._check_open()
        root = root if parent is not None else self.root
        manifest = Manifest(
            id=new_id(_KIND),
            name=name,
            workspace=str(root) if root is not None else None,
            parent=parent,
            policy=policy,
            hide=hide,
            private=private,
            created_at=now_iso(),
            extra=extra_of(lower, throwaway=throwaway),
        )
        state = BranchState.create(
            self.branches / manifest.id,
            manifest,
            workspace=root,
            masked=self._masked_in(root),
            lower=below if below is not None else Pile(),
            storage=self.storage,
            limits=self.limits,
            memory=self._memory,
        )
        with self._guard:
            self._states[state.id] = state
        if throwaway:
            state.lock.pin("is for a moment")  # until it is discarded, or the process ends
        return state

    def open(self, branch: str) -> BranchState:
        """Return the open state of a branch, shared by all handles of this registry.

        Raises:
            NotFound: there is no such branch, or it is in the trash.
            InvalidWorkspace: it belongs to another workspace that still exists.
        """
        with self._guard:
            state = self._states.get(branch)
            if state is None:
                directory = self._existing(branch)
                if directory is None or discarded_at(directory) is not None:
                    hint = "is in the trash; use restore_discarded()" if directory else "does not exist"
                    raise NotFound(f"branch {branch} {hint}")
                try:
                    state = self._states[branch] = self._open_directory(directory, check=True)
                except OSError as error:
                    if presence.is_directory(directory):
                        raise
                    raise NotFound(f"branch {branch} is gone: it was removed meanwhile") from error
            return state

    def _existing(self, branch: str) -> Path | None:
        directory = self.branches / branch
        return directory if "/" not in branch and presence.is_directory(directory) else None

    def _open_directory(self, directory: Path, *, check: bool) -> BranchState:
        manifest = ManifestFile(directory).load()
        root = Path(manifest.workspace) if manifest.workspace is not None else None
        elsewhere = root is not None and self.root is not None and root != self.root
        if check and elsewhere and presence.is_directory(str(root)):
            raise InvalidWorkspace(f"branch {manifest.id} belongs to the workspace {root}, not {self.root}")
        return BranchState(
            directory,
            workspace=root,
            masked=self._masked_in(root),
            lower=self._pile(manifest),
            storage=self.storage,
            limits=self.limits,
            memory=self._memory,
        )

    @contextlib.contextmanager
    def borrowed(self, directory: Path) -> Generator[BranchState]:
        """Give the state of a branch directory, in the trash or not, for a moment."""
        with self._guard:
            known = self._states.get(directory.name)
        if known is not None and known.directory == directory and discarded_at(directory) is None:
            yield known  # else another process discarded it, and the one that is known takes no change
            return
        state = self._open_directory(directory, check=False)
        try:
            yield state
        finally:
            state.close()

    def reopen(self, branch: str) -> BranchState:
        """Open a branch anew, after its record changed in a way that open handles cannot follow."""
        with self._guard:
            state = self._states.pop(branch, None)
        if state is not None:
            state.close()
        opened = self._open_directory(self.branches / branch, check=False)
        with self._guard:
            self._states[branch] = opened
        return opened

    def forget(self, branch: str) -> None:
        """Close a branch's state, if it is open; nobody may be working on it."""
        with self._guard:
            state = self._states.pop(branch, None)
        if state is not None:
            state.close()

    def _pile(self, manifest: Manifest) -> Pile:
        rows: list[tuple[str, int]] = [(row[0], int(row[1])) for row in manifest.extra.get("lower", ())]
        return Pile(tuple(FrozenLayer(self.directory(branch) / "layers" / str(n)) for branch, n in rows))

    def directory(self, branch: str) -> Path:
        """Return where a branch lies, in the trash or not."""
        return self.branches / branch

    # ------------------------------------------------------------ listing, references

    def infos(self, *, trashed: bool = False) -> list[BranchInfo]:
        """List this workspace's branches by age; a broken record is rebuilt, its branch marked damaged.

        One that cannot be read now is listed as damaged, too, with nothing but its id.
        """
        rows: list[BranchInfo] = []
        for directory in self.directories():
            try:
                row = self._info(directory)
            except FileNotFoundError:
                continue  # discarded or removed meanwhile
            except OSError as error:
                _log.warning("branch %s cannot be read: %s", directory.name, error)
                row = BranchInfo(directory.name, None, None, "review", None, "", damaged=True)
            if row is not None and (row.discarded_at is not None) == trashed:
                rows.append(row)
        return rows

    def _info(self, directory: Path) -> BranchInfo | None:
        """The row of a branch, None when it is another workspace's."""
        at, file = discarded_at(directory), ManifestFile(directory)
        manifest = file.load()
        if not self._is_ours(file, manifest):
            return None
        parent = manifest.parent["branch"] if manifest.parent else None
        name, policy = manifest.name, manifest.policy
        made, damaged = manifest.created_at, file.damaged
        return BranchInfo(manifest.id, name, manifest.workspace, policy, parent, made, damaged, at)

    def trashed(self) -> dict[str, str]:
        """Return the branches in the trash, of every workspace, and when they went there."""
        found = {directory.name: discarded_at(directory) for directory in self.directories()}
        return {branch: at for branch, at in found.items() if at is not None}

    def is_ours(self, directory: Path) -> bool:
        """Tell whether a branch directory belongs to this workspace."""
        file = ManifestFile(directory)
        try:
            return self._is_ours(file, file.load())
        except FileNotFoundError:
            return False  # removed meanwhile

    def _is_ours(self, file: ManifestFile, manifest: Manifest) -> bool:
        root = str(self.root) if self.root is not None else None
        return manifest.workspace == root or file.directory.name in self._states or file.damaged

    def directories(self) -> list[Path]:
        """Return all branch directories, those in the trash included."""
        self._check_open()
        with os.scandir(self.branches) as items:  # which says what is a directory without a look at each
            names = [item.name for item in items if item.is_dir(follow_symlinks=False)]
        return [self.branches / name for name in sorted(names) if name.startswith(f"{_KIND}_")]

    def referenced(self, branch: str) -> set[int]:
        """Return the layers of a branch that other branches stand on, rather too many than too few."""
        return stood_on(self.directory(branch), self.directories())

    def ancestors(self, branch: str) -> Iterator[str]:
        """Yield the parent, its parent, and so on."""
        present: str | None = branch
        while present is not None:
            try:
                parent = ManifestFile(self.directory(present)).load().parent
            except FileNotFoundError:
                return  # removed: the line ends here
            present = parent["branch"] if parent else None
            if present is not None:
                yield present

    # ------------------------------------------------------------ trash

    def discard(self, branch: str, *, keep: bool = True) -> None:
        """Put a branch into the trash, or remove it at once unless something stands on it.

        Raises:
            BranchBusy: another process writes it.
        """
        state = self.open(branch)
        with state.writing():
            note_discarded(state.directory)
        with self._guard:
            self._states.pop(branch, None)
        state.close()
        if not keep:
            remove_if(state.directory, lambda: not self.referenced(branch))

    def remove(self, branch: str) -> None:
        """Remove a branch that nothing stands on, also on a disk that is full."""
        state = self.open(branch)
        with self._guard:
            self._states.pop(branch, None)
        state.close()
        remove(state.directory)

    def restore_discarded(self, branch: str) -> BranchState:
        """Take a branch out of the trash; raises NotFound when it is not there (any more)."""
        directory = self._existing(branch)
        if directory is None or discarded_at(directory) is None:
            raise NotFound(f"branch {branch} is not in the trash; it is kept there for {TRASH_DAYS} days")
        take_out(directory)
        return self.open(branch)

    def empty_trash(
        self, now_s: float | None = None, *, days: float = TRASH_DAYS, keep: Collection[str] = ()
    ) -> list[str]:
        """Remove what was discarded more than `days` ago and nothing stands on; return the ids.

        A branch on which only others stand that go now, goes with them.

        Args:
            now_s: the clock's when None. keep: ids that somebody may still want back.
        """
        now = time.time() if now_s is None else now_s
        removed: list[str] = []
        while True:
            listed = [directory for directory in self.directories() if directory.name not in keep]
            gone = [directory.name for directory in listed if self._goes(directory, now - days * 86400)]
            removed += gone
            if not gone:
                break
        delete_half(self.branches, now)
        return removed

    def remove_left(self, now_s: float | None = None) -> list[str]:
        """Remove what processes that died had made for a moment (`fork(throwaway=True)`); return the ids."""
        return remove_left(self.directories(), self.referenced, now_s)

    def _goes(self, directory: Path, before_s: float) -> bool:
        is_over = partial(self._is_over, directory, before_s)
        return is_over() and remove_if(directory, is_over)

    def _is_over(self, directory: Path, before_s: float) -> bool:
        at = discarded_at(directory)
        return at is not None and from_iso(at).timestamp() < before_s and not self.referenced(directory.name)

    # ------------------------------------------------------------ end

    def close(self) -> None:
        """Close every state, which opens again when it is used; a temporary data directory is removed."""
        with self._guard:
            states = list(self._states.values())
        for state in states:
            state.close()
        owner, self._owner = self._owner, None
        if owner is not None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
            os.close(owner)

    def _check_open(self) -> None:
        if self.is_temporary and self._owner is None:
            raise InvalidWorkspace(
                "this workspace was closed, and its branches went with its temporary data directory; "
                "make it with data_dir=… to keep them"
            )
