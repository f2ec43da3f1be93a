"""A workspace: a directory of the user's, and the branches and landings of it.

Here: `Workspace`, the way in. Not here: what a branch can do (`branch.py`), where branches
lie (`registry/registry.py`).
"""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.errors import InvalidWorkspace, NotFound, WorkspaceError
from bowerbird.core.processes.host_programs import keep_out_of
from bowerbird.workspace.branch import Branch
from bowerbird.workspace.fork_and_merge import forget_snapshots
from bowerbird.workspace.git.landed_history import HistoryRules
from bowerbird.workspace.landing.landings import Landing, Landings
from bowerbird.workspace.landing.progress import Told
from bowerbird.workspace.landing.refusals import said_plainly
from bowerbird.workspace.marks.flags import FlagRules
from bowerbird.workspace.policy import policy_of
from bowerbird.workspace.registry.limits import WorkspaceLimits
from bowerbird.workspace.registry.lock import WriterLock
from bowerbird.workspace.registry.registry import TRASH_DAYS, BranchInfo, BranchRegistry
from bowerbird.workspace.shared import Shared
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.ground import Ground
from bowerbird.workspace.tree.hiding import hidden_by
from bowerbird.workspace.tree.merged_view import MergedView
from bowerbird.workspace.tree.nodes import EMPTY

if TYPE_CHECKING:
    from bowerbird.workspace.find.browsing import Browse
    from bowerbird.workspace.landing.fix import Fix

_log = logging.getLogger(__name__)

TEMPORARY = ":memory:"
"""As `data_dir`: branches that nobody keeps."""


