"""What an agent changed as one commit on another git branch, which touches no file of the user's (UI-78).

Here: which parent it gets, its tree, and the ref. Not here: commits of what lands (`committing.py`).

The tree is made from the parent's with the changed files laid into an empty directory beside it, so that
attributes and filters of the user's apply as if the files were in the working tree.

The next commit of the same session says what changed since its last one: `start` is what the session's
commits there began from, `last` the newest of them, `tip` what stands there now, with commits of others.
What is wanted of a file is the agent's change applied to `start`; what is committed is the way from `last`
to that, merged into `tip`.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bowerbird.core.errors import InvalidArgument, LandingRefused
from bowerbird.workspace.git.committing import (
    DIFFERS,
    ELSEWHERE,
    NOTHING_OF_IT,
    TRAILER,
    Committing,
    LandedFile,
    as_git_knows,
    put_entries,
)
from bowerbird.workspace.git.lacking import with_help
from bowerbird.workspace.git.landed_history import LandedCommit
from bowerbird.workspace.git.running import GitFailed
from bowerbird.workspace.git.users_git import UsersGit, zeroed
from bowerbird.workspace.tree.threeway import Side, decide

_NOTHING = "0" * 40
_DEEPEST = 1_000  # commits below the tip among which earlier ones of the session are looked for


class CommittingAside(Committing):
    """One commit on a branch that nobody has checked out: a new one from HEAD, or one more on it.

    Args:
        name: of the git branch. message, session, own: as of `Committing`.

    Example:
        branch.land(commit=CommittingAside("Fix the total", "s_1", "fix/total", own=True))
    """

    aside = True

    def __init__(self, message: str, session: str, name: str, *, own: bool) -> None:
        super().__init__(message, session, own=own)
        self._session = session
        self._branch = name
        self._ref = f"refs/heads/{name}"

    def prepare(self, root: Path, files: Sequence[LandedFile], *, whole: bool = False) -> None:
        """Make the commit's tree; no file, no index and no ref of the user's changes.

        Raises:
            InvalidArgument: there is no such branch to be, or it is checked out.
            LandingRefused: what lands and what the branch holds cannot be told apart in some paths.
        """
        try:
            self._choose(self._find(root))
            with tempfile.TemporaryDirectory(prefix="bowerbird-commit-") as place:
                self._files = Path(place, "files")
                self._files.mkdir()
                self._begin(root, files, whole)
                self._tree = self._written(Path(place, "index"))
        except GitFailed as error:
            raise InvalidArgument(f"{ELSEWHERE}{with_help(error, root)}") from error

    def _choose(self, git: UsersGit) -> None:
        name = self._branch
        if name.startswith("-") or git.text("check-ref-format", self._ref) is None:
            raise InvalidArgument(f"nothing landed: {name!r} cannot be the name of a git branch")
        listed = git.run("worktree", "list", "--porcelain").decode("utf-8", "replace").splitlines()
        if f"branch {self._ref}" in listed:
            raise InvalidArgument(
                f"nothing landed: the git branch {name} is checked out; land with --commit alone, "
                "or name another branch"
            )
        self._old = git.text("rev-parse", "--verify", "-q", f"{self._ref}^{{commit}}")
        self._tip = self._old or self._head
        self._start, self._last = self._tip, self._tip
        if self._old is not None:
            self._start, self._last = self._earlier(self._old)

    def _earlier(self, tip: str) -> tuple[str | None, str]:
        """Return where this session's commits below a tip began, and the newest of them."""
        shown = f"--format=%H %(trailers:key={TRAILER},valueonly,separator=%x2C)"
        told = os.fsdecode(self._git.run("log", "--first-parent", f"-n{_DEEPEST}", shown, tip)).splitlines()
        rows = [line.partition(" ")[::2] for line in told]
        ours = [self._session in named.split(",") for _, named in rows]
        if True not in ours:
            return tip, tip
        newest = ours.index(True)
        below = next((at for at in range(newest, len(rows)) if not ours[at]), None)
        return (None if below is None else rows[below][0]), rows[newest][0]

    def _begin(self, root: Path, files: Sequence[LandedFile], whole: bool) -> None:
        start, last, tip = self._start, self._last, self._tip
        # What the user's files hold and the start does not; what others committed on top.
        tracked, differ = self._listed(start), self._differing(start)
        others = self._differing(last, tip) if last is not None and tip is not None else set[str]()
        try:
            chosen = self._divide(root, files, tracked, differ | others)
        except LandingRefused as refused:
            said = str(refused).replace("nothing landed", "nothing was committed", 1)
            raise LandingRefused(said, refused.refused) from None
        if whole and last != start and last is not None:
            for name in (self._differing(start, last) if start else self._listed(last)) - set(chosen):
                self._take_back(name)

    def _listed(self, commit: str | None) -> set[str]:
        asked = ("ls-tree", "-r", "-z", "--name-only")
        return set(self._git.names(*asked, commit)) if commit is not None else set()

    def _differing(self, *commits: str | None) -> set[str]:
        given = [commit for commit in commits if commit is not None]
        return set(self._git.names("diff", *DIFFERS, *given)) if given else set()

    def _take(self, name: str, file: LandedFile) -> None:
        super()._take(name, file)
        after = as_git_knows(file.after)
        if after is None:
            return
        path = self._files / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if after.kind == "symlink":
            path.symlink_to(after.target or "")
            return
        assert after.content is not None, "files have bytes"
        path.write_bytes(after.content.read())
        path.chmod(after.mode)

    def _apart(self, name: str, file: LandedFile) -> str:
        start = self._there(self._start, name)
        wanted = decide(as_git_knows(file.before), start, as_git_knows(file.after))
        if wanted.action == "conflict":
            return "your own file there differs from what the git branch began with, and the changes overlap"
        return self._merge(name, wanted.result if wanted.action == "take" else start)

    def _take_back(self, name: str) -> None:
        """What the agent changed no more is as the branch began with."""
        self._merge(name, self._there(self._start, name))

    def _merge(self, name: str, wanted: Side | None) -> str:
        there = self._there(self._tip, name)
        found = decide(self._there(self._last, name), there, wanted)
        if found.action == "conflict":
            return f"the git branch {self._branch} has other content there, and the changes overlap"
        result = found.result if found.action == "take" else there
        self._entries.committed[name] = self._info(name, result)
        return ""

    def _there(self, commit: str | None, name: str) -> Side | None:
        return self._side("ls-tree", "-z", commit, "--", name) if commit is not None else None

    def _written(self, index: Path) -> str:
        git = UsersGit(self._files, self._own, index, self._git_dir, obeys=self._own)
        if self._tip is not None:
            git.run("read-tree", "--no-sparse-checkout", self._tip)
        else:
            git.run("read-tree", "--empty")
        listed = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        git.run(*listed, stdin=zeroed(self._entries.plain))
        put_entries(git, list(self._entries.committed.values()))
        return os.fsdecode(git.run("write-tree")).strip()

    def make(self) -> LandedCommit:
        """Commit the tree and point the branch at it, if it is still where it was."""
        try:
            return self._commit_tree()
        except (GitFailed, OSError) as error:
            return LandedCommit(self._branch, said=with_help(error, self._top))

    def _commit_tree(self) -> LandedCommit:
        git, tip = self._git, self._tip
        left = tuple(f"{name} {why}: it is in no commit" for name, why in self._entries.left_out.items())
        before = git.text("rev-parse", f"{tip}^{{tree}}") if tip else None
        if self._tree == before or not self._entries.names:
            where = self._branch if self._old else "your branch"
            said = f"{where} has all of it already" if self._entries.names else NOTHING_OF_IT
            return LandedCommit(self._branch, said=said, notes=left)
        signs = self._own and git.text("config", "--type=bool", "commit.gpgsign") == "true"
        options = [*(["-S"] if signs else []), *(["-p", tip] if tip else []), "-F", "-"]
        made = os.fsdecode(git.run("commit-tree", *options, self._tree, stdin=self._message.encode())).strip()
        subject = git.text("log", "-1", "--format=%s", made) or ""
        why = f"commit: {subject}"
        git.run("update-ref", "--create-reflog", "-m", why, self._ref, made, self._old or _NOTHING)
        said = "no hook ran: the branch is not checked out"
        if not self._own:
            said += ", and nothing was signed: a server made the commit"
        return LandedCommit(self._branch, made, subject, notes=(*left, said))
