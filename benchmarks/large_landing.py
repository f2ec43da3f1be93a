"""What a landing of very many files costs, beside `cp -r` and `sync` of the same files in the same run.

    python benchmarks/large_landing.py [--files 30000] [--data DIR] [--profile] [--git]

A third of the files is created, a third modified, a third deleted, in directories of 100, as a command's changes
are taken over. Printed: seconds of the plan, of the landing and its phases, of its undo; each also as a multiple
of the copy. Every file is looked at afterwards. `--git` makes the directory a repository with everything
committed. `--profile` prints where the landing's own time goes.
"""

import argparse
import asyncio
import cProfile
import pstats
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from bowerbird.core.events import LandingProgress
from bowerbird.sandbox.host import SandboxHost
from bowerbird.workspace import Branch, Workspace

BYTES = 2_000


CHANGE = """
import os, sys
count, size = int(sys.argv[1]), int(sys.argv[2])
for kind in ("created", "modified"):
    for number in range(count):
        name = f"{kind}/d{number // 100}/f{number}.txt"
        os.makedirs(os.path.dirname(name), exist_ok=True)
        open(name, "w").write(f"{name} 2\\n" + "line of this file\\n" * (size // 18))
for number in range(count):
    os.unlink(f"deleted/d{number // 100}/f{number}.txt")
"""


def text(name: str, version: int) -> str:
    """Different bytes for each file."""
    return f"{name} {version}\n" + "line of this file\n" * (BYTES // 18)


def names(kind: str, count: int) -> Iterator[str]:
    """Paths of one kind of change."""
    return (f"{kind}/d{number // 100}/f{number}.txt" for number in range(count))


def fill(root: Path, count: int, *, git: bool) -> None:
    """The directory as the branch finds it."""
    for kind in ("modified", "deleted"):
        for name in names(kind, count):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text(name, 1))
    if git:
        for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -qm all"):
            subprocess.run(["git", "-C", root, *words.split()], check=True)


async def change(branch: Branch, data: Path, count: int) -> None:
    """As a command in the sandbox does."""
    host = SandboxHost(data)
    try:
        sandbox = await host.sandbox(branch)
        program = ["python3", "-c", CHANGE, str(count), str(BYTES)]
        result = await sandbox.run(program, timeout=1200)
        assert result.exit_code == 0, result.output
    finally:
        await host.close()
    branch.end_turn()


def copied(place: Path, count: int) -> float:
    """Seconds of `cp -r` and `sync` of as many files as the landing writes."""
    source, target = place / "source", place / "copy"
    for kind in ("created", "modified"):
        for name in names(kind, count):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text(name, 2))
    subprocess.run(["sync"], check=True)
    began = time.perf_counter()
    subprocess.run(["cp", "-r", source, target], check=True)
    subprocess.run(["sync", "-f", target], check=True)
    return time.perf_counter() - began


class Phases:
    """When each phase began, by the clock and by the processor."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._times: list[tuple[float, float]] = []
        self._note("planning")

    def told(self, progress: LandingProgress) -> None:
        """Note a phase's first word."""
        if progress.phase not in self._names:
            self._note(progress.phase)

    def _note(self, name: str) -> None:
        self._names.append(name)
        self._times.append((time.perf_counter(), time.process_time()))

    def print(self, what: str, copy_s: float) -> None:
        """Say how long each took until now, and how much of it the processor was busy."""
        self._note("end")
        rows = [
            f"    {name} {after[0] - before[0]:.1f} ({after[1] - before[1]:.1f})"
            for name, before, after in zip(self._names, self._times, self._times[1:], strict=False)
        ]
        (began, _), (end, _) = self._times[0], self._times[-1]
        print(f"{what}: {end - began:.1f} s, {(end - began) / copy_s:.1f} x", *rows, sep="\n")


def check(root: Path, count: int, version: int) -> None:
    """All files stand as they must."""
    for name in names("modified", count):
        assert (root / name).read_text() == text(name, version), name
    for kind, there in (("created", version == 2), ("deleted", version == 1)):
        for name in names(kind, count):
            assert (root / name).exists() == there, name


@contextmanager
def profiled(*, wanted: bool) -> Generator[None]:
    """Print where the time goes, if wanted."""
    if not wanted:
        yield
        return
    with cProfile.Profile(time.process_time) as profile:
        yield
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--data", type=Path, help="where to work; default: the temporary directory")
    parser.add_argument("--git", action="store_true")
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    count = given.files // 3
    with tempfile.TemporaryDirectory(dir=given.data) as name:
        place = Path(name)
        root = place / "ws"
        root.mkdir()
        fill(root, count, git=given.git)
        copy_s = copied(place, count)
        print(f"cp -r and sync of {2 * count} files: {copy_s:.1f} s")
        with Workspace(root, data_dir=place / "data") as workspace:
            branch = workspace.branch()
            began = time.perf_counter()
            asyncio.run(change(branch, place / "data", count))
            print(f"changing {3 * count} files by a command: {time.perf_counter() - began:.1f} s")
            phases = Phases()
            with profiled(wanted=given.profile):
                plan = branch.plan_landing()
            phases.print(f"plan of {len(plan.entries)} files", copy_s)
            phases = Phases()
            with profiled(wanted=given.profile):
                landing = branch.land(accept=["*"], told=phases.told)
            phases.print("landing", copy_s)
            check(root, count, 2)
            phases = Phases()
            with profiled(wanted=given.profile):
                workspace.undo(landing.id, told=phases.told)
            phases.print("undo", copy_s)
            check(root, count, 1)


if __name__ == "__main__":
    main()
