"""What a branch lands: plans, conflicts, and the landing itself, for `Branch`.

Here: the calls, with what they stand on; what a landing needs is imported when one is asked for. Not here:
how it lands (`landing/landing.py`), what changed (`changes_of_branch.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bowerbird.core.errors import InvalidArgument, InvalidWorkspace, NotFound
from bowerbird.workspace.changes_of_branch import ChangesOfBranch
from bowerbird.workspace.compare.results import Diff, LandingPlan
from bowerbird.workspace.git.landed_history import Commits
from bowerbird.workspace.git.repository import is_in_git
from bowerbird.workspace.git.story import GitStory
from bowerbird.workspace.landing.landings import Landing
from bowerbird.workspace.landing.progress import Told
from bowerbird.workspace.landing.refusals import said_plainly
from bowerbird.workspace.registry.taint import tainted_paths
from bowerbird.workspace.shared import Held
from bowerbird.workspace.tree.paths import PathInput, chosen_path, shown
from bowerbird.workspace.tree.real_directory import Beneath, Gone
from bowerbird.workspace.tree.regions import Take
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.stack_reading import steady

if TYPE_CHECKING:
    from bowerbird.workspace.compare.conflicts import Conflict
    from bowerbird.workspace.git.committing import Committing
    from bowerbird.workspace.landing.landing import LandingContext, LandRequest


_LOOKS = 3


class LandingOfBranch(ChangesOfBranch):
    """The calls of a branch that bring it into its workspace."""

    @steady
    def plan_landing(
        self,
        paths: Sequence[PathInput] | None = None,
        hunks: Sequence[str] | None = None,
        include: Sequence[PathInput] = (),
    ) -> LandingPlan:
        """Return what `land` would do, and the plan's name; changes nothing.

        Raises:
            Stale: a hunk is not a present one. InvalidWorkspace: there is no workspace.
        """
        from bowerbird.workspace.landing.landing import LandRequest

        chosen = None if hunks is None else tuple(hunks)
        request = LandRequest(self._paths(paths), chosen, include=self._paths(include) or ())
        ground = self._ground(None, request)
        commits = paths is None and self.has_commits()
        return replace(self._plan(ground, request), commits=commits, in_git=is_in_git(self._root()))

    def _plan(self, ground: "LandingContext", request: "LandRequest", tries: int = 5) -> LandingPlan:
        from bowerbird.workspace.landing.landing import plan_landing
        from bowerbird.workspace.landing.plan import shown_plan

        try:
            with Beneath(self._root()) as tree:
                return shown_plan(plan_landing(ground, tree, request)[0], ground.staying, ground.whole)
        except Gone:  # a file was saved while it was looked at
            if tries == 1:
                raise
            return self._plan(ground, request, tries - 1)

    def review(self) -> tuple[Diff, GitStory, LandingPlan]:
        """Return what changed and what landing it would do, of one state of the branch.

        Something may write meanwhile: then it is looked at again. What never rests is shown as it was, and
        its landing is refused, for the plan is older than what is shown.
        """
        before = self.plan_landing()
        found, story = self.reviewed()
        for _ in range(_LOOKS):
            after = self.plan_landing()
            if after.id == before.id:
                break
            before = after
            found, story = self.reviewed()
        return found, story, before

    @steady
    def has_commits(self) -> bool:
        """Return whether a landing would bring commits along; no git is asked."""
        from bowerbird.workspace.git.arrival import has_new_commits

        return has_new_commits(self._state.stack, self._divided().changes, self._state.directory)

    @steady
    def conflict(self, path: PathInput) -> "Conflict":
        """Return where a file that the user changed, too, conflicts; `land(resolved=…)` takes the decisions.

        Raises:
            NotFound: it does not conflict. InvalidWorkspace: there is no workspace.
        """
        from bowerbird.workspace.compare.conflicts import Conflict
        from bowerbird.workspace.landing.landing import LandRequest, plan_landing
        from bowerbird.workspace.landing.plan import plan_id

        named = chosen_path(path, self._state.workspace)
        request = LandRequest((named,))
        with Beneath(self._root()) as tree:
            entries = plan_landing(self._ground(None, request), tree, request)[0]
            for entry in entries:
                if entry.path == named and entry.drift == "conflict":
                    return Conflict(shown(named), entry.refused or "", plan_id(entries), entry.places())
        raise NotFound(
            f"{shown(named).lstrip('/')} does not conflict with what is in the directory", shown(named)
        )

    @said_plainly()
    def land(
        self,
        paths: Sequence[PathInput] | None = None,
        hunks: Sequence[str] | None = None,
        accept: Sequence[PathInput] = (),
        force: bool = False,
        partial: bool = False,
        plan: str | None = None,
        *,
        seen: Mapping[PathInput, str] | None = None,
        include: Sequence[PathInput] = (),
        resolved: Mapping[str, Sequence[Take]] | None = None,
        automatic: bool = False,
        commits: Commits | None = None,
        commit: "Committing | None" = None,
        own_git: bool = False,
        session: str = "",
        actor: str = "",
        door: str = "",
        told: Told | None = None,
    ) -> Landing:
        """Bring changes into the workspace, all or nothing.

        Args:
            paths: files or directories, None = all. hunks: ids from `diff`, None = whole files.
            accept: flagged paths that a person accepts, `"*"` = all.
            force: take the branch's version of whole files where the user's edits conflict.
            partial: land the rest of what is refused. plan: the plan that the person saw.
            seen: `state` of each path as the person saw it; whatever would land otherwise is refused.
            include: what stays by itself (caches, ignored files) and lands with the rest; a directory takes
                all that it holds.
            resolved: by path, what becomes of each place of `conflict(path)`, in order: `"ours"` the user's
                lines, `"theirs"` the branch's, `"both"`, or bytes; the rest is merged. Needs `plan`.
            automatic: nobody looks: what is `held` stays. actor, door: for the record.
            commits: `fetch` brings them to `refs/bowerbird/SESSION/`, `fast_forward` moves branches of the
                user, too, where they can follow; None = as the workspace was opened. session: names it.
            commit: makes what lands one commit of the user's, too; then no branch of theirs moves. One that
                is `aside` is all that happens: nothing lands, and the changes stay on this branch.
            own_git: the user sits here: their own git signs the agent's commits, where they sign theirs.
            told: called after each file of each phase, for a progress bar; of this thread.

        Raises:
            LandingRefused: a path is refused; nothing changed.
            Stale: the plan or a hunk is no longer what it was.
            InvalidWorkspace, ReadOnly, LimitExceeded: the workspace cannot be written.
        """
        from bowerbird.workspace.git.arrival import Bringing
        from bowerbird.workspace.landing.landing import LandRequest, land

        root, named = self._root(), self._paths(paths)
        accepted = tuple("*" if path == "*" else chosen_path(path, self._state.workspace) for path in accept)
        if resolved and plan is None:
            raise InvalidArgument("decisions of conflicts need the plan they were made for")
        rules = self._shared.git
        if commit is not None and commits == "fast_forward":
            raise InvalidArgument("either --commit or --commits fast-forward: both would move your branch")
        wish = commits or ("fetch" if commit is not None and rules.land == "fast_forward" else rules.land)
        history = Bringing(wish, session or self._state.id, rules, own_git)
        request = LandRequest(
            named, None if hunks is None else tuple(hunks), accepted, force, partial, plan,
            None if seen is None else {chosen_path(p, self._state.workspace): s for p, s in seen.items()},
            actor, door, automatic, history, include=self._paths(include) or (), commit=commit,
            resolved={chosen_path(p, self._state.workspace): takes for p, takes in (resolved or {}).items()},
        )  # fmt: skip
        self._shared.landings.recover(self._state.id)
        with self._state.writing():
            point = self._history().freeze_live() if self._is_held() else self._history().freeze()
            ground = self._ground(point.id, request, told, self._state.stack.at_rest())
            record, folder = land(ground, root, request)
            self._state.account.forget()
        return self._shared.landings.made_one(folder, record, commit)

    def _root(self) -> Path:
        if self._state.workspace is None:
            raise InvalidWorkspace("this branch has no workspace to land in; export it, or rebind it")
        return self._state.workspace

    def _ground(
        self,
        snapshot: str | None,
        request: "LandRequest",
        told: Told | None = None,
        stack: Stack | None = None,
    ) -> "LandingContext":
        from bowerbird.workspace.landing.landing import LandingContext

        stack = stack or self._state.reading()
        found = self._divided(request.paths or (), request.include, stack)
        return LandingContext(
            branch=self._state.id,
            stack=stack,
            history=self._history(),
            changes=found.changes,
            staying=found.staying,
            whole=found.whole,
            snapshot=snapshot,
            rules=self._shared.rules,
            tainted=tainted_paths(self._state),
            checkpoint=self._shared.landings.checkpoint,
            told=told,
        )

    def _held(self) -> Held:
        return self._shared.held.get(self._state.id) or Held()

    def _is_held(self) -> bool:
        return self._held().count > 0
