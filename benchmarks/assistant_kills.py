"""An assistant on a fake Telegram, killed with SIGKILL at every point of its work (issue 15, must show 2).

    python benchmarks/assistant_kills.py [--kills 200] [--seed 1] [--beside 3]

A real `bowerbird serve` with a bot, a schedule and a host gateway. It is killed when an update was received,
committed, its turn begun, part 2 of 3 sent, a button pressed, a schedule due or fired, or while a command of the
host runs, and started again. Exit code 0 only when each update was one turn, each due time one run, each answer
arrived whole with at most one part twice, each press landed once, and no command of the host ran twice.

So many assistants of their own share the kills: most of a kill's time is waiting. Each ten kills say what there is so
far; to run it in pieces, give each piece the seed that the one before named.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.assistant_kills import POINTS, Outcome, drill
from support.assistants import IMPORTED
from support.quick_servers import QuickServers

SAID_EVERY = 10  # kills


async def _run(kills: int, seed: int, beside: int, quick: QuickServers) -> Outcome:
    points = [POINTS[n % len(POINTS)] for n in range(kills)]
    random.Random(seed).shuffle(points)
    left = iter(points)
    found = [Outcome() for _ in range(beside)]
    begun = time.monotonic()

    def told(number: int, outcome: Outcome) -> None:
        found[number] = outcome
        whole = sum(found, Outcome())
        if whole.kills.total() % SAID_EVERY == 0:
            print(f"{time.monotonic() - begun:.0f} s: {whole}; then --seed {seed + 1}", flush=True)
            for line in whole.wrong[:30]:
                print("   ", line, flush=True)

    with tempfile.TemporaryDirectory() as directory:
        async with asyncio.TaskGroup() as group:
            for number in range(beside):
                place = Path(directory) / str(number)
                place.mkdir()
                group.create_task(
                    drill(
                        place, f"{seed}.{number}", quick, left, lambda one, number=number: told(number, one)
                    )
                )
    return sum(found, Outcome())


def main() -> int:
    """Run it and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beside", type=int, default=3, help="assistants that run beside each other")
    given = parser.parse_args()
    with closing(QuickServers(*IMPORTED)) as quick:
        outcome = asyncio.run(_run(given.kills, given.seed, given.beside, quick))
    print(outcome)
    for line in outcome.wrong[:30]:
        print("   ", line)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
