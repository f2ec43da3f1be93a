"""What files must be in a history of git, beside the real ones: the model of branches, fed by what people did.

Here: feeding it, and comparing. Not here: the model (`branch_model.py`), the steps (`git_histories.py`).

What the user's git and the agent's git do to files is an edit to the model; what a landing, an undo or a merge
does is for the model to say. Its merge needs lines that are unique in a file: where git left marks of two
conflicts in one, the model is asked no more.
"""

from collections.abc import Sequence
from pathlib import Path

from support.branch_histories import read_branch, read_real
from support.branch_model import ModelBranch, ModelLanding, Tree

from bowerbird.workspace import Branch, Landing


class FileModel:
    """The model of one workspace, its branches and landings, for some paths."""

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        self._root, self._names = root, names
        self._ws: Tree = {}
        self._branches: dict[str, tuple[Branch, ModelBranch]] = {}
        self._landings: dict[str, ModelLanding] = {}
        self.asked = 0
        self.is_over = False
        self.user_did()

    def user_did(self) -> None:
        """Take what stands in the workspace as it is."""
        for name in self._names:
            self._ws[name] = read_real(self._root / name)
        self._look()

    def begins(self, branch: Branch, parent: Branch | None = None) -> None:
        """Know a branch, of the workspace or of another branch."""
        model = self._branches[parent.id][1].fork() if parent is not None else ModelBranch(self._ws)
        self._branches[branch.id] = branch, model

    def follows(self, branch: Branch) -> None:
        """A turn began."""
        self._branches[branch.id][1].follow()

    def agent_did(self, branch: Branch) -> None:
        """Take what a branch shows by now as the agent's edits."""
        model = self._branches[branch.id][1]
        for name in self._names:
            now = read_branch(branch, name)
            if now != model.view(name):
                model.put(name, now)
        self._look()

    def landed(self, branch: Branch, landing: Landing, *, force: bool) -> None:
        """Compare which paths landed."""
        found = self._branches[branch.id][1].land(None, force, True)
        assert isinstance(found, ModelLanding), "partly, it always lands"
        self._landings[landing.id] = found
        self._same("landed", [entry.path for entry in found.entries], [e.path[1:] for e in landing.entries])
        self._same("left", found.refused, [row.path[1:] for row in landing.refused])

    def undone(self, landing: Landing, undo: Landing | None, *, force: bool) -> None:
        """Compare whether an undo was refused."""
        model = self._landings.get(landing.id)
        if model is None:
            return
        found = model.undo(force)
        if isinstance(found, ModelLanding) and undo is not None:
            self._landings[undo.id] = found
        if isinstance(found, ModelLanding) and not found.entries:
            return  # of files there is nothing to take back: whether that is refused is about commits
        assert self.is_over or isinstance(found, ModelLanding) == (undo is not None), (found, undo)

    def merged(self, parent: Branch, child: Branch, written: Sequence[str], conflicts: Sequence[str]) -> None:
        """Compare what a merge took, and where it could not."""
        found = self._branches[parent.id][1].merge(self._branches[child.id][1], None, False)
        self._same("merged", found["written"], [path[1:] for path in written])
        self._same("conflicts", found["conflicts"], [path[1:] for path in conflicts])
        del self._branches[child.id]

    def compare(self) -> None:
        """Compare the workspace, and what every branch shows and calls changed."""
        if self.is_over:
            return
        self.asked += 1
        for name in self._names:
            assert read_real(self._root / name) == self._ws.get(name), ("workspace", name, self._ws.get(name))
        for number, (branch, model) in enumerate(self._branches.values()):
            for name in self._names:
                wanted, found = model.view(name), read_branch(branch, name)
                assert found == wanted, (f"branch {number}", name, found, wanted)
            changes = branch.changes()
            self._same(f"changes of {number}", model.changes(), [p[1:] for p in changes.paths])

    def _same(self, what: str, wanted: Sequence[str], found: Sequence[str]) -> None:
        known = sorted(name for name in found if name in self._names)
        assert self.is_over or known == sorted(wanted), (what, known, sorted(wanted))

    def _look(self) -> None:
        seen = [self._ws, *(model.own for _, model in self._branches.values())]
        for version in (version for tree in seen for version in tree.values() if version is not None):
            lines = version[1].split(b"\n")
            self.is_over = self.is_over or len(lines) != len(set(lines))
