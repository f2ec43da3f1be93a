"""A landing as one commit of the user's (GI-9, UI-78).

Here: what of each landed path belongs into the commit, the commit, and what the index holds afterwards. Not
here: the process of git (`users_git.py`), landing files.

The commit has the landed difference and nothing else: where the user had edits of their own in a file, or
had staged some, they stay in the file and in the index. Whatever cannot be told apart is refused before
anything lands. The index learns the paths before the commit is made: whoever is killed in between leaves
them staged, and never an index that takes the commit back.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bowerbird.core.errors import InvalidArgument, LandingRefused
from bowerbird.workspace.git.apart import in_git
from bowerbird.workspace.git.lacking import with_help
from bowerbird.workspace.git.landed_history import LandedCommit
from bowerbird.workspace.git.moving import wait_for_index
from bowerbird.workspace.git.repository import under_way
from bowerbird.workspace.git.running import GitFailed
from bowerbird.workspace.git.users_git import UsersGit, zeroed
from bowerbird.workspace.tree.content import Content
from bowerbird.workspace.tree.threeway import Side, decide

_NOTHING = "0" * 40
TRAILER = "Bowerbird-Session"
DIFFERS = (
    "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules",
)  # fmt: skip
ELSEWHERE = "nothing landed: --commit found no git repository that it can use here: "
NOTHING_OF_IT = "none of it is for this repository to commit"
NOBODY = (
    "nothing landed: git does not know in whose name it commits; run git config --global user.name NAME"
    " and git config --global user.email ADDRESS, or land without a commit"
)


class LandedFile(msgspec.Struct, frozen=True):
    """A path of a landing: what stood there, and what stands there afterwards."""

    path: str
    before: Side | None
    after: Side | None


class _Entries(msgspec.Struct):
    """Names below the repository's top: read from the files as they land, or told apart beforehand."""

    plain: list[str] = msgspec.field(default_factory=list[str])
    committed: dict[str, bytes] = msgspec.field(default_factory=dict[str, bytes])
    staged: dict[str, bytes] = msgspec.field(default_factory=dict[str, bytes])
    left_out: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def names(self) -> list[str]:
        return [*self.plain, *self.committed]


