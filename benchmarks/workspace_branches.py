"""What branches cost: fork, changes and diff, merge, landing, each beside a reference (WS-62, WS-64).

    python benchmarks/workspace_branches.py [--dir DIR] [--quick]

The tree has 10,000 files / 57 MB; forks are also measured on 100 and 100,000 files. The
reference of each line does the nearest ordinary thing in the same run, on the same disk.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bowerbird.workspace import Branch, Landing, Workspace

FILE_BYTES = 5_977  # 10,000 of them are 57 MB


class Timing(NamedTuple):
    """Milliseconds: by the clock, and of the processor (which a busy machine changes less)."""

    wall: float
    cpu: float


def timed(call: Callable[[], object]) -> Timing:
    """Run once."""
    begun, cpu = time.perf_counter(), time.process_time()
    call()
    return Timing((time.perf_counter() - begun) * 1000, (time.process_time() - cpu) * 1000)


def median(call: Callable[[], object], times: int) -> Timing:
    """Return the medians of `times` runs."""
    return middle([timed(call) for _ in range(times)])


def middle(found: list[Timing]) -> Timing:
    """Return the medians."""
    return Timing(statistics.median(t.wall for t in found), statistics.median(t.cpu for t in found))


def make_tree(root: Path, files: int) -> None:
    """Make a source tree of `files` text files, 100 to a directory."""
    line = b"value_%06d = compute(%d)  # a line of an ordinary source file\n"
    for number in range(files):
        folder = root / f"pkg{number // 10_000}" / f"mod{number // 100 % 100}"
        if number % 100 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        text = b"".join(line % (number, n) for n in range(100))[:FILE_BYTES]
        (folder / f"file{number}.py").write_bytes(text)
    os.sync()  # or the first measurement pays for writing the tree


def path_of(number: int) -> str:
    """The path of one file."""
    return f"pkg{number // 10_000}/mod{number // 100 % 100}/file{number}.py"


def show(what: str, found: Timing, bar: str, reference: str = "", value: Timing | None = None) -> None:
    """Print one line."""
    beside = f"{reference:<34}{value.wall:>9.2f} ms" if value is not None else reference
    print(f"{what:<44}{found.wall:>8.2f} ms (cpu {found.cpu:>7.2f})  bar {bar:<13}{beside}")


def edit(branch: Branch, numbers: range, mark: str) -> None:
    """Change one line in each file, through the file tools."""

    async def all_edits() -> None:
        for number in numbers:
            data = await branch.read_bytes(path_of(number))
            lines = data.split(b"\n")
            lines[50] = f"changed = {mark!r}".encode()
            await branch.write_file(path_of(number), b"\n".join(lines))

    asyncio.run(all_edits())


# ---------------------------------------------------------------- measurements


def measure_forks(place: Path, sizes: Sequence[int]) -> float:
    """Fork and branch creation on trees of `sizes` files; returns in percent how flat the fork is.

    All trees stand at once and take turns, so that whatever else the machine does falls on each alike.
    """
    forks: dict[int, list[Timing]] = {files: [] for files in sizes}
    creations: dict[int, list[Timing]] = {files: [] for files in sizes}
    with contextlib.ExitStack() as opened:
        branches: dict[int, tuple[Workspace, Branch]] = {}
        for files in sizes:
            root = place / f"tree{files}"
            root.mkdir()
            make_tree(root, files)
            workspace = opened.enter_context(Workspace(root, data_dir=place / f"data{files}"))
            branches[files] = workspace, workspace.branch()
            edit(branches[files][1], range(min(20, files)), "fork")
            branches[files][1].fork()
        for _ in range(50):
            for files, (workspace, branch) in branches.items():
                forks[files].append(timed(branch.fork))
                creations[files].append(timed(workspace.branch))
        for files, (_, branch) in branches.items():
            memory = memory_of(branch.fork)
            what, reference = copied(place, files)
            show(f"fork, {files:,} files", middle(forks[files]), "5 ms", what, reference)
            beside = f"a fork's memory: {memory:,} bytes"
            show(f"branch of the workspace, {files:,} files", middle(creations[files]), "20 ms", beside)
    for files in sizes:
        if files != 10_000:
            shutil.rmtree(place / f"tree{files}")
    os.sync()
    found = [middle(times).wall for times in forks.values()]
    return (max(found) / min(found) - 1) * 100


def memory_of(fork: Callable[[], Branch]) -> int:
    """Return the bytes that one more fork takes."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    child = fork()
    memory = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    child.discard()
    return memory


