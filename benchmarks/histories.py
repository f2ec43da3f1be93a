"""Run many random branch histories beside the pure-Python model and count the differences.

    python benchmarks/histories.py --n 10000 --jobs 2

A history is about 14 steps of fork, edit, merge, land, undo, mark, snapshot; view, changes,
workspace and every result are compared after each step (`tests/support/branch_histories.py`).
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.branch_histories import Difference, run_history

from bowerbird.core.errors import BowerbirdError


def run(place: str, seed: int) -> str | None:
    """Run one history; return what differed."""
    try:
        run_history(Path(place) / str(seed), seed)
    except Difference as difference:
        return str(difference)
    except BowerbirdError as error:  # an error where the model has none is a difference too
        return f"seed {seed}: {type(error).__name__}: {error}"
    return None


def main() -> int:
    """Run and print; exit code 1 when there was a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=10_000, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--dir", default=None, help="where to work, say a tmpfs")
    given = parser.parse_args()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=given.dir) as place, ProcessPoolExecutor(given.jobs) as pool:
        seeds = range(given.first, given.first + given.n)
        results = pool.map(run, [place] * given.n, seeds, chunksize=20)
        differences = [result for result in results if result is not None]
    took = time.perf_counter() - begun
    for difference in differences[:5]:
        print(difference, end="\n\n")
    rate = given.n / took
    print(f"histories {given.n:,}   differences {len(differences):,}   {took:.0f} s ({rate:.0f} per second)")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