class Committing:
    """One commit of what lands: `prepare` before, `make` after the files are in place.

    Args:
        message: the commit's. session: named in its trailer. own: see `UsersGit`.

    Attributes:
        aside: it goes on a branch that is not checked out, and no file lands.
    """

    aside = False

    def __init__(self, message: str, session: str, *, own: bool) -> None:
        self._message = with_trailer(message, session)
        self._own = own
        self._entries = _Entries()

    def prepare(self, root: Path, files: Sequence[LandedFile], *, whole: bool = False) -> None:
        """Find out what is to be committed; changes nothing of the user's.

        Args:
            whole: `files` are all that the branch changes.

        Raises:
            InvalidArgument: nothing can be committed in this repository now.
            LandingRefused: edits of the user's and what lands cannot be told apart in some paths.
        """
        try:
            self._open(root)
            self._sort(root, files)
        except GitFailed as error:
            raise InvalidArgument(f"{ELSEWHERE}{with_help(error, root)}") from error

    def _find(self, root: Path) -> UsersGit:
        """Find the repository, and whether a commit can be made in it at all."""
        here = UsersGit(root, self._own, obeys=self._own)
        self._top = Path(os.fsdecode(here.run("rev-parse", "--show-toplevel")).removesuffix("\n"))
        self._git = git = UsersGit(self._top, self._own, obeys=self._own)
        self._git_dir = Path(os.fsdecode(git.run("rev-parse", "--absolute-git-dir")).removesuffix("\n"))
        if git.text("var", "GIT_COMMITTER_IDENT") is None:
            raise InvalidArgument(NOBODY)
        if not self._own and any(key.startswith("filter.") for key in git.repository_keys()):
            raise InvalidArgument(
                "nothing landed: the configuration of this repository has filters, and a server runs no "
                "programs of a repository; land with --commit at its own machine"
            )
        self._head = git.text("rev-parse", "--verify", "-q", "HEAD^{commit}")
        if self._head is None and (lost := git.text("rev-parse", "--verify", "-q", "HEAD")):
            raise GitFailed(f"HEAD is at {lost}, which is missing")  # else it has no commit yet
        return git

    def _open(self, root: Path) -> None:
        git = self._find(root)
        busy = under_way(self._git_dir)
        if busy is not None:
            raise InvalidArgument(
                f"nothing landed: your repository is in the middle of a {busy}; "
                "finish it, or land without --commit"
            )
        branch = git.text("symbolic-ref", "-q", "--short", "HEAD")
        if branch is None:
            raise InvalidArgument(
                "nothing landed: no branch is checked out (HEAD is detached); git switch to one"
            )
        self._branch = branch
        if git.run("ls-files", "-u"):
            raise InvalidArgument("nothing landed: your index has unmerged paths; resolve them first")

    # ------------------------------------------------------------ before

    def _sort(self, root: Path, files: Sequence[LandedFile]) -> None:
        tracked = set(self._git.names("ls-files", "-z"))
        edited = set[str]() if self._head else tracked
        for staged in ((), ("--cached",)) if self._head else ():
            edited |= set(self._git.names("diff", *staged, *DIFFERS, str(self._head)))
        self._divide(root, files, tracked, edited)

    def _divide(
        self, root: Path, files: Sequence[LandedFile], tracked: Collection[str], edited: Collection[str]
    ) -> Collection[str]:
        """Say of each file how it comes into the commit; returns their names.

        Args:
            tracked: names that the commit's parent has, or the index. edited: those that may hold something
                else there than the file before the landing.
        """
        below = os.path.relpath(root.resolve(), self._top.resolve())
        named = {
            os.path.normpath(os.path.join(below, file.path.lstrip("/"))): file
            for file in files
            if not in_git(file.path) and not _is_directory(file)
        }
        rows = list[dict[str, str]]()
        beside = {name for name in named if _is_below_another(self._top, name)}
        ignored = _ignored(self._git, [name for name in named if name not in beside])
        marked = _marked(self._git)
        for name, file in named.items():
            why = ""
            if name in beside:
                self._entries.left_out[name] = "is in another repository, a submodule perhaps"
            elif name in ignored:
                self._entries.left_out[name] = "is ignored by git"
            elif name in marked and file.before is not None:
                # git would take a file that its index skips for one that is gone.
                self._entries.left_out[name] = "is marked skip-worktree in your index"
            elif name in edited:
                why = self._apart(name, file)
            elif name not in tracked and file.before is not None:
                why = "your own file there is in no commit yet: commit it first, or land without --commit"
            else:
                self._take(name, file)
            if why:
                rows.append({"path": file.path.lstrip("/"), "reason": why})
        if rows:
            few = "; ".join(f"{row['path']}: {row['reason']}" for row in rows[:5])
            raise LandingRefused(f"nothing landed: {few}", rows)
        return named.keys()

    def _take(self, name: str, file: LandedFile) -> None:
        """Take a file that only the landing changes."""
        self._entries.plain.append(name)

    def _apart(self, name: str, file: LandedFile) -> str:
        """Tell what lands in a file from the user's own edits in it; return why that cannot be done."""
        head = self._side("ls-tree", "-z", self._head, "--", name) if self._head else None
        index = self._side("--literal-pathspecs", "ls-files", "-s", "-z", "--", name)
        commit = decide(as_git_knows(file.before), head, as_git_knows(file.after))
        if commit.action == "conflict":
            return "you have edits there that are in no commit and overlap: commit or stash them first"
        committed = commit.result if commit.action == "take" else head
        stage = decide(head, index, committed)
        if stage.action == "conflict":
            return "you have staged edits there that overlap: commit or unstage them first"
        self._entries.committed[name] = self._info(name, committed)
        staged = stage.result if stage.action == "take" else index
        self._entries.staged[name] = self._info(name, staged)
        return ""

    def _side(self, *asked: str) -> Side | None:
        found = self._git.run(*asked).partition(b"\0")[0]
        if not found:
            return None
        words = found.partition(b"\t")[0].split()
        kind, blob = words[0].decode(), next(word.decode() for word in words[1:] if len(word) >= 40)
        name = os.fsdecode(found.partition(b"\t")[2])
        if kind == "120000":
            return Side("symlink", target=os.fsdecode(self._git.run("cat-file", "blob", blob)))
        data = self._git.run("cat-file", "--filters", f"--path={name}", blob)
        return as_git_knows(Side("file", 0o755 if kind == "100755" else 0o644, Content(data)))

    def _info(self, name: str, side: Side | None) -> bytes:
        """Return the line of an index that holds a version of a path."""
        if side is None:
            return f"0 {_NOTHING}\t".encode() + os.fsencode(name)
        if side.kind == "symlink":
            blob = self._git.run("hash-object", "-w", "--stdin", stdin=os.fsencode(side.target or ""))
            mode = "120000"
        else:
            assert side.content is not None, "files have bytes"
            blob = self._git.run("hash-object", "-w", f"--path={name}", "--stdin", stdin=side.content.read())
            mode = "100755" if side.executable else "100644"
        return f"{mode} {blob.decode().strip()}\t".encode() + os.fsencode(name)

    # ------------------------------------------------------------ after

    def make(self) -> LandedCommit:
        """Commit what was prepared, now that it has landed; a failure is told, for the files are in place."""
        try:
            made = self._made()
        except (GitFailed, OSError) as error:
            made = LandedCommit(self._branch, said=with_help(error, self._top))
        return made

    def _made(self) -> LandedCommit:
        git, entries = self._git, self._entries
        busy = under_way(self._git_dir)
        if busy is not None:
            return LandedCommit(self._branch, said=f"your repository is in the middle of a {busy} by now")
        if git.text("rev-parse", "--verify", "-q", "HEAD^{commit}") != self._head:
            return LandedCommit(self._branch, said="you committed while it landed")
        left = tuple(
            f"{name} {why}: it landed, and is in no commit" for name, why in entries.left_out.items()
        )
        with another_index(self._git_dir, self._top, own=self._own) as other:
            if self._head:
                other.run("read-tree", "-i", "-m", self._head)
            else:
                other.run("read-tree", "--empty")
            listed = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            other.run(*listed, stdin=zeroed(entries.plain))
            put_entries(other, list(entries.committed.values()))
            tree = os.fsdecode(other.run("write-tree")).strip()
            before = git.text("rev-parse", f"{self._head}^{{tree}}") if self._head else None
            if tree == before or not entries.names:
                said = "your branch has all of it already" if entries.names else NOTHING_OF_IT
                return LandedCommit(self._branch, said=said, notes=left)
            if not wait_for_index(self._git_dir):
                return LandedCommit(self._branch, said="another git holds index.lock", notes=left)
            return self._commit(other, left)

    def _commit(self, other: UsersGit, left: tuple[str, ...]) -> LandedCommit:
        git, entries = self._git, self._entries
        earlier = _indexed(git, entries.names)
        planned = _indexed(other, entries.plain) | entries.staged
        put_entries(git, [planned.get(name, self._info(name, None)) for name in entries.names])
        try:
            other.run("commit", "-q", "-F", "-", stdin=self._message.encode())
        except GitFailed:
            put_entries(git, [earlier.get(name, self._info(name, None)) for name in entries.names])
            raise
        made = str(git.text("rev-parse", "HEAD"))
        if git.text("rev-parse", "--verify", "-q", "HEAD^") != self._head:
            # Another commit came in the instant between: its content must not be taken back by ours.
            git.run("update-ref", "-m", "bowerbird: not on top of yours", "HEAD", f"{made}^", made)
            return LandedCommit(self._branch, said="you committed while it landed", notes=left)
        # What a hook changed in the commit is in the index, too, where the user had staged nothing there.
        after = _indexed(other, entries.plain)
        put_entries(git, [after[name] for name in after if after[name] != planned[name]])
        git.text("update-index", "-q", "--refresh")
        subject = git.text("log", "-1", "--format=%s", made) or ""
        if not self._own:
            left = (*left, "no hook of yours ran and nothing was signed: a server made the commit")
        return LandedCommit(self._branch, made, subject, notes=left)


