"""A patch is applied as it was meant, or refused: real commits of this repository, with the faults that models make.

    python drills/patches.py [--count 500] [--first SEED] [--show FAULT] [--versions OLD NEW]

Both forms, by turns. Without a history here, `--versions` takes the difference of two directories. Exit code 1 when a
patch was applied in half, at another place or with nothing changed, or one with a fault that a person would call
harmless was refused although its place is the only one. `tests/` runs a few of the same.
"""

import argparse
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.random_patches import FAULTS, is_harmless, judge, of_history, of_versions

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Apply all; print how many were right and refused for each fault, and what was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument(
        "--show", metavar="FAULT", help="print what was said of each of these that was not right"
    )
    parser.add_argument("--versions", type=Path, nargs=2, metavar=("OLD", "NEW"))
    chosen = parser.parse_args()
    changes_of = partial(of_versions, *chosen.versions) if chosen.versions else partial(of_history, ROOT)
    with tempfile.TemporaryDirectory() as place:
        seeds = range(chosen.first, chosen.first + chosen.count)
        outcomes = judge(Path(place), seeds, changes_of)
    counted = Counter((one.fault, one.kind) for one in outcomes)
    missed = 0
    print(f"{'fault':28} right refused wrong")
    for name in dict.fromkeys(fault.__name__ for fault in FAULTS):
        row = [counted[name, kind] for kind in ("right", "refused", "wrong")]
        print(f"{name:28} {row[0]:5} {row[1]:7} {row[2]:5}")
    for one in outcomes:
        refused = one.kind == "refused" and is_harmless(one.fault) and "places, lines" not in one.told
        missed += refused or one.kind == "wrong"
        if refused or one.kind == "wrong" or (one.fault == chosen.show and one.kind != "right"):
            print(f"\n{one.seed} {one.fault}: {one.kind}: {one.told[:600]}")
    total = Counter(one.kind for one in outcomes)
    print(
        f"\n{len(outcomes)} patches: {total['right']} right, {total['refused']} refused, {total['wrong']} wrong"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
