"""Running git on repositories of the user's, or of our own making, never on the branch's.

An agent can write a repository's configuration, and a landing may bring it in. So git starts with our own
configuration, and of what a repository's says only values about content count: whatever else stands there is
set to nothing, so that no filter, driver, hook, pager, helper, signer or transport of its naming runs. Here:
that, and one process with a time limit, bounded output and no network. Not here: what is asked of git
(`quarantine.py`, `arrival.py`), git as the user configured it (`users_git.py`).
"""

import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO

import msgspec

from bowerbird.core.errors import WorkspaceError
from bowerbird.core.processes import host_programs
from bowerbird.core.processes.host_programs import HostProcess

TIME_LIMIT_S = 60.0
_SLOWEST = 2 * 1024**2  # bytes of objects that git looks through in a second, on a busy machine
_MOST_OUTPUT = 16 * 1024**2
_MOST_COMPLAINT = 2_000
_MOST_MEMORY = 8 * 1024**3
_CHUNK = 1024 * 1024
_MOST_KNOWN = 256
# The command line wins over a repository's configuration.
HARMLESS = tuple(
    part
    for setting in (
        "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.sshCommand=false", "core.pager=cat",
        "core.alternateRefsCommand=", "credential.helper=", "log.showSignature=false",
        "gc.auto=0", "maintenance.auto=false",
        "submodule.recurse=false",
    )
    for part in ("-c", setting)
)  # fmt: skip
UNSIGNED = ("-c", "commit.gpgSign=false")
_OURS = (
    *HARMLESS, "-c", "core.attributesFile=/dev/null", "-c", "core.packedGitWindowSize=64m",
    "-c", "core.packedGitLimit=512m", "-c", "core.fsync=committed,loose-object,reference",
)  # fmt: skip
_OLDEST = (2, 31)  # from then on values come by the environment
# What stays of a repository's configuration: values that say how content is read, named and compared.
_PLAIN = re.compile(
    r"core\.(repositoryformatversion|bare|worktree|filemode|symlinks|ignorecase|precomposeunicode|protecthfs"
    r"|protectntfs|autocrlf|eol|safecrlf|checkroundtripencoding|abbrev|quotepath|whitespace|commentchar"
    r"|commentstring|sparsecheckout|sparsecheckoutcone|logallrefupdates|sharedrepository|splitindex"
    r"|untrackedcache|trustctime|checkstat|excludesfile|compression|loosecompression|bigfilethreshold"
    r"|preloadindex|multipackindex|commitgraph|warnambiguousrefs|usereplacerefs|deltabasecachelimit"
    r"|longpaths|fscache|hidedotfiles)"
    r"|extensions\..+|branch\..+|index\.[^.]+|pack\.[^.]+|i18n\.[^.]+|log\.[^.]+|feature\.[^.]+"
    r"|(user|author|committer)\.(name|email|useconfigonly|signingkey)|gpg\.format|init\.defaultbranch"
    r"|remote\..+\.(url|pushurl|fetch|push|promisor|partialclonefilter|tagopt|prune|mirror)"
    r"|submodule\..+\.(url|active|path|branch|ignore)|diff\.[^.]+|diff\..+\.(xfuncname|binary|algorithm)"
    r"|merge\.[^.]+|commit\.(cleanup|verbose|gpgsign)|tag\.gpgsign|status\.[^.]+|apply\.[^.]+|rerere\.[^.]+|format\.pretty"
)
_PROGRAMS = frozenset(("diff.external", "diff.tool", "diff.guitool", "merge.tool", "merge.guitool"))
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
    return host_programs.find_program("git")


@lru_cache(maxsize=1)
def _version() -> tuple[int, ...]:
    said = host_programs.run([git_program() or "git", "--version"], timeout=TIME_LIMIT_S).stdout
    return tuple(int(part) for part in re.findall(rb"\d+", said)[:2])


