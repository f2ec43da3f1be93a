"""No byte that a user saves is lost without a conflict that names the file; random histories, at length.

    python drills/user_saves.py [--tools 20000] [--commands 1000] [--first SEED] [--jobs 2]

A history with the file tools has the user save at any event inside of any call; one with real commands has
saves at any time, beside background processes, in each tier. Exit code 1 when a line was lost; seed and
line are printed. `tests/` runs a few of the same.
"""

import argparse
import asyncio
import multiprocessing
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.user_saves import run_command_history, run_file_history


def one(job: tuple[str, int]) -> tuple[str, int, list[str]]:
    """Run one history; returns its kind, seed and what was lost."""
    kind, seed = job
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        if kind == "tools":
            lost = asyncio.run(run_file_history(Path(place), seed))
        else:
            lost = asyncio.run(run_command_history(Path(place), seed, kind))
    return kind, seed, lost


def main() -> int:
    """Run all; print what was lost."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=int, default=20_000, metavar="N")
    parser.add_argument("--commands", type=int, default=1_000, metavar="N", help="in each tier")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    counts = {"tools": chosen.tools, "overlay": chosen.commands, "copy": chosen.commands}
    jobs = [(kind, chosen.first + n) for kind, count in counts.items() for n in range(count)]
    failed = 0
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for kind, seed, lost in pool.imap_unordered(one, jobs, chunksize=4):
            if lost:
                failed += 1
                print(f"{kind} {seed}: lost {lost}", flush=True)
    told = ", ".join(f"{count} with {kind}" for kind, count in counts.items())
    print(f"{told}: {failed} lost something")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