class Workspace:
    """A directory, or nothing, to make branches of.

    Args:
        path: the directory; None for branches of nothing.
        data_dir: where branches are kept; None or `":memory:"` = a private temporary directory, removed
            by `close()`, or by a later start when this process dies.
        hide: globs of paths that do not exist in any branch (`workspace.hide`).
        limits: sizes of branches.
        rules: flags and caches of landings (`landing.flag`, `.unflag`, `.ignore`).
        git: what landings do with commits, see `Branch.land` (`git.land`).
        trash_days: what was discarded longer ago is removed now; None = the caller calls `empty_trash`.

    Raises:
        InvalidWorkspace: the directory is missing, not a directory, or inside `data_dir`.

    Example:
        with Workspace("project", data_dir="~/.bowerbird") as workspace:
            branch = workspace.branch("try")
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        data_dir: str | Path | None = None,
        hide: tuple[str, ...] | list[str] = (),
        limits: WorkspaceLimits | None = None,
        rules: FlagRules | None = None,
        trash_days: float | None = TRASH_DAYS,
        git: HistoryRules | None = None,
    ) -> None:
        root = None if path is None else presence.given_directory(path)
        self._hide = tuple(hide)
        kept = None if data_dir == TEMPORARY else data_dir
        place = None if kept is None else Path(kept).expanduser().absolute()
        if root is not None:
            keep_out_of(root)
        registry = BranchRegistry(place, root, limits if limits is not None else WorkspaceLimits())
        landings = Landings(registry)
        self._shared = Shared(
            registry, landings, rules if rules is not None else FlagRules(), git or HistoryRules()
        )
        landings.recover()
        if trash_days is not None:
            registry.empty_trash(days=trash_days)

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path | None:
        """The directory, resolved; None for branches of nothing."""
        return self._shared.registry.root

    @property
    def data_dir(self) -> Path:
        """Where the branches are."""
        return self._shared.registry.data_dir

    @property
    def storage_reason(self) -> str:
        """Why the data directory cannot hold overlay layers, "" when it can."""
        return self._shared.registry.storage.reason

    def branch(
        self, name: str | None = None, policy: str = "review", hide: tuple[str, ...] | list[str] = ()
    ) -> Branch:
        """Make a branch; it costs the same for a tree of any size.

        Args:
            name: for people.
            policy: when it lands by itself: `review` (when asked), `turn`, `step`.
            hide: globs beside those of the workspace.

        Raises:
            InvalidArgument: an unknown policy. InvalidPattern: a malformed glob.
        """
        both = tuple(dict.fromkeys((*self._hide, *hide)))
        state = self._shared.registry.create(name=name, policy=policy_of(policy), hide=both)
        return Branch(state, self._shared)

    def open(self, branch_id: str) -> Branch:
        """Return a branch by id; a broken manifest was set aside and rebuilt.

        Raises:
            NotFound: there is none, or it is in the trash.
            InvalidWorkspace: it belongs to another directory.
        """
        return Branch(self._shared.registry.open(branch_id), self._shared)

    def forget(self, branch_id: str) -> None:
        """Close what is open of a branch; whoever uses it afterwards opens it again."""
        self._shared.registry.forget(branch_id)

    def lock_of(self, branch_id: str) -> WriterLock:
        """Return the lock that says which process writes a branch; raises as `open` does."""
        return self._shared.registry.open(branch_id).lock

    def branches(self) -> list[BranchInfo]:
        """Return the branches of this workspace, oldest first; `damaged` ones were repaired."""
        return self._shared.registry.infos()

    def discarded(self) -> list[BranchInfo]:
        """Return the branches in the trash, with the time they went there."""
        return self._shared.registry.infos(trashed=True)

    def trashed(self) -> dict[str, str]:
        """Return the ids of all branches in the trash, of any workspace, and when they went there."""
        return self._shared.registry.trashed()

    def restore_discarded(self, branch_id: str) -> Branch:
        """Take a branch out of the trash; raises NotFound when it is not there (any more)."""
        return Branch(self._shared.registry.restore_discarded(branch_id), self._shared)

    def empty_trash(self, days: float, keep: Collection[str] = (), now_s: float | None = None) -> list[str]:
        """Free the disk of branches, of any workspace, that were discarded long ago; return the ids.

        Args:
            days: how long ago at least.
            keep: ids that stay. One that another branch stands on stays as well.
            now_s: the clock's when None.
        """
        return self._shared.registry.empty_trash(now_s, days=days, keep=keep)

    def remove_left(self) -> list[str]:
        """Remove the throw-away forks, of any workspace, of processes that died; return the ids."""
        return self._shared.registry.remove_left()

    def forget_snapshots(self, branch_id: str, turns: Collection[str], keep: Collection[str] = ()) -> int:
        """Free the disk that only snapshots of old turns need, of a branch of any workspace.

        Args:
            turns: ids of turns to which nobody goes back. keep: ids of snapshots that stay.

        Returns:
            How many snapshots went; one that the branch's view or a fork needs stays.

        Raises:
            NotFound: there is no such branch. BranchBusy: another process writes it.
        """
        registry = self._shared.registry
        directory = registry.directory(branch_id)
        if not presence.is_directory(directory):
            raise NotFound(f"branch {branch_id} does not exist")
        with registry.borrowed(directory) as state:
            return forget_snapshots(state, registry, turns, keep)

    def browse(self) -> "Browse":
        """Return a look at the directory itself, as branches see it; its calls block.

        Raises:
            InvalidWorkspace: there is no directory.
        """
        from bowerbird.workspace.find.browsing import Browse

        registry = self._shared.registry
        if registry.root is None:
            raise InvalidWorkspace("this workspace has no directory")
        ground = Ground(registry.root, masked=registry.masked, hidden=hidden_by(self._hide))
        return Browse(lambda: MergedView(ground, EMPTY))

    def landings(self) -> list[Landing]:
        """Return the landings and undos of this workspace, oldest first."""
        return self._shared.landings.all()

    def landing(self, landing_id: str) -> Landing:
        """Return one of them; raises NotFound for an unknown id."""
        with said_plainly():
            return self._shared.landings.find(landing_id)

    def undo(
        self,
        landing_id: str,
        paths: list[str] | None = None,
        force: bool = False,
        hunks: list[str] | None = None,
        *,
        actor: str = "",
        door: str = "",
        told: Told | None = None,
    ) -> Landing:
        """Take a landing back; see `Landing.undo`. Raises NotFound for an unknown id."""
        return self.landing(landing_id).undo(paths, force, hunks, actor=actor, door=door, told=told)

    def fix_landing(self, landing_id: str, how: "Fix") -> Landing:
        """Lead a landing that needs attention out of it: `retry`, `take_back` or `give_up`.

        Raises:
            NotFound: there is no such landing. InvalidArgument: it needs no attention.
            LandingStuck: its files cannot be taken back now either; the message says which and why.
        """
        return self._shared.landings.fix(landing_id, how)

    @property
    def has_landed(self) -> bool:
        """Whether something landed or was undone here since old landings were last forgotten."""
        return self._shared.landings.made > 0

    def forget_landings(self) -> list[str]:
        """Remove the oldest landings beyond what is kept, and return their ids; never raises."""
        try:
            return self._shared.landings.forget_old()
        except (OSError, WorkspaceError) as error:
            _log.warning("old landings into %s were not forgotten: %s", self.path, error)
            return []

    def finish_landings(self) -> list[str]:
        """Bring every landing that died half-way to its end, into whatever directory; never raises.

        Returns:
            The ids of those that were finished. What needs a person's eyes is logged, and keeps its record;
            what could not even be looked at is tried again by the next call.
        """
        return [record.id for record in self._shared.landings.recover(everywhere=True)]

    def close(self) -> None:
        """Close all branches; those of a temporary data directory are removed.

        Others stay, and handles on them go on working: what is used is opened again.
        """
        if self.has_landed and not self._shared.registry.is_temporary:
            self.forget_landings()
        self._shared.registry.close()