def with_trailer(message: str, session: str) -> str:
    """Return a message whose last paragraph names the session.

    >>> with_trailer("Fix it\\n\\nSigned-off-by: Ann", "s_1")
    'Fix it\\n\\nSigned-off-by: Ann\\nBowerbird-Session: s_1\\n'
    """
    text = message.strip()
    last = text.split("\n\n")[1:][-1:] or [""]
    trailers = bool(last[0]) and all(
        ": " in line and " " not in line.split(": ")[0] for line in last[0].splitlines()
    )
    return f"{text}\n{'' if trailers else chr(10)}{TRAILER}: {session}\n"


def _marked(git: UsersGit) -> set[str]:
    """Return the names whose changes the user's index skips."""
    return {name[2:] for name in git.names("ls-files", "-t", "-z") if name[0] == "S"}


@contextmanager
def another_index(git_dir: Path, top: Path, *, own: bool) -> Generator[UsersGit]:
    """A copy of the index, so that what it knows of files need not be found out again."""
    with tempfile.TemporaryDirectory(prefix="bowerbird-commit-") as place:
        index = Path(place, "index")
        if (git_dir / "index").is_file():
            shutil.copyfile(git_dir / "index", index)
        yield UsersGit(top, own, index, obeys=own)


def put_entries(git: UsersGit, lines: Sequence[bytes]) -> None:
    if lines:
        git.run(
            "update-index", "--replace", "-z", "--index-info", stdin=b"".join(line + b"\0" for line in lines)
        )


def _indexed(git: UsersGit, names: Sequence[str]) -> dict[str, bytes]:
    """Return the lines of an index about some names."""
    wanted, found = set(names), dict[str, bytes]()
    for line in git.run("ls-files", "-s", "-z").split(b"\0"):
        about, _, name = line.partition(b"\t")
        if os.fsdecode(name) in wanted:
            mode, blob, _ = about.split()
            found[os.fsdecode(name)] = mode + b" " + blob + b"\t" + name
    return found


def _ignored(git: UsersGit, names: Sequence[str]) -> set[str]:
    if not names:
        return set()
    try:
        # It reads patterns: a name that begins with a colon must not be one.
        asked = zeroed([f"./{name}" for name in names])
        return {name[2:] for name in git.names("check-ignore", "-z", "--stdin", stdin=asked)}
    except GitFailed as error:
        if error.exit_code != 1:  # none is
            raise
        return set()


def _is_below_another(top: Path, name: str) -> bool:
    above = Path(name).parent
    return any(os.path.lexists(top / each / ".git") for each in (above, *above.parents) if each.parts)


def _is_directory(file: LandedFile) -> bool:
    return all(side is None or side.kind == "dir" for side in (file.before, file.after))


def as_git_knows(side: Side | None) -> Side | None:
    """Return a side with the permissions that git knows; a directory is nothing to it."""
    if side is None or side.kind == "dir":
        return None
    return side if side.kind != "file" else Side("file", 0o755 if side.executable else 0o644, side.content)
