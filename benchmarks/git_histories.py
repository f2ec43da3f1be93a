"""GI-4 at length: random histories of a user and two sessions in one repository.

    python benchmarks/git_histories.py --from 0 --count 5000 --steps 14

Each history is made from its seed alone, so that a drill goes on where another ended, and one history runs again by
itself (`--from SEED --count 1`). Prints how many ran and what happened in them, every hundred a line with the seed to
go on from; ends at the first that drops a commit of the user's.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.git_histories import one_history


def main() -> None:
    """Run them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--from", dest="first", metavar="SEED", type=int, default=0)
    options.add_argument("--count", type=int, default=100)
    options.add_argument("--steps", type=int, default=14)
    options.add_argument("--linked", action="store_true", help="in a linked worktree")
    given = options.parse_args()
    began, total = time.monotonic(), Counter[str]()
    for seed in range(given.first, given.first + given.count):
        try:
            total += one_history(seed, given.steps, linked=given.linked)
        except Exception as error:
            raise SystemExit(f"seed {seed}: {error!r}") from error
        if (done := seed + 1 - given.first) % 100 == 0 and done < given.count:
            print(f"{done} in {time.monotonic() - began:.0f} s; go on with --from {seed + 1}", flush=True)
    print(f"{given.count} histories of {given.steps} steps in {time.monotonic() - began:.0f} s")
    for what, count in sorted(total.items()):
        print(f"  {what}: {count}")


if __name__ == "__main__":
    main()
