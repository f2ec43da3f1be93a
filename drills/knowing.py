"""Models that know only what they are sent do their jobs: on every wire, in windows of every size, at length.

    python drills/knowing.py [--wires NAME …] [--windows TOKENS …] [--jobs 2]

The work fills 10, 50, 90 and 200 % of the window; from 90 % on the programs say what they have learnt, as no window
holds it all. Exit code 1 when an answer lacks what was there, an edit went wrong, an instruction of the first
message was forgotten, or a request was refused. `tests/` does a few of the same.
"""

import argparse
import asyncio
import multiprocessing
import sys
import tempfile
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.knowing import Job, work
from support.provider_talks import WIRES

MILLION = ("anthropic", "google")


def one(chosen: tuple[str, int, str, float]) -> tuple[str, list[str]]:
    """Do one job; returns what it was, and what was wrong."""
    wire, window, kind, share = chosen
    job = Job(kind, window, share, notes=share >= 0.9, count=60 if window >= 64_000 else 24)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        asyncio.run(work(Path(place), wire, job))
    return (
        f"{wire} {window:,} {kind} {share:.0%}: {job.requests} requests, {job.largest:,} tokens",
        job.problems,
    )


def main() -> int:
    """Do all; print what was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wires", nargs="+", choices=sorted(WIRES), default=[*WIRES])
    parser.add_argument(
        "--windows", nargs="+", type=int, default=[16_000, 32_000, 64_000, 200_000, 1_000_000]
    )
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    jobs = [
        job
        for job in product(chosen.wires, chosen.windows, ("facts", "rename"), (0.1, 0.5, 0.9, 2.0))
        if job[1] <= 200_000 or job[0] in MILLION
    ]
    failed = 0
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for said, problems in pool.imap_unordered(one, jobs):
            print(said, *(problems or ["right"]), sep="\n    " if problems else ", ", flush=True)
            failed += bool(problems)
    print(f"{len(jobs)} jobs, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