def start_git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    values: Mapping[str, str] | None = None,
    stdin: IO[bytes] | int,
    stderr: IO[bytes] | int,
) -> HostProcess:
    """Start git, its answer on a pipe, in a process group of its own. Every git of the host begins here.

    Args:
        values: of its configuration, above those of the repository.

    Raises:
        GitFailed: there is no git, or it is too old to be given values.
    """
    program = git_program()
    if program is None:
        raise GitFailed("git is not installed here")
    given = dict(env)
    if values:
        if _version() < _OLDEST:
            raise GitFailed(f"git {'.'.join(map(str, _version()))} is too old; git 2.31 or newer is needed")
        given["GIT_CONFIG_COUNT"] = str(len(values))
        for number, (key, value) in enumerate(values.items()):
            given |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return host_programs.popen(
        [program, *arguments], cwd=cwd, env=given, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr,
        start_new_session=True,
    )  # fmt: skip


def without_programs(keys: Iterable[str]) -> dict[str, str]:
    """Return values that take from a repository's configuration all but what is about content.

    Args:
        keys: that it sets, as git prints them.

    Example:
        >>> without_programs(["core.bare", "filter.x.smudge", "merge.tool"])
        {'filter.x.smudge': '', 'merge.tool': ''}
    """
    return {key: "" for key in keys if not _PLAIN.fullmatch(key) or key in _PROGRAMS}


_known: dict[Path, tuple[object, dict[str, str]]] = {}


def _without_programs_of(git_dir: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Ask git what a repository's configuration sets; again only when one of its files has changed."""
    stamp = tuple(map(_stamp, (git_dir / "config", git_dir / "config.worktree", _common(git_dir) / "config")))
    known = _known.get(git_dir)
    if known is not None and known[0] == stamp:
        return known[1]
    with start_git(
        ["config", "--includes", "--null", "--name-only", "--list"], cwd=git_dir, env=env,
        stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process, _Ending(process, TIME_LIMIT_S):  # fmt: skip
        assert process.stdout is not None, "asked for"
        keys = os.fsdecode(process.stdout.read(_MOST_OUTPUT)).split("\0")[:-1]
    found = without_programs(keys)
    if not any(key.startswith("include") for key in keys):
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        _known[git_dir] = (stamp, found)
    return found


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _common(git_dir: Path) -> Path:
    try:
        return git_dir / (git_dir / "commondir").read_text().strip()
    except (OSError, ValueError):
        return git_dir


class Git(msgspec.Struct, frozen=True):
    """One repository.

    Attributes:
        git_dir: its directory; git looks for no other.
        work_tree: the top of its files, None where none are looked at.
        time_limit_s: of each process.
        index: another index than the repository's.
    """

    git_dir: Path
    work_tree: Path | None = None
    time_limit_s: float = TIME_LIMIT_S
    index: Path | None = None

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
        env = self._environment(identity)
        values = _without_programs_of(self.git_dir, env)
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as complaints:
            if isinstance(stdin, bytes):
                given.write(stdin)
                given.seek(0)
            process = start_git(
                [*_FLAGS, *_OURS, *arguments],
                cwd=self.work_tree or self.git_dir,
                env=env,
                values=values,
                stdin=given if isinstance(stdin, bytes) else stdin,
                stderr=complaints,
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
            "PATH": host_programs.usable_path(), "LC_ALL": "C", "HOME": "/nonexistent",
            "GIT_DIR": str(self.git_dir), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "GIT_PAGER": "cat", "GIT_EDITOR": "false",
            "GIT_COMMITTER_NAME": identity, "GIT_COMMITTER_EMAIL": "bowerbird@localhost",
        }  # fmt: skip
        if self.index is not None:
            found["GIT_INDEX_FILE"] = str(self.index)
        return found if self.work_tree is None else found | {"GIT_WORK_TREE": str(self.work_tree)}


class _Ending:
    """Kills a process and its children when its time is over, or when the block is left."""

    def __init__(self, process: HostProcess, limit_s: float) -> None:
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


def _copied(process: HostProcess, out: IO[bytes], most: int) -> int:
    assert process.stdout is not None, "asked for"
    written = 0
    while written <= most and (data := process.stdout.read(_CHUNK)):
        out.write(data)
        written += len(data)
    return written
