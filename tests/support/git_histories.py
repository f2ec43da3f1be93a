"""Random histories of a user and of agents in one repository, and what must hold after each step (GI-4).

Here: the steps, and the watch that no commit of the user's goes out of reach and that files are as a model has
them. Not here: that model (`git_file_model.py`), how many histories (`tests/workspace/git/test_histories.py`
some, `benchmarks/git_histories.py` thousands).
"""

import random
import tempfile
from collections import Counter
from pathlib import Path

from support.git_file_model import FileModel
from support.git_project import GitProject

from bowerbird.core.errors import InvalidArgument, LandingRefused
from bowerbird.workspace import Branch, Landing

NAMES = ("a.txt", "b.txt", "d/c.txt", "d/e.txt")
BRANCHES = ("main", "one", "two")


class History:
    """One repository, two sessions, one user, and a generator of their steps."""

    def __init__(self, base: Path, seed: int, *, linked: bool = False) -> None:
        self.project = GitProject(base, linked=linked)
        self.random = random.Random(seed)
        self.sessions = [self.project.workspace.branch() for _ in range(2)]
        self.landings: list[Landing] = []
        self.seen: set[str] = set()
        self.did: list[str] = []
        self.counts: Counter[str] = Counter()
        self._number = 0
        self.files = FileModel(self.project.root, NAMES)
        for branch in self.sessions:
            self.files.begins(branch)

    def run(self, steps: int) -> None:
        """Make some steps; raises AssertionError with what was done when something does not hold."""
        for _ in range(steps):
            whose = self.random.choice(("user", "agent", "agent", "ours", "ours", "subagent"))
            {"user": self._user, "agent": self._agent, "ours": self._ours, "subagent": self._subagent}[
                whose
            ]()
            self._check()
        self.counts["states compared with the model"] += self.files.asked
        self.counts["histories that the model left"] += self.files.is_over
        found = self.project.git("fsck", "--full", "--no-dangling")
        assert found == "", (self.did, found)

    # ------------------------------------------------------------ steps

    def _text(self) -> str:
        self._number += 1
        return "".join(f"line {n} {self._number if self.random.random() < 0.3 else ''}\n" for n in range(5))

    def _git_step(self) -> list[str]:
        pick = self.random.choice
        self._number += 1
        return pick((
            ["add", "-A"], ["commit", "-qam", f"c{self._number}"], ["commit", "-qam", f"c{self._number}"],
            ["commit", "-q", "--allow-empty", "-m", f"e{self._number}"],
            ["commit", "-q", "--amend", "--allow-empty", "-m", f"amended {self._number}"],
            ["branch", "-f", pick(BRANCHES[1:])], ["switch", "-q", "-C", pick(BRANCHES)], ["switch", "-q", pick(BRANCHES)],
            ["stash"], ["stash", "pop"], ["rebase", "-q", pick(BRANCHES)], ["rebase", "--abort"],
            ["merge", "-q", "-m", "m", pick(BRANCHES)], ["merge", "--abort"], ["tag", "-f", f"t{self._number % 3}"],
            ["status"], ["reset", "-q", "--hard"], ["gc", "-q"], ["pack-refs", "--all"], ["branch", "-D", pick(BRANCHES[1:])],
        ))  # fmt: skip

    def _user(self) -> None:
        if self.random.random() < 0.4:
            name = self.random.choice(NAMES)
            self.did.append(f"user writes {name}")
            self.project.write(name, self._text())
            self.files.user_did()
            return
        step = self._git_step()
        self.did.append(f"user: git {' '.join(step)}")
        self.project.git(*step, fails=True)
        self.files.user_did()
        self.seen = self.commits()  # what the user drops with their own hands is dropped

    def _agent(self) -> None:
        branch = self.random.choice(self.sessions)
        branch.begin_turn()
        self.files.follows(branch)
        self._check()
        self._work(branch, f"agent {self.sessions.index(branch)}")

    def _subagent(self) -> None:
        """A subagent of a session works on a fork of its branch, which is merged into it."""
        branch = self.random.choice(self.sessions)
        child = branch.fork()
        self.files.begins(child, branch)
        self._work(child, f"subagent of {self.sessions.index(branch)}")
        self._check()
        merged = branch.merge(child)
        self.counts["merged"] += 1
        self.files.merged(branch, child, merged.written, merged.conflicts)
        assert not [path for path in merged.conflicts if "/.git/" in path], self.did

    def _work(self, branch: Branch, who: str) -> None:
        steps: list[list[str] | tuple[str, str]] = []
        for _ in range(self.random.randint(1, 4)):
            if self.random.random() < 0.5:
                steps.append((self.random.choice(NAMES), self._text()))
            else:
                steps.append(self._git_step())
        self.did.append(f"{who}: {[s if isinstance(s, list) else s[0] for s in steps]}")
        self.project.agent(branch, *steps)
        self.files.agent_did(branch)

    def _ours(self) -> None:
        if self.landings and self.random.random() < 0.3:
            landing = self.landings.pop(self.random.randrange(len(self.landings)))
            force = self.random.random() < 0.5
            self.did.append(f"undo {landing.id} force={force}")
            undone = None
            try:
                undone = landing.undo(force=force)
                self.landings.append(undone)
                self.counts["undone"] += 1
            except (LandingRefused, InvalidArgument):
                self.counts["undo refused"] += 1
            self.files.undone(landing, undone, force=force)
            return
        branch = self.random.choice(self.sessions)
        self._land(branch, force=self.random.random() < 0.5)

    def _land(self, branch: Branch, *, force: bool) -> None:
        commits = self.random.choice(("fetch", "fast_forward", "fast_forward", "never"))
        accept = ("*",) if self.random.random() < 0.3 else ()
        self.did.append(f"land {self.sessions.index(branch)} {commits} force={force} accept={accept}")
        try:
            landing = branch.land(
                force=force, partial=True, commits=commits, accept=accept, session=branch.id
            )
        except LandingRefused:
            self.counts["refused"] += 1
            return
        self.files.landed(branch, landing, force=force)
        if landing.entries or landing.history:
            self.landings.append(landing)
            self.counts["landed"] += 1
            for one in landing.history:
                self.counts.update(ref.state for ref in one.refs)
                self.counts["troubles"] += len(one.troubles)

    # ------------------------------------------------------------ what holds

    def commits(self) -> set[str]:
        """Every commit that the user's refs and reflogs reach."""
        return set(self.project.git("rev-list", "--all", "--reflog").split())

    def _check(self) -> None:
        now = self.commits()
        lost = self.seen - now
        assert not lost, (self.did, lost)
        self.seen = now
        try:
            self.files.compare()
        except AssertionError as error:
            raise AssertionError(self.did, *error.args) from error


def one_history(seed: int, steps: int, base: Path | None = None, *, linked: bool = False) -> Counter[str]:
    """Run one history in a place of its own, or in a linked worktree there, and return what happened."""
    with tempfile.TemporaryDirectory(dir=base) as place:
        history = History(Path(place), seed, linked=linked)
        try:
            history.run(steps)
        finally:
            history.project.close()
        return history.counts
