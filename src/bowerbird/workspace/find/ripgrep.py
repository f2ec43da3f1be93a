"""Running ripgrep: counting matching lines in many files, numbering them in a few.

Here: finding the program, its command line, its output, its complaints about patterns.
Not here: which files are searched, records, reading the lines (`search.py`).

ripgrep only says which lines match. Their text is read through our own handles, so a link
that is swapped in while it runs can show nothing from outside (WS-12). No configuration of
the user is read, no link followed, and the regular expressions are linear-time (WS-33).
"""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bowerbird.core.errors import InvalidPattern
from bowerbird.core.processes.host_programs import find_program, popen, run

_MOST_ARGUMENT_BYTES = 1_000_000
_MOST_EXCLUDED = 1000
_PLAIN_SUFFIX = re.compile(r"[A-Za-z0-9._-]+")
_NOTHING = os.fsencode(os.devnull)  # without any file ripgrep would search where it stands
_NO_PCRE2 = ("look-around", "backreferences")


class Query(msgspec.Struct, frozen=True):
    """What lines are wanted.

    Attributes:
        pattern: a regular expression, or plain text when `fixed`.
    """

    pattern: str
    fixed: bool = False
    case_sensitive: bool = True


class Running:
    """One search process; its output goes to a file, so it never waits for a reader."""

    def __init__(self, command: Sequence[str | bytes], cwd: Path | None, stdin: bytes | None = None) -> None:
        self._out = tempfile.TemporaryFile()  # noqa: SIM115  # closed by wait()
        self._err = tempfile.TemporaryFile()  # noqa: SIM115  # closed by wait()
        self._lock = threading.Lock()
        self._killed = False
        try:
            self._process = popen(
                command,
                cwd=cwd,
                stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                stdout=self._out,
                stderr=self._err,
                env={"LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        except BaseException:
            self._out.close()
            self._err.close()
            raise
        if stdin is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(stdin)
                self._process.stdin.close()
            except BrokenPipeError:
                self._process.stdin = None  # it died at once; its exit status says why

    def kill(self) -> None:
        """End the process, if it still runs; from any thread."""
        with self._lock:
            if self._process.poll() is None:
                self._killed = True
                self._process.kill()

    def wait(self, deadline: float) -> tuple[bytes, str, bool]:
        """Wait until the process ends or `deadline` (`time.monotonic`) passes, then release it.

        Returns:
            Output, complaints, and whether it ended by itself.
        """
        # Not `wait(timeout)`: that sleeps in steps of up to 50 ms between looks.
        alarm = threading.Timer(max(0.0, deadline - time.monotonic()), self.kill)
        alarm.start()
        try:
            self._process.wait()
        finally:
            alarm.cancel()
        ended = not self._killed
        with self._out, self._err:
            self._out.seek(0)
            self._err.seek(0)
            return (
                self._out.read(),
                self._err.read(64 * 1024).decode("utf-8", "replace"),
                ended and not self._killed,
            )


def find_ripgrep() -> str | None:
    """Return the path of the installed `rg`: beside this Python first, then on PATH."""
    beside = os.pathsep.join([sysconfig.get_path("scripts"), str(Path(sys.executable).parent)])
    return find_program("rg", beside) or find_program("rg")


class Ripgrep:
    """The `rg` program.

    Args:
        program: its path.
    """

    name = "ripgrep"
    walks = True

    def __init__(self, program: str) -> None:
        self._program = program
        self._pcre2 = False

    def works(self) -> bool:
        """Tell whether the program starts at all."""
        try:
            done = run([self._program, "--version"], timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0

    def _command(self, query: Query, *options: str) -> list[str | bytes]:
        command: list[str | bytes] = [
            self._program, "--no-config", "--color=never", "--no-heading", "--with-filename", "--null",
            "--no-messages", "--text", "--no-ignore", "--hidden", "--no-follow",
            "--case-sensitive" if query.case_sensitive else "--ignore-case",
            *options,
        ]  # fmt: skip
        if query.fixed:
            command.append("--fixed-strings")
        elif "$" in query.pattern:
            command.append("--crlf")  # `$` fits before \r\n, which reading shows as \n
        if self._pcre2 and not query.fixed:
            command.append("--pcre2")
        return [*command, "-e", os.fsencode(query.pattern)]

    def count_tree(
        self,
        query: Query,
        root: Path,
        start: str,
        *,
        excluded: Sequence[str],
        suffixes: Sequence[str],
        largest: int | None,
    ) -> Running:
        """Start counting in everything below `root` + `start`; output paths begin with `./`.

        Args:
            excluded: virtual paths of directories to leave out, as far as the command line holds.
            suffixes: only names that end so; empty = all.
            largest: leave out larger files, in bytes.
        """
        options = ["--count"]
        if largest is not None:
            options.append(f"--max-filesize={largest}")
        if all(_PLAIN_SUFFIX.fullmatch(suffix) for suffix in suffixes):
            options += [f"--glob=*{suffix}" for suffix in suffixes]
        for path in excluded[:_MOST_EXCLUDED]:
            if "\n" not in path and path.isprintable():
                options.append("--glob=!" + re.sub(r"([\\*?\[\]{}!])", r"\\\1", path))
        return Running([*self._command(query, *options), "--", b"." + os.fsencode(start)], root)

    def count_files(self, query: Query, files: Sequence[bytes]) -> Running:
        """Start counting in some files (see `batches`)."""
        return Running([*self._command(query, "--count"), "--", *(files or [_NOTHING])], None)

    def number_lines(self, query: Query, files: Sequence[bytes], most: int = 0) -> Running:
        """Start listing the numbers of matching lines in some files, the first `most` of each; 0 = all."""
        # The text itself is left out (one byte at most): it is read through handles later.
        options = ["--line-number", "--max-columns=1", *([f"--max-count={most}"] if most else [])]
        return Running([*self._command(query, *options), "--", *(files or [_NOTHING])], None)

    def check(self, complaints: str, query: Query) -> bool:
        """Tell whether the search must be started again, with another engine of ripgrep.

        Raises:
            InvalidPattern: naming the construct that cannot be used.
        """
        if "error:" not in complaints and not complaints.startswith("rg: "):
            return False
        construct = next((name for name in _NO_PCRE2 if name in complaints), None)
        if construct is not None and not self._pcre2 and self._has_pcre2():
            self._pcre2 = True
            return True
        raise InvalidPattern(_explain(complaints, query, construct))

    def _has_pcre2(self) -> bool:
        done = run([self._program, "--pcre2-version"], timeout=10)
        return done.returncode == 0


def _explain(complaints: str, query: Query, construct: str | None) -> str:
    if construct is not None:
        return (
            f"pattern {query.pattern!r} uses {construct}, which the installed ripgrep cannot do "
            "(it has no PCRE2); search for a simpler pattern and look at the lines"
        )
    reason = complaints.rpartition("error:")[2].strip().partition("\n\n")[0] or complaints.strip()
    return f"pattern {query.pattern!r}: {' '.join(reason.split())}"


def batches(files: Sequence[bytes]) -> list[list[bytes]]:
    """Split paths so that each part fits on a command line."""
    parts: list[list[bytes]] = [[]]
    size = 0
    for file in files:
        size += len(file) + 9  # the pointer and the final zero count, too
        if size > _MOST_ARGUMENT_BYTES and parts[-1]:
            parts.append([])
            size = len(file) + 9
        parts[-1].append(file)
    return parts


def parse_counts(output: bytes) -> dict[bytes, int]:
    """Read `path NUL count` lines; a last line that was cut is left out."""
    found: dict[bytes, int] = {}
    at = 0
    while (end := output.find(b"\0", at)) >= 0:
        line = output.find(b"\n", end)
        if line < 0:
            break
        found[output[at:end]] = int(output[end + 1 : line])
        at = line + 1
    return found


def parse_numbers(output: bytes) -> dict[bytes, list[int]]:
    """Read `path NUL number:text` lines; a last line that was cut is left out."""
    found: dict[bytes, list[int]] = {}
    at = 0
    while (end := output.find(b"\0", at)) >= 0:
        line = output.find(b"\n", end)
        if line < 0:
            break
        found.setdefault(output[at:end], []).append(int(output[end + 1 : line].partition(b":")[0]))
        at = line + 1
    return found
