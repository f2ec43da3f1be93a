"""GI-4 at length: random histories of a user and two sessions in one repository.

    python benchmarks/git_histories.py --histories 5000 --steps 14 --first 0

Prints how many histories ran and what happened in them; ends at the first that drops a commit of the user's.
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
    options.add_argument("--histories", type=int, default=100)
    options.add_argument("--steps", type=int, default=14)
    options.add_argument("--first", type=int, default=0)
    given = options.parse_args()
    began, total = time.monotonic(), Counter[str]()
    for seed in range(given.first, given.first + given.histories):
        try:
            total += one_history(seed, given.steps)
        except Exception as error:
            raise SystemExit(f"seed {seed}: {error!r}") from error
    print(f"{given.histories} histories of {given.steps} steps in {time.monotonic() - began:.0f} s")
    for what, count in sorted(total.items()):
        print(f"  {what}: {count}")


if __name__ == "__main__":
    main()
