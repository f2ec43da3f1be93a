"""The user's own git, for commits that the user asks for: their identity, signature and hooks (GI-9).

Here: one process of it in the user's repository. Not here: what is committed (`committing.py`), git on
anything that a branch wrote (`running.py`).
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bowerbird.workspace.git.running import GitFailed, git_program

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
# For who is not known to sit at this machine: nothing that a repository can name is started.
_NO_PROGRAMS = tuple(
    part
    for setting in (
        "core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgsign=false", "gc.auto=0",
        "maintenance.auto=false", "core.pager=cat", "submodule.recurse=false",
    )
    for part in ("-c", setting)
)  # fmt: skip


class UsersGit(msgspec.Struct, frozen=True):
    """Git in a directory of the user's.

    Attributes:
        place: where it runs; git finds the repository as it would for the user.
        own: the user runs it: hooks, signature and filters of theirs apply. Otherwise only git runs.
        index: another index than the repository's.
        git_dir: of the repository, where `place` is no working tree of it but holds files as if it were.
        limit_s: of one command.
    """

    place: Path
    own: bool
    index: Path | None = None
    git_dir: Path | None = None
    limit_s: float = TIME_LIMIT_S

    def run(self, *arguments: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> bytes:
        """Return what a command prints.

        Args:
            variables: of its environment, besides the user's.

        Raises:
            GitFailed: with what git or a hook said.
        """
        program = git_program()
        if program is None:
            raise GitFailed("git is not installed here")
        process = subprocess.Popen(
            [program, *(() if self.own else _NO_PROGRAMS), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.place,
            env=self._environment() | dict(variables or {}), start_new_session=True,
        )  # fmt: skip
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

    def names(self, *arguments: str, stdin: bytes = b"") -> list[str]:
        """Return what a command prints between zero bytes."""
        return [os.fsdecode(name) for name in self.run(*arguments, stdin=stdin).split(b"\0") if name]

    def _environment(self) -> dict[str, str]:
        found = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
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
