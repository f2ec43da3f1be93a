"""What ran is what was allowed, each call once, whatever was answered where; random answers, at length.

    python drills/answers.py [--count 5000] [--first SEED] [--jobs 2] [--together 10] [--page|--terminal]

With `--page` the answers are clicked in Chromium, with `--terminal` typed in a chat. Walks go side by side, `--together` on a server, which is stopped and started twice. Exit code 1 when a call ran
that was not allowed, ran twice, ran other than it was edited, or was allowed and did not run; seed and what was
answered are printed. `tests/` runs a few of the same.
"""

import argparse
import asyncio
import multiprocessing
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.page_answers import walk_in_pages
from support.random_answers import walk_some
from support.typed_answers import walk_at_terminals


def some(seeds: list[int]) -> tuple[int, dict[int, list[str]]]:
    """Walk some seeds on one server; returns how many, and what was wrong by seed."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        return len(seeds), asyncio.run(walk_some(Path(place), seeds))


def some_in_pages(seeds: list[int]) -> tuple[int, dict[int, list[str]]]:
    """Walk some seeds in a page; as `some`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        return len(seeds), asyncio.run(walk_in_pages(Path(place), seeds))


def some_at_terminals(seeds: list[int]) -> tuple[int, dict[int, list[str]]]:
    """Walk some seeds at terminals; as `some`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        return len(seeds), asyncio.run(walk_at_terminals(Path(place), seeds))


def main() -> int:
    """Run all; print what was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=5_000, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--together", type=int, default=10, metavar="N")
    doors = parser.add_mutually_exclusive_group()
    doors.add_argument("--page", dest="walk", action="store_const", const=some_in_pages, default=some)
    doors.add_argument("--terminal", dest="walk", action="store_const", const=some_at_terminals)
    chosen = parser.parse_args()
    seeds = list(range(chosen.first, chosen.first + chosen.count))
    jobs = [seeds[at : at + chosen.together] for at in range(0, len(seeds), chosen.together)]
    done = failed = 0
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for count, wrong in pool.imap_unordered(chosen.walk, jobs):
            done += count
            failed += len(wrong)
            for seed, found in wrong.items():
                print(f"{seed}:", *found, sep="\n    ", flush=True)
            print(f"{done} walked, {failed} wrong", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
