"""Running git on repositories of the user's, or of our own making, never on the branch's.

Here: one process with a time limit, bounded output, no hooks, no network and no configuration but the
repository's own. Not here: what is asked of git (`quarantine.py`, `arrival.py`).
"""

import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

import msgspec

from bowerbird.core.errors import WorkspaceError

TIME_LIMIT_S = 60.0
_SLOWEST = 2 * 1024**2  # bytes of objects that git looks through in a second, on a busy machine
_MOST_OUTPUT = 16 * 1024**2
_MOST_COMPLAINT = 2_000
_MOST_MEMORY = 8 * 1024**3
_CHUNK = 1024 * 1024
# The command line wins over a repository's configuration; nothing that one can name is started.
_HARMLESS = tuple(
    part
    for setting in (
        "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null",
        "core.sshCommand=false", "core.pager=cat", "core.alternateRefsCommand=", "credential.helper=",
        "log.showSignature=false", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false",
        "core.packedGitWindowSize=64m", "core.packedGitLimit=512m",
        "core.fsync=committed,loose-object,reference",
    )
    for part in ("-c", setting)
)  # fmt: skip
_LACKS = re.compile(
    r"\b(?:bad|missing|corrupt|is empty|unable to (?:read|parse)|could not read|cannot be read"
    r"|failed to (?:read|traverse)|did not receive|not a valid|unexpected type)\b",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"\b[0-9a-f]{2}/?[0-9a-f]{38}(?:[0-9a-f]{24})?\b")
_FLAGS = ("--no-replace-objects", "--no-optional-locks", "--literal-pathspecs")


class GitFailed(WorkspaceError):
    """Git did not do what was asked; the message is git's own, shortened.

    Attributes:
        exit_code: git's, None where it came to none.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    @property
    def lacking(self) -> str | None:
        """The object that git did not find, or could not read; "" where it does not say which.

        None where it failed for another reason.
        """
        text = str(self)
        if not _LACKS.search(text):
            return None
        found = _OBJECT.search(text)
        return "" if found is None else found[0].replace("/", "")


def alternate(objects: Path) -> bytes:
    """Return the line of `objects/info/alternates` that names a directory of objects (gitrepository-layout).

    Example:
        >>> alternate(Path("/srv/two\\nlines/objects"))
        b'"/srv/two\\\\nlines/objects"\\n'
    """
    name = os.fsencode(objects)
    if b"\n" in name:  # only then is it quoted, as C quotes: older gits do not know that
        name = b'"' + name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
    return name + b"\n"


@lru_cache(maxsize=1)
def git_program() -> str | None:
    """Return the path of `git`, None where it is not installed."""
    return shutil.which("git")


class Git(msgspec.Struct, frozen=True):
    """One repository.

    Attributes:
        git_dir: its directory; git looks for no other.
        work_tree: the top of its files, None where none are looked at.
        time_limit_s: of each process.
    """

    git_dir: Path
    work_tree: Path | None = None
    time_limit_s: float = TIME_LIMIT_S

    def with_time_for(self, size: int) -> "Git":
        """Return the same with time for objects of a size in bytes."""
        return msgspec.structs.replace(self, time_limit_s=self.time_limit_s + size / _SLOWEST)

    def run(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        most: int = _MOST_OUTPUT,
        identity: str = "Bowerbird",
    ) -> bytes:
        """Return what a command prints.

        Raises:
            GitFailed: it failed, took too long, or printed more than `most` bytes.
        """
        with tempfile.TemporaryFile() as out:
            self.run_to(out, *arguments, stdin=stdin, most=most, identity=identity)
            out.seek(0)
            return out.read()

    def says(self, *arguments: str) -> bool:
        """Whether a command that answers by its exit code says yes; raises GitFailed for other codes."""
        try:
            self.run(*arguments)
        except GitFailed as error:
            if error.exit_code != 1:
                raise
            return False
        return True

    def run_to(
        self,
        out: IO[bytes],
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        most: int = _MOST_OUTPUT,
        identity: str = "Bowerbird",
    ) -> None:
        """Write what a command prints to a file; raises as `run` does."""
        program = git_program()
        if program is None:
            raise GitFailed("git is not installed here")
        command = [program, *_FLAGS, *_HARMLESS, *arguments]
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaints:
            if isinstance(stdin, bytes):
                given.write(stdin)
                given.seek(0)
            process = subprocess.Popen(
                command,
                stdin=given if isinstance(stdin, bytes) else stdin,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=self._environment(identity),
                cwd=self.work_tree or self.git_dir,
                start_new_session=True,
            )
            ending = _Ending(process, self.time_limit_s)
            with process, ending:
                written = _copied(process, out, most)
                if written > most:
                    ending.kill()
                process.wait()
            what = arguments[0]
            if ending.late:
                raise GitFailed(f"git {what} took longer than {self.time_limit_s:.0f} s")
            if written > most:
                raise GitFailed(f"git {what} gave more than {most:,} bytes")
            if process.returncode:
                complaints.seek(0)
                text = complaints.read(_MOST_COMPLAINT).decode("utf-8", "replace")
                lines = [line.strip() for line in text.splitlines() if line.strip()]
                said = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
                said = said or (lines[0] if lines else "no reason given")
                raise GitFailed(f"git {what}: {said.removeprefix('fatal: ')}", process.returncode)

    def _environment(self, identity: str) -> dict[str, str]:
        found = {
            "PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent",
            "GIT_DIR": str(self.git_dir), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "GIT_PAGER": "cat", "GIT_EDITOR": "false",
            "GIT_COMMITTER_NAME": identity, "GIT_COMMITTER_EMAIL": "bowerbird@localhost",
        }  # fmt: skip
        return found if self.work_tree is None else found | {"GIT_WORK_TREE": str(self.work_tree)}


class _Ending:
    """Kills a process and its children when its time is over, or when the block is left."""

    def __init__(self, process: "subprocess.Popen[bytes]", limit_s: float) -> None:
        self._process = process
        self._alarm = threading.Timer(limit_s, self._too_late)
        self.late = False
        _bound_memory(process.pid)

    def __enter__(self) -> None:
        self._alarm.start()

    def __exit__(self, *_: object) -> None:
        self._alarm.cancel()
        if self._process.returncode is None:
            self.kill()

    def _too_late(self) -> None:
        self.late = True
        self.kill()

    def kill(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # it ended meanwhile
                os.killpg(self._process.pid, signal.SIGKILL)


def _bound_memory(pid: int) -> None:
    with suppress(OSError, ValueError):  # it has ended, or the user's own limit is lower
        resource.prlimit(pid, resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))


def _copied(process: "subprocess.Popen[bytes]", out: IO[bytes], most: int) -> int:
    assert process.stdout is not None, "asked for"
    written = 0
    while written <= most and (data := process.stdout.read(_CHUNK)):
        out.write(data)
        written += len(data)
    return written
