"""Run random changes in sandboxes and count where the branch says something else than the mounted view.

    python benchmarks/capture_trials.py --n 1000

Half of the trials run in each tier (`tests/support/random_changes.py`); with `--tier` all in one.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.abuse import TIERS
from support.random_changes import Difference, run_trial

from bowerbird.core.errors import BowerbirdError


async def run(place: Path, first: int, count: int, tiers: tuple[str, ...]) -> tuple[int, list[str]]:
    """Run the trials one after the other; return how many commands ran and what differed."""
    commands, wrong = 0, list[str]()
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
            try:
                commands += await run_trial(Path(folder) / "t", seed, tiers[seed % len(tiers)])
            except Difference as difference:
                wrong.append(f"{tiers[seed % len(tiers)]}: {difference}")
            except (BowerbirdError, OSError) as error:
                wrong.append(f"{tiers[seed % len(tiers)]} seed {seed}: {type(error).__name__}: {error}")
    return commands, wrong


def main() -> int:
    """Run and print; exit code 1 when there was a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=1000, help="how many trials")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--tier", choices=TIERS, default=None)
    parser.add_argument(
        "--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None, help="where to work"
    )
    options = parser.parse_args()
    tiers = (options.tier,) if options.tier else TIERS
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="bowerbird-trials-") as place:
        commands, wrong = asyncio.run(run(Path(place), options.first, options.n, tiers))
    took = time.perf_counter() - begun
    print(
        f"{options.n} trials, {commands} commands, tiers {' '.join(tiers)}: {len(wrong)} differences, {took:.0f} s"
    )
    for line in wrong[:10]:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
