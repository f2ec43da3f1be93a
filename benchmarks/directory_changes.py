"""Commands that touch every file of a large directory of the workspace: on a branch, and on the host.

    python benchmarks/directory_changes.py [--files 50000] [--tier overlay]

Each command starts from a new branch. Prints seconds of the command on the branch, of the same one on the host, and of
the call as a whole, which ends when the changes are captured. Nothing is deleted before the end: ext4 without a
journal looks for new inodes slowly where some were freed in the last seconds.
"""

import argparse
import asyncio
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from bowerbird.sandbox.host import SandboxHost
from bowerbird.sandbox.settings import SandboxSettings
from bowerbird.workspace import Workspace

COMMANDS = {
    "chmod -R": "chmod -R o-r tree",
    "find -exec touch": "find tree -type f -exec touch -d '2020-01-01' {} +",
    "chown -R": 'chown -R "$(id -u):$(id -g)" tree',
    "sed -i": "find tree -type f -exec sed -i s/file/line/ {} +",
    "append": 'python3 -c \'import os\nfor d, _, f in os.walk("tree"):\n for n in f:'
    '\n  with open(os.path.join(d, n), "a") as o: o.write("x")\'',
    "git gc": "cd repository && git gc -q",
    "rm -r": "rm -r tree",
}


def fill(root: Path, files: int) -> None:
    """Make a directory of this many files, and a repository of as many loose objects."""
    for number in range(files):
        directory = root / "tree" / f"d{number % 200}"
        if number < 200:
            directory.mkdir(parents=True)
        (directory / f"f{number}").write_text(f"file {number}\n")
    git = "git -c user.name=U -c user.email=u@example.org -c core.fsync=none -c gc.auto=0"
    made = f"git init -q repository && cp -r tree repository && cd repository && git add -A && {git} commit -qm all"
    subprocess.run(made, shell=True, cwd=root, check=True)


def on_the_host(root: Path, beside: Path, command: str) -> float:
    """Return the seconds that it takes on a copy of the directories."""
    shutil.copytree(root, beside, symlinks=True)
    start = time.perf_counter()
    subprocess.run(command, shell=True, cwd=beside, check=True)
    return time.perf_counter() - start


async def measure(place: Path, files: int, tier: str, names: list[str]) -> None:
    """Print the figures."""
    root = place / "workspace"
    root.mkdir()
    fill(root, files)
    print("| command | branch | host | ratio | with capture |\n|---|---|---|---|---|")
    with Workspace(root, data_dir=place / "data") as workspace:
        host = SandboxHost(place / "data", SandboxSettings(tier="copy") if tier == "copy" else None)
        status = await host.status()
        assert status.tier == tier, status
        try:
            for number, name in enumerate(names):
                plain = on_the_host(root, place / f"beside-{number}", COMMANDS[name])
                branch = workspace.branch()
                sandbox = await host.sandbox(branch)
                await sandbox.run(["true"])
                start = time.perf_counter()
                ran = await sandbox.run(["sh", "-c", COMMANDS[name]], timeout=900)
                whole, took = time.perf_counter() - start, ran.duration_ms / 1000
                failed = "" if ran.exit_code == 0 else f" exit {ran.exit_code}: {ran.output[-300:]}"
                ratio = took / max(plain, 0.001)
                cells = (name, f"{took:.1f} s{failed}", f"{plain:.1f} s", f"{ratio:.1f}", f"{whole:.1f} s")
                print(f"| {' | '.join(cells)} |", flush=True)
        finally:
            await host.close()


def main() -> None:
    """Read the arguments and measure in a temporary directory."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--tier", choices=("overlay", "copy"), default="overlay")
    parser.add_argument("--only", nargs="+", choices=tuple(COMMANDS), default=list(COMMANDS))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(Path(place), chosen.files, chosen.tier, chosen.only))


if __name__ == "__main__":
    main()
