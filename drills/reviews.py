"""What lands is what was drawn, or it is refused by name; random changes while a review is open, at length.

    python drills/reviews.py [--count 2000] [--first SEED] [--jobs 2] [--rounds 50] [--page]

`--rounds` go in one conversation, with `--page` in Chromium. Exit code 1 when something landed that was not drawn, a refused landing changed
something, or what it named had not moved; seed and round are printed. `tests/` runs a few of the same.
"""

import argparse
import asyncio
import multiprocessing
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.page_answers import rounds_in_a_page
from support.random_reviews import run_rounds


def some(job: tuple[int, int]) -> tuple[int, int, int, int, list[str]]:
    """Run one conversation's rounds; returns how many, landed, refused, texts compared, what was wrong."""
    seed, count = job
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        rounds = asyncio.run(run_rounds(Path(place), seed, count))
    return rounds.step, rounds.landed, rounds.refused, rounds.compared, rounds.wrong


def some_in_a_page(job: tuple[int, int]) -> tuple[int, int, int, int, list[str]]:
    """Run one conversation's rounds in a page; as `some`."""
    seed, count = job
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        rounds = asyncio.run(rounds_in_a_page(Path(place), seed, count))
    return rounds.step, rounds.landed, rounds.refused, rounds.compared, rounds.wrong


def main() -> int:
    """Run all; print what was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2_000, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=50, metavar="N")
    parser.add_argument("--page", action="store_true")
    chosen = parser.parse_args()
    starts = range(0, chosen.count, chosen.rounds)
    jobs = [(chosen.first + n, min(chosen.rounds, chosen.count - at)) for n, at in enumerate(starts)]
    told = [0, 0, 0, 0]
    wrong = 0
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for *counts, found in pool.imap_unordered(some_in_a_page if chosen.page else some, jobs):
            told = [a + b for a, b in zip(told, counts, strict=True)]
            wrong += len(found)
            print(*found, sep="\n", end="\n" if found else "")
            print("{} rounds: {} landed, {} refused, {} files compared".format(*told), flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