def copied(place: Path, files: int) -> tuple[str, Timing]:
    """Return the reference of a fork and its time."""
    root, copy = place / f"tree{files}", place / f"copy{files}"
    if files > 10_000:
        return "os.walk of the tree", timed(lambda: sum(len(names) for _, _, names in os.walk(root)))
    taken = timed(lambda: subprocess.run(["cp", "-r", root, copy], check=True))
    shutil.rmtree(copy)
    return "cp -r of the tree", taken


def git(root: Path, *arguments: str) -> None:
    """Run git quietly."""
    command = ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "-c", "gc.auto=0", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def measure_changes(workspace: Workspace, place: Path, root: Path) -> None:
    """Changes and diff with 20 and 2,000 changed files, beside `git diff` of the same."""
    repository = place / "repository"
    subprocess.run(["cp", "-r", root, repository], check=True)
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "all")
    for count, bar in ((20, "10 ms"), (2_000, "150 ms")):
        branch = workspace.branch()
        edit(branch, range(count), "diff")
        for number in range(count):
            data = asyncio.run(branch.read_bytes(path_of(number)))
            (repository / path_of(number)).write_bytes(data)
        reference = median(lambda: git(repository, "diff"), 5)
        times = 20 if count == 20 else 5
        show(
            f"changes, {count:,} changed",
            median(branch.changes, times),
            bar,
            "git diff of the same",
            reference,
        )
        show(f"diff, {count:,} changed", median(branch.diff, times), bar, "git diff of the same", reference)
        branch.discard()
    shutil.rmtree(repository)


def measure_merge(workspace: Workspace, place: Path) -> None:
    """Merges of 100 and 1,000 files, beside `git merge-file` for a tenth of them, times ten."""
    for count, bar in ((100, "50 ms"), (1_000, "150 ms")):
        found: list[Timing] = []
        for _ in range(3):
            parent = workspace.branch()
            child = parent.fork()
            edit(child, range(count), "merge")
            found.append(timed(lambda p=parent, c=child: p.merge(c)))
        base, side = place / "base", place / "side"
        base.write_bytes(b"a\n" * 90)
        side.write_bytes(b"a\n" * 90 + b"b\n")
        command = ["git", "merge-file", "-p", str(side), str(base), str(base)]
        tenth = timed(
            lambda n=count // 10, c=command: [
                subprocess.run(c, check=True, capture_output=True) for _ in range(n)
            ]
        )
        show(f"merge of {count:,} files", middle(found), bar, "git merge-file for each, ÷ 10", tenth)
    both = workspace.branch()
    child = both.fork()
    edit(child, range(1_000), "theirs")
    edit_top(both, range(1_000))
    show("merge of 1,000 files, lines of both joined", timed(lambda: both.merge(child)), "-")


def edit_top(branch: Branch, numbers: range) -> None:
    """Change the first line of each file, so that a merge has to join lines."""

    async def all_edits() -> None:
        for number in numbers:
            data = await branch.read_bytes(path_of(number))
            await branch.write_file(path_of(number), b"# ours\n" + data)

    asyncio.run(all_edits())


def measure_landing(workspace: Workspace, place: Path) -> None:
    """Landing 100 files and its undo, beside writing and syncing 100 files."""
    branch = workspace.branch()
    edit(branch, range(100), "land")
    landings: list[Landing] = []
    landed = timed(lambda: landings.append(branch.land()))
    undone = timed(landings[0].undo)
    reference = timed(lambda: write_and_sync(place / "plain", 100))
    show("landing of 100 files", landed, "300 + fsync", "writing and fsyncing 100 files", reference)
    show("undo of it", undone, "-", "writing and fsyncing 100 files", reference)


def write_and_sync(folder: Path, count: int) -> None:
    """Write files the plain way."""
    folder.mkdir()
    for number in range(count):
        with (folder / str(number)).open("wb") as file:
            file.write(b"x" * FILE_BYTES)
            file.flush()
            os.fsync(file.fileno())


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dir", default=None, help="where to work; a real disk says most")
    parser.add_argument("--quick", action="store_true", help="without the tree of 100,000 files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as name:
        place = Path(name)
        sizes = [100, 10_000] if given.quick else [100, 100_000, 10_000]
        spread = measure_forks(place, sizes)
        print(f"{'fork: slowest size over fastest':<46}{spread:>9.0f} %    bar 20 %")
        root = place / "tree10000"
        with Workspace(root, data_dir=place / "data") as workspace:
            measure_changes(workspace, place, root)
            measure_merge(workspace, place)
            measure_landing(workspace, place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
