"""Run many random time lines whose layers are joined every few turns and count the differences.

    python benchmarks/time_lines.py --n 2000 --jobs 2

Every snapshot of every branch is forked, restored, compared with the present and merged from
(`tests/support/time_lines.py`). With `--layers 64 --after 8 --turns 300` layers are joined as in real use.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.time_lines import Counts, Difference, run_time_line

from bowerbird.core.errors import BowerbirdError
from bowerbird.workspace.history import layer_shelf


def run(place: str, seed: int, turns: int, layers: int, after: int, thins: bool) -> tuple[Counts, str | None]:
    """Run one time line; return what was done and what differed."""
    layer_shelf.MOST_LAYERS, layer_shelf.LAYERS_AFTER = layers, after
    try:
        return run_time_line(Path(place) / str(seed), seed, turns, thins=thins), None
    except Difference as difference:
        return Counts(), str(difference)
    except (BowerbirdError, OSError) as error:  # an error where the model has none is a difference too
        return Counts(), f"seed {seed}: {type(error).__name__}: {error}"


def main() -> int:
    """Run and print; exit code 1 when there was a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--n", type=int, default=2000, help="how many time lines")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--turns", type=int, default=20, help="turns of the first branch of each")
    parser.add_argument("--layers", type=int, default=4, help="more layers than these are joined")
    parser.add_argument("--after", type=int, default=2, help="layers after joining")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--thin", action="store_true", help="forget snapshots in between, killed or not")
    parser.add_argument("--dir", default=None, help="where to work, such as a tmpfs")
    given = parser.parse_args()
    begun = time.perf_counter()
    how = (given.turns, given.layers, given.after, given.thin)
    with tempfile.TemporaryDirectory(dir=given.dir) as place, ProcessPoolExecutor(given.jobs) as pool:
        seeds = range(given.first, given.first + given.n)
        tasks = [pool.submit(run, place, seed, *how) for seed in seeds]
        results = [task.result() for task in tasks]
    took = time.perf_counter() - begun
    differences = [difference for _, difference in results if difference is not None]
    for difference in differences[:3]:
        print(difference, end="\n\n")
    counts = [count for count, _ in results]
    deep = sum(count.most_joins > 3 for count in counts)
    print(f"time lines {given.n:,}   differences {len(differences):,}   {took:.0f} s")
    print(
        f"joins {sum(c.joins for c in counts):,} (over three in one branch: {deep:,} time lines, "
        f"most {max(c.most_joins for c in counts)})   snapshots looked at "
        f"{sum(c.snapshots for c in counts):,}   merges {sum(c.merges for c in counts):,}   "
        f"snapshots forgotten {sum(c.thinned for c in counts):,}"
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
