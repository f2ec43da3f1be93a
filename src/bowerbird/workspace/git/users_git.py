"""Git as the user configured it, in a repository of theirs.

For a person at this machine, or for a server, which takes of the user's configuration what is about content
and the filters (git-lfs), and no program that the repository names. Here: one process of it. Not here: what
is committed (`committing.py`), git on anything that a branch wrote (`running.py`).
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bowerbird.core.processes.host_programs import plain_environment
from bowerbird.workspace.git.running import HARMLESS, UNSIGNED, GitFailed, start_git, without_programs

TIME_LIMIT_S = 600.0  # hooks may run a project's tests
_MOST_SAID = 2_000
_NOT_OURS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)
_OF_REPOSITORY = ("local", "worktree")
_FILTERS = ("filter.", "lfs.")
_ALONE = {
    "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat", "GIT_LFS_SKIP_SMUDGE": "1",
}  # fmt: skip
_OF_PEOPLE = ("EMAIL", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


class UsersGit(msgspec.Struct, frozen=True):
    """Git in a directory of the user's.

    Attributes:
        place: where it runs; git finds the repository as it would for the user.
        own: the user sits here: what their configuration names may run. Otherwise only their filters may.
        obeys: so may what the repository's own configuration and hooks name: a person's own commit.
        index: another index than the repository's.
        git_dir: of the repository, where `place` is no working tree of it but holds files as if it were.
        limit_s: of one command.
    """

    place: Path
    own: bool
    index: Path | None = None
    git_dir: Path | None = None
    limit_s: float = TIME_LIMIT_S
    obeys: bool = False

    def run(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> bytes:
        """Return what a command prints.

        Args:
            variables: of its environment, besides the user's.

        Raises:
            GitFailed: with what git or a hook said.
        """
        values = {} if self.obeys else self._values()
        harmless = () if self.obeys else HARMLESS if self.own else (*HARMLESS, *UNSIGNED)
        env = self._environment() | dict(variables or {})
        process = start_git(
            [*harmless, *arguments],
            cwd=self.place,
            env=env,
            values=values,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            out, complaint = process.communicate(stdin, self.limit_s)
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git {_command(arguments)} took longer than {self.limit_s:.0f} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):  # it ended meanwhile
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode:
            said = complaint.decode("utf-8", "replace").strip() or out.decode("utf-8", "replace").strip()
            raise GitFailed(
                f"git {_command(arguments)}: {said[-_MOST_SAID:] or 'no reason given'}", process.returncode
            )
        return out

    def text(self, *arguments: str) -> str | None:
        """Return the line that a command prints; None where it fails."""
        try:
            return os.fsdecode(self.run(*arguments)).removesuffix("\n")
        except GitFailed:
            return None

    def repository_keys(self) -> list[str]:
        """Return what the repository's own configuration sets."""
        return [key for scope, key, _ in self._rows() if scope in _OF_REPOSITORY]

    def names(self, *arguments: str, stdin: bytes = b"") -> list[str]:
        """Return what a command prints between zero bytes."""
        return [os.fsdecode(name) for name in self.run(*arguments, stdin=stdin).split(b"\0") if name]

    def _values(self) -> dict[str, str]:
        """Return values that leave no program but those of the user that may run."""
        rows = self._rows()
        users = {
            key: value
            for scope, key, value in rows
            if scope not in _OF_REPOSITORY and (self.own or key.startswith(_FILTERS))
        }
        others = [key for scope, key, _ in rows if scope in _OF_REPOSITORY or key not in users]
        return {key: users.get(key, "") for key in without_programs(others)}

    def _rows(self) -> list[tuple[str, str, str]]:
        """Return scope, key and value of all that counts here; starts nothing that they name."""
        with start_git(
            ["config", "--includes", "--null", "--show-scope", "--list"], cwd=self.place,
            env=self._environment(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            listed = os.fsdecode(process.communicate()[0]).split("\0")[:-1]
        pairs = (row.partition("\n") for row in listed[1::2])
        return [(scope, key, value) for scope, (key, _, value) in zip(listed[::2], pairs, strict=False)]

    def _environment(self) -> dict[str, str]:
        if self.own:
            found = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        else:
            found = plain_environment(*_OF_PEOPLE) | _ALONE
        found |= {"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C.UTF-8"}
        if self.git_dir is not None:
            found |= {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.place)}
        return found if self.index is None else found | {"GIT_INDEX_FILE": str(self.index)}


def _command(arguments: Sequence[str]) -> str:
    """Return the word of a command line that says what git does."""
    return arguments[2] if arguments[0] == "-c" else arguments[0]


def zeroed(names: "list[str] | tuple[str, ...]") -> bytes:
    """Return names as git reads them with `-z`."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)
