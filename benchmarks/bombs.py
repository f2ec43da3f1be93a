"""Commands that take too much, in every way that is known, and by how much each passes its limit (D-8).

    python benchmarks/bombs.py [--runs 3] [--memory-mib 256] [--disk-mib 256] [--tier overlay]

Columns: what ended it, after how long, the most that the machine had less meanwhile (disk by statvfs, memory by
MemAvailable, sampled every 5 ms; what other programs took in that time is in it), the overshoot, and what of
it stayed on the branch. A bomb gives up by itself at 900 MiB above its limit, so that nothing can be harmed.
Exit code 1 when one was not ended, or left something behind.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.abuse import TIERS, desk_of
from support.bombs import BOMBS, MIB, meter, program

from bowerbird.sandbox.run.limits import RunLimits

_SPARE = 900 * MIB
_FILES = 20_000


async def one(place: Path, tier: str, name: str, limits: RunLimits) -> tuple[str, bool]:
    """Run a bomb on a branch of its own; return its row and whether it was held."""
    bomb = BOMBS[name]
    async with desk_of(place, tier, {"a": "1"}, limits=limits) as desk:
        await desk.run("echo before > before")
        limit = limits.memory_bytes if bomb.reason == "memory" else limits.disk_bytes
        most = 10 * _FILES if name == "empty-files" else limit + _SPARE
        with meter(place) as found:
            result = await desk.python(program(bomb), most, timeout=60)
        taken = found.memory if bomb.reason == "memory" else found.disk
        used, entries = desk.branch.processes().disk_used()
        kept = [path for path in desk.branch.changes().written if path != "/before"]
        again = await desk.run("cat before; rm -f f*")
    refused = bomb.reason is None and result.exit_code == 3
    held = (refused or result.reason == bomb.reason) and again.output == "before\n"
    held = held and (refused or bomb.reason != "disk" or not kept)
    over = "-" if refused or name == "empty-files" else f"{max(0, taken - limit) / MIB:.0f}"
    by = "refused" if refused else result.reason or "nothing"
    row = (
        f"| {tier} | {name} | {by} | {result.duration_ms} | {taken / MIB:.0f} | {over} | "
        f"{used / MIB:.1f} MiB in {entries} | {'yes' if held else 'NO'} |"
    )
    return row, held


async def run(place: Path, tiers: list[str], runs: int, limits: RunLimits) -> int:
    """Print the table; return how many were not held."""
    print(
        f"limits: memory {limits.memory_bytes / MIB:.0f} MiB, disk {limits.disk_bytes / MIB:.0f} MiB, "
        f"{limits.disk_files} files; user {os.getuid()}, load {os.getloadavg()[0]:.1f}, {runs} runs each\n"
    )
    print("| tier | bomb | ended by | after ms | taken MiB | overshoot MiB | left on disk | held |")
    print("|---|---|---|---|---|---|---|---|")
    missed = 0
    for tier in tiers:
        for name, bomb in BOMBS.items():
            if tier not in bomb.tiers:
                continue
            for _ in range(runs):
                with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
                    row, held = await one(Path(folder), tier, name, limits)
                print(row, flush=True)
                missed += not held
    return missed


def main() -> int:
    """Run and print; exit code 1 when one was not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--memory-mib", type=int, default=256)
    parser.add_argument("--disk-mib", type=int, default=256)
    parser.add_argument("--tier", choices=TIERS, default=None)
    parser.add_argument("--place", type=Path, default=None, help="directory on the disk to measure")
    chosen = parser.parse_args()
    limits = RunLimits(
        memory_bytes=chosen.memory_mib * MIB, disk_bytes=chosen.disk_mib * MIB, disk_files=_FILES
    )
    with tempfile.TemporaryDirectory(dir=chosen.place) as place:
        tiers = [chosen.tier] if chosen.tier else list(TIERS)
        missed = asyncio.run(run(Path(place), tiers, chosen.runs, limits))
    print(f"\n{missed} not held" if missed else "\nall held")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
