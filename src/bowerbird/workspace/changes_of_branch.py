"""What a branch changed: the calls of `Branch` that compare, and that tell what happened in git.

Here: those calls. Not here: how they work (`tree/changes.py`, `compare/diff.py`, `git/story.py`), landing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bowerbird.core.errors import InvalidArgument
from bowerbird.workspace.compare.diff import PathPatch, branch_diff, count_rows, path_patches, unified_patch
from bowerbird.workspace.compare.results import Changes, Diff, Exported, folded_rows
from bowerbird.workspace.find.gitignored import GitIgnored
from bowerbird.workspace.fork_and_merge import history_of, pending
from bowerbird.workspace.git.apart import comparable, files_of, in_git
from bowerbird.workspace.git.landed_refs import LandedRefs
from bowerbird.workspace.git.story import GitStory, story_of
from bowerbird.workspace.history.history import History
from bowerbird.workspace.landing.ignored import Ignored, without_moved
from bowerbird.workspace.registry.state import BranchState
from bowerbird.workspace.registry.taint import tainted_paths
from bowerbird.workspace.shared import Shared
from bowerbird.workspace.tree.changes import Change, Divided, changes_since, divided, select
from bowerbird.workspace.tree.paths import PathInput, chosen_path, shown
from bowerbird.workspace.tree.stack import Stack
from bowerbird.workspace.tree.stack_reading import steady

if TYPE_CHECKING:
    from bowerbird.workspace.export import Format
    from bowerbird.workspace.find.browsing import Browse


_R = TypeVar("_R")


class ChangesOfBranch:
    """The part of `Branch` that says what changed."""

    _state: BranchState
    _shared: Shared

    def steadily(self, look: Callable[[], _R]) -> _R:
        """Return what `look` does of one state of the branch; see `Layering.steadily`."""
        return self._state.stack.steadily(look)

    @steady
    def changes(self, *, ignored: bool = True) -> Changes:
        """Return the changed paths, net against the fork point.

        Args:
            ignored: with what stays on the branch by itself: caches, and what git ignores.
        """
        found = self._files(pending(self._state) if ignored else self._divided().changes)
        return Changes(
            tuple(shown(c.path) for c in found if c.new is not None),
            tuple(shown(c.path) for c in found if c.new is None),
        )

    @steady
    def changed_since(self, turn: str) -> tuple[str, ...]:
        """Return what changed in a turn whose end is frozen, less what is as in the directory by now."""
        earlier = [each.id for each in self._history().snapshots() if each.turn != turn]
        if not earlier:
            return self.changes(ignored=False).paths
        since = {change.path for change in self._selected(None, earlier[-1])}
        return tuple(shown(c.path) for c in self._files(self._divided().changes) if c.path in since)

    @steady
    def count(self) -> int:
        """Return how many files a review shows as changed; files that stay there by themselves are none.

        Every door names this figure, so that a list of sessions and the review it leads to agree.
        """
        return count_rows(self._state, self._files(self._divided().changes), self._shared.rules)

    def browse(self, at: str | None = None) -> "Browse":
        """Return a look for people, at the present state or a snapshot's; its calls block.

        What stays on the branch by itself is listed, but not as changed.
        """
        from bowerbird.workspace.files.earlier import look

        return look(self._state, at, lambda: self._divided().changes)

    @steady
    def diff(
        self, paths: Sequence[PathInput] | None = None, since: str | None = None, *, ignored: bool = True
    ) -> Diff:
        """Return the changes with their hunks.

        Args:
            paths: files or directories, None = all.
            since: a snapshot to compare with instead of the fork point.
            ignored: False folds what stays on the branch by itself, of a diff of everything (`Diff.folded`).

        Raises:
            NotFound: there is no such snapshot.
        """
        if ignored or paths is not None or since is not None:
            return branch_diff(self._state, self._selected(paths, since), self._shared.rules)
        return self._shown_diff(self._divided())

    @steady
    def unified(
        self,
        paths: Sequence[PathInput] | None = None,
        context: int = 3,
        since: str | None = None,
        *,
        ignored: bool = True,
    ) -> str:
        """Return the changes as a patch for `git apply`, with `context` unchanged lines around each.

        `since` and `ignored` are those of `diff`.
        """
        if context < 0:
            raise InvalidArgument(f"context is {context}; use 0 or more lines")
        if ignored or paths is not None or since is not None:
            return unified_patch(self._selected(paths, since), context)
        return unified_patch(self._files(self._divided().changes), context)

    def patches(self, paths: Sequence[PathInput] | None = None) -> list[PathPatch]:
        """Return `unified` path by path; each patch is made when it is asked for."""
        return path_patches(self._selected(paths, None), 3)

    def export(self, to: str | Path, format: "Format" = "patch") -> Exported:  # noqa: A002 -- WS-39's name
        """Write the changes (`patch`, `tar`) or the whole view (`dir`) to `to`.

        Raises:
            Exists: the directory is not empty.
        """
        from bowerbird.workspace.export import export_branch

        return export_branch(self._state.reading(), self._files(pending(self._state)), Path(to), format)

    @property
    @steady
    def has_new_commits(self) -> bool:
        """Whether a landing would bring commits into the user's repository; no git is asked."""
        from bowerbird.workspace.git.arrival import has_new_commits

        changes = self._divided().changes
        return has_new_commits(self._state.stack, changes, self._state.directory)

    @property
    def is_tainted(self) -> bool:
        """Whether something of what is pending was written after text from outside was read."""
        return bool(tainted_paths(self._state))

    @steady
    def git_story(self) -> GitStory:
        """Return what happened in the git directories on the branch: refs, commits, stashes, settings.

        What lies in git directories is in no diff; this stands there instead.
        """
        return self._story(self._divided())

    @steady
    def reviewed(self) -> tuple[Diff, GitStory]:
        """Return `diff(ignored=False)` and `git_story`, of one look at the branch."""
        found = self._divided()
        return self._shown_diff(found), self._story(found)

    def _shown_diff(self, found: Divided) -> Diff:
        diff = branch_diff(self._state, self._files(found.changes), self._shared.rules)
        return replace(diff, folded=folded_rows(found.staying, found.whole))

    def _story(self, found: Divided) -> GitStory:
        landed = LandedRefs(self._state.directory).newest()
        rules, directory = self._shared.rules, self._state.directory
        return story_of(self._state.stack, found.changes, rules, directory, landed)[0]

    def _files(self, changes: Sequence[Change]) -> list[Change]:
        return files_of(changes, self._state.stack.ground)

    def _divided(
        self, named: Sequence[str] = (), include: Sequence[str] = (), stack: Stack | None = None
    ) -> Divided:
        """Return the changes, and apart from them what stays by itself; arguments as of `Ignored.staying`."""
        stack = stack or self._state.reading()
        by_git = GitIgnored(stack.view)
        rule = Ignored(self._shared.rules.is_cache, by_git, stack.ground.root)
        return without_moved(stack, divided(stack, rule.staying(named, include)))

    def _selected(self, paths: Sequence[PathInput] | None, since: str | None) -> list[Change]:
        named = self._paths(paths)
        if since is None and named and not any(in_git(path) for path in named):
            found = pending(self._state, named)  # what is not named is not compared
            return comparable(self._state.stack, found, named)
        if since is None:
            changes = pending(self._state)
        else:
            stack = self._state.reading()
            history = self._history()
            changes = changes_since(
                stack, history.view_at(since), history.own_at(since), lambda p: not stack.ground.shows(p)
            )
        return select(comparable(self._state.stack, changes, named), named)[0]

    def _paths(self, paths: Sequence[PathInput] | None) -> tuple[str, ...] | None:
        return None if paths is None else tuple(chosen_path(path, self._state.workspace) for path in paths)

    def _history(self) -> History:
        return history_of(self._state, self._shared.registry)
