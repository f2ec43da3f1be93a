"""Long sessions with every provider, whose servers refuse what the real ones refuse; random faults, at length.

    python drills/wires.py [--turns 200] [--wires NAME …] [--seeds 1] [--first SEED] [--jobs 2]

What is done and what goes wrong is told in `tests/support/provider_talks.py`; what is refused, in
`provider_rules.py` beside it. Exit code 1 when a server refused a request by its rules, or a turn failed that
nothing had to fail; seed and words are printed. `tests/` runs a few turns of each.
"""

import argparse
import asyncio
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.provider_talks import WIRES, talk


def one(job: tuple[str, int, int]) -> tuple[str, int, float, Counter[str], list[str]]:
    """Have one session; returns what was counted, and what was wrong."""
    wire, seed, turns = job
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        made = asyncio.run(talk(Path(place), wire, seed, turns, restarts=3))
    return wire, seed, time.monotonic() - begun, made.counts, made.wrong


def main() -> int:
    """Have them all; print what was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=200, metavar="N")
    parser.add_argument("--wires", nargs="+", choices=sorted(WIRES), default=[*WIRES])
    parser.add_argument("--seeds", type=int, default=1, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    jobs = [(wire, seed, chosen.turns) for seed in seeds for wire in chosen.wires]
    total: Counter[str] = Counter()
    failed = 0
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for wire, seed, seconds, counts, wrong in pool.imap_unordered(one, jobs):
            total += counts
            failed += len(wrong)
            print(f"{wire} {seed}: {counts['turns']} turns, {counts['requests']} requests, {seconds:.0f} s, "
                  f"{len(wrong)} wrong", *wrong, sep="\n    ", flush=True)  # fmt: skip
    print(", ".join(f"{name} {count}" for name, count in sorted(total.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
