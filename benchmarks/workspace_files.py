"""What file tools on a branch cost, each figure beside its reference in the same run.

Makes a tree of 10,000 files and 57 MB in a temporary directory, and a plain copy of it for
the references (`os.walk`, ripgrep as a person runs it, `open().read()`). Reference and tool
take turns, so that a busy machine slows both alike; the median of all rounds is shown.

    python benchmarks/workspace_files.py [--files 10000] [--rounds 15]
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.trees import project

from bowerbird.workspace.branch import Branch
from bowerbird.workspace.find.ripgrep import find_ripgrep
from bowerbird.workspace.workspace import Workspace

PATTERNS = {
    "rare text": "yield_1700",
    "regex, 1,700 hits": r"return self\.zone \+ 17",
    "in every file": "self",
}


def main() -> None:
    """Print all figures and whether the bars of WS-63 and WS-64 hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bowerbird-bench-") as name:
        place = Path(name)
        project(place / "ws", files=options.files, total_bytes=5700 * options.files)
        shutil.copytree(place / "ws", place / "plain")
        print(f"{options.files:,} files, {options.rounds} rounds, {os.cpu_count()} cores; medians in ms")
        print(f"{'':44}{'tool':>9}{'reference':>11}{'bar':>9}")
        held = asyncio.run(run(place, options.rounds))
    print("every bar holds" if held else "NOT every bar holds")
    sys.exit(0 if held else 1)


async def run(place: Path, rounds: int) -> bool:
    """Measure on a fresh branch, on 20 layers, and in a fork of a fork."""
    held = True
    with Workspace(place / "ws", data_dir=place / "data") as workspace:
        branches = {"fresh branch": workspace.branch()}
        layered = workspace.branch()
        for number in range(20):
            await layered.write_file(f"pkg{number:02d}/mod0/part0/layer.py", "def zone(): pass\n" * 50)
            layered.mark()
        branches["20 layers"] = layered
        child = workspace.branch()
        for _ in range(2):
            await child.edit_file(".gitignore", "*.log\n", "*.log\n\n")
            await child.write_file("pkg01/new.py", "x = 1\n")
            child = child.fork()
        branches["fork of a fork"] = child
        for name, branch in branches.items():
            print(f"\n{name}")
            held &= await listing(branch, place, rounds)
            for what, pattern in PATTERNS.items():
                held &= await searching(branch, place, rounds, what, pattern)
            held &= await reading(branch, place)
    return held


async def listing(branch: Branch, place: Path, rounds: int) -> bool:
    """`list_files("**/*.py")` against `os.walk`."""
    plain = place / "plain"
    tool, reference = await measure(
        rounds, lambda: branch.list_files("**/*.py"), lambda: sum(1 for _ in os.walk(plain))
    )
    return show('list_files("**/*.py") : os.walk', tool, reference, 2 * reference)


async def searching(branch: Branch, place: Path, rounds: int, what: str, pattern: str) -> bool:
    """`search_files` against ripgrep on the plain copy."""
    command = [find_ripgrep() or "rg", "--line-number", pattern, str(place / "plain")]

    def ripgrep() -> None:
        subprocess.run(command, check=False, stdout=subprocess.PIPE)

    tool, reference = await measure(rounds, lambda: branch.search_files(pattern), ripgrep)
    return show(f"search_files, {what} : rg", tool, reference, 1.5 * reference + 20)


async def reading(branch: Branch, place: Path) -> bool:
    """A 4 KiB `read_file` against `open().read()` of the same bytes."""
    source = place / "ws/small.txt"
    source.write_text("0123456789abcde\n" * 256)
    tool, reference = await measure(500, lambda: branch.read_file("small.txt"), source.read_bytes)
    source.unlink()
    return show("read_file, 4 KiB : open().read()", tool, reference, 0.5)


async def measure(
    rounds: int, tool: Callable[[], Awaitable[object]], reference: Callable[[], object]
) -> tuple[float, float]:
    """Return the medians in ms of tool and reference, which take turns."""
    await tool()
    reference()
    tools: list[float] = []
    references: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        await tool()
        between = time.perf_counter()
        reference()
        tools.append((between - started) * 1000)
        references.append((time.perf_counter() - between) * 1000)
    return statistics.median(tools), statistics.median(references)


def show(what: str, tool: float, reference: float, bar: float) -> bool:
    """Print one line; tell whether the tool is within its bar."""
    held = tool <= bar
    print(f"  {what:<42}{tool:>9.2f}{reference:>11.2f}{bar:>9.2f}{'' if held else '  over'}")
    return held


if __name__ == "__main__":
    main()
