"""Renames on a branch: a large directory of the workspace by one call, and many files one after the other.

    python benchmarks/directory_renames.py [--files 50000] [--renames 10000] [--tier overlay]

Prints seconds for os.rename and for mv of the directory on the branch, beside those of copying and removing the
same directory on the host (`cp -a tree moved && rm -r tree`), and microseconds for each rename of a file in both.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

FILES = """
import os, sys, time
count = int(sys.argv[1])
os.mkdir("renamed")
for number in range(count):
    open(f"renamed/a{number}", "w").close()
start = time.perf_counter()
for number in range(count):
    os.rename(f"renamed/a{number}", f"renamed/b{number}")
print(round((time.perf_counter() - start) / count * 1e6, 1), "us a rename")
"""


async def measure(place: Path, files: int, renames: int, tier: str) -> None:
    """Print the figures."""
    root = place / "ws"
    for number in range(files):
        directory = root / "tree" / f"d{number % 200}"
        if number < 200:
            directory.mkdir(parents=True)
        (directory / f"f{number}").write_text(f"file {number}\n")
    beside = place / "beside"
    beside.mkdir()
    subprocess.run(["cp", "-a", root / "tree", beside], check=True)
    start = time.perf_counter()
    subprocess.run("cp -a tree moved && rm -r tree", shell=True, cwd=beside, check=True)
    plainly = time.perf_counter() - start
    print(f"host: {files} files, cp -a and rm -r {plainly:.1f} s")
    plain = [sys.executable, "-c", FILES, str(renames)]
    print(
        "host  ", subprocess.run(plain, cwd=beside, capture_output=True, text=True, check=True).stdout, end=""
    )
    with Workspace(root, data_dir=place / "data") as workspace:
        host = SandboxHost(place / "data", SandboxSettings(tier="copy") if tier == "copy" else None)
        try:
            for way in (["python3", "-c", "import os; os.rename('tree', 'moved')"], ["mv", "tree", "moved"]):
                branch = workspace.branch()
                sandbox = await host.sandbox(branch)
                await sandbox.run(["true"])
                start = time.perf_counter()
                result = await sandbox.run(way, timeout=600)
                whole = time.perf_counter() - start
                renamed = result.duration_ms / 1000
                took = f"{renamed:.1f} s ({renamed / plainly:.1f} x the host), captured after {whole:.1f} s"
                print(
                    f"{way[0]}: {files} files, exit {result.exit_code}, {took} {result.output}{result.note or ''}"
                )
            print("branch", (await sandbox.run(["python3", "-c", FILES, str(renames)])).output, end="")
        finally:
            await host.close()


def main() -> None:
    """Read the arguments and measure in a temporary directory."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--renames", type=int, default=10_000)
    parser.add_argument("--tier", choices=("overlay", "copy"), default="overlay")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(Path(place), chosen.files, chosen.renames, chosen.tier))


if __name__ == "__main__":
    main()
