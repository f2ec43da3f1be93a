"""A branch: the one object that agents, tools and doors work with.

Here: the plain calls of WS-2; the file tools come from `BranchFiles`. This file holds locks
and passes on. Not here: how a call works: `tree/changes.py`, `compare/diff.py`, `fork_and_merge.py` (fork,
merge), `history/history.py`, `landing/landing.py`, `export.py`.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bowerbird.core.errors import InvalidArgument
from bowerbird.core.ids import new_id
from bowerbird.workspace.compare.results import MergeResult
from bowerbird.workspace.files.file_branch import BranchFiles
from bowerbird.workspace.fork_and_merge import fork, merge
from bowerbird.workspace.history.branch_journal import step_to
from bowerbird.workspace.history.history import Snapshot
from bowerbird.workspace.landing.landed_paths import LandedPaths, follow
from bowerbird.workspace.landing_of_branch import LandingOfBranch
from bowerbird.workspace.policy import Policy, policy_of
from bowerbird.workspace.process_view import ProcessView
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.registry.taint import taint
from bowerbird.workspace.shared import Shared
from bowerbird.workspace.tree import presence
from bowerbird.workspace.tree.paths import PathInput, shown
from bowerbird.workspace.tree.real_directory import Beneath, Gone

STEP_MARK = "step:"


class Branch(BranchFiles, LandingOfBranch):
    """A copy-on-write view of a workspace, of another branch's frozen state, or of nothing.

    File tools are coroutines (`read_file`, `write_file`, `edit_file`, …); the calls below are
    plain and may take long, so servers run them in a worker thread. Handles are cheap:
    `bound` gives one whose changes are recorded under a turn and a call.

    Example:
        branch = Workspace("project").branch()
        await branch.write_file("notes.txt", "hello\\n")
        branch.land().undo()        # it was in the directory, and now it is not
    """

    def __init__(
        self, state: BranchState, shared: Shared, *, turn: str | None = None, call: str | None = None
    ) -> None:
        super().__init__(state, turn=turn, call=call)
        self._state = state
        self._shared = shared
        self._turn, self._call = turn, call

    def bound(self, turn: str | None = None, call: str | None = None) -> "Branch":
        """Return a handle whose changes are recorded under `turn` and `call`.

        With a call, what it changes can be taken back by `rollback(handle.call_mark())`.
        """
        return Branch(self._state, self._shared, turn=turn, call=call)

    def as_call(self) -> "Branch":
        """Return this handle, or one bound to a call of its own, which whoever asked settles."""
        return self if self._call is not None else self.bound(self._turn, new_id("u"))

    # ------------------------------------------------------------ facts

    @property
    def name(self) -> str | None:
        """The name it was made with."""
        return self._state.manifest.value.name

    @property
    def parent(self) -> dict[str, str] | None:
        """`{"branch", "snapshot"}` it was forked from, None for a branch of a workspace."""
        parent = self._state.manifest.value.parent
        return dict(parent) if parent else None

    @property
    def policy(self) -> Policy:
        """When it lands by itself: `review`, `turn` or `step`."""
        return policy_of(self._state.manifest.value.policy)

    def set_policy(self, policy: str) -> None:
        """Change the landing policy; only a person does. Raises InvalidArgument."""
        chosen = policy_of(policy)
        with self._state.writing():
            self._state.manifest.update(policy=chosen)

    @property
    def repl_of(self) -> str | None:
        """The branch whose interpreter this one continues (`fork(copy_repl=True)`), else None."""
        return self._state.manifest.value.extra.get("repl_of")

    # ------------------------------------------------------------ time line

    def fork(
        self,
        name: str | None = None,
        copy_repl: bool = False,
        snapshot: str | None = None,
        carry: bool = False,
        throwaway: bool = False,
    ) -> "Branch":
        """Return a new branch that stands on this one's present state; nothing is copied.

        Args:
            copy_repl: the child continues a copy of this branch's interpreter.
            snapshot: stand on an earlier state instead.
            carry: what is pending there is the child's too: it shows and lands it.
            throwaway: nobody wants its changes: where this process dies before it discards the child, that is
                removed by the next one.

        Raises:
            NotFound: there is no such snapshot.
        """
        self.show_git()  # so that both have the same one, and their histories can be merged
        registry, live = self._shared.registry, self._is_held()
        state = fork(self._state, registry, name, snapshot, live=live, carry=carry, throwaway=throwaway)
        if copy_repl:
            state.manifest.update(extra={**state.manifest.value.extra, "repl_of": self.id})
        return Branch(state, self._shared)

    def merge(
        self,
        child: "Branch | str",
        paths: Sequence[PathInput] | None = None,
        force: bool = False,
        whole: bool = False,
    ) -> MergeResult:
        """Merge a descendant's changes into this branch, all or nothing.

        Args:
            child: a branch forked from this one, or from its forks, or its id.
            paths: files or directories to merge, None = all; the rest can be merged later.
            force: the child's version wins conflicts. whole: nothing at all when a path conflicts.

        Raises:
            NotRelated: it does not descend from this branch. BranchBusy: another process has it.
        """
        if not isinstance(child, Branch | str):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller without types
            raise InvalidArgument(f"child is {child!r}; give a branch, or the id of one")
        registry, chosen = self._shared.registry, self._paths(paths)
        other = registry.open(child) if isinstance(child, str) else child._state
        return merge(
            self._state, other, registry, chosen, force=force, whole=whole, turn=self._turn, call=self._call
        )

    def mark(self) -> str:
        """Freeze the changes, unless background processes write; return the mark to go back to."""
        with self._state.writing():
            history = self._history()
            return history.last_mark() if self._is_held() else history.mark(self._turn)

    def process_mark(self) -> str | None:
        """Take a mark before a process call; None while other processes write, who need the layer."""
        with self._state.writing():
            return None if self._is_held() else self._history().mark(self._turn)

    def show_git(self) -> None:
        """Give the branch a git directory where the workspace's repository lies outside of it."""
        if not self._is_held():
            from bowerbird.workspace.git.shown_repository import show_git

            show_git(self._state, self._history)

    def rollback(self, mark: str) -> None:
        """Drop everything after a mark (`m_…`), or what one call changed (`step:<call>`).

        Raises:
            Stale: the mark is gone. BranchBusy: a command runs on it.
        """
        if mark.startswith(STEP_MARK):
            self._state.rollback_step(mark.removeprefix(STEP_MARK), self._turn)
            return
        with self._state.writing():
            self._history().rollback(mark)
            self._state.went_back()

    def end_turn(self, turn: str | None = None) -> Snapshot:
        """Make the turn's changes one snapshot and return it.

        While background processes write, the snapshot waits for their end, and the one
        before is returned.
        """
        turn = turn if turn is not None else self._turn
        with self._state.writing():
            history, held = self._history(), self._held()
            if held.count:
                held.turn, held.waiting = turn, True
                return history.freeze_top()
            live, held.waiting = held.waiting, False
            return history.end_turn(turn, live=live)

    @contextmanager
    def background(self) -> Generator[None]:
        """Keep the open layer in place while processes write it beyond their call."""
        held = self._shared.hold(self.id)
        try:
            yield
        finally:
            try:
                if self._shared.let_go(self.id) and held.waiting:
                    self.end_turn(held.turn)
            finally:
                self._shared.forget_unheld(self.id)

    def catch_up(self) -> None:
        """Record what commands of a killed process left on the branch. Blocks."""
        if not self._is_held():
            self.processes().catch_up()

    def processes(self) -> ProcessView:
        """Return what the sandbox needs to run processes on this branch."""
        return ProcessView(self._state, self.background, self)

    def snapshots(self) -> list[Snapshot]:
        """Return every snapshot, oldest first."""
        self._state.reading()
        return list(self._history().snapshots())

    def restore(self, snapshot: str) -> list[str]:
        """Make the view equal a snapshot, as a new change; return the changed paths.

        Raises:
            NotFound: there is no such snapshot. BranchBusy: a command runs on it.
        """
        with self._state.writing() as stack:
            paths = self._history().restore(snapshot)
            steps = [step_to(path, stack.lookup(path)) for path in paths]
            self._state.record(steps, turn=self._turn, call=self._call, via="restore")
            self._state.account.forget()
            return [shown(path) for path in paths]

    # ------------------------------------------------------------ landing

    def begin_turn(self) -> list[str]:
        """Take over what the user changed at landed paths, as a turn starts; return what is different now."""
        state, root = self._state.alive(), self._state.workspace
        landed = LandedPaths(state.directory)
        git = any("/.git/" in path.lower() for path in state.reading().orig.paths())
        if root is None or self._is_held() or not (git or landed.read()):
            return []
        with state.writing() as stack, Beneath(root) as tree:
            if stack.open_layer.live:  # a process began meanwhile
                return []
            from bowerbird.workspace.git.shown_repository import follow_git

            try:
                followed = follow(stack, self._history(), landed, tree)
                followed += follow_git(state, self._history(), self._divided().changes, tree) if git else []
            except Gone:  # saved in this very moment: the next turn's start follows
                return []
            return [shown(path) for path in followed]

    def taint(self, turn: str | None = None, source: str = "") -> None:
        """Say that text from outside (`source`) is in the context of a turn: what it writes is tainted."""
        given = turn if turn is not None else self._turn
        if given:
            taint(self._state, given, [source] if source else [])

    # ------------------------------------------------------------ end

    def discard(self, *, keep: bool = True) -> None:
        """Move the branch to the trash for 7 days, or (`keep=False`) remove it; its forks go on."""
        self._shared.registry.discard(self.id, keep=keep)

    def remove(self) -> None:
        """Remove the branch at once; nothing stands on it, and nothing has to be written for it."""
        self._shared.registry.remove(self.id)

    def rebind(self, path: str | Path) -> None:
        """Go on over another directory, for when the workspace moved.

        Raises:
            InvalidWorkspace: it is missing or no directory. BranchBusy: a command runs on it.
        """
        root = presence.given_directory(path)
        with self._state.writing() as stack:
            stack.check_unmounted()
            self._state.manifest.update(workspace=str(root))
        self._state = self._shared.registry.reopen(self.id)
        BranchFiles.__init__(self, self._state, turn=self._turn, call=self._call)
