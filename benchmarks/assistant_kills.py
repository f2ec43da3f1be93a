"""An assistant on a fake Telegram, killed with SIGKILL at every point of its work (issue 15, must show 2).

    python benchmarks/assistant_kills.py [--kills 200] [--seed 1]

A real `bowerbird serve` with a bot, a schedule and a host gateway. It is killed when an update was received,
committed, its turn begun, part 2 of 3 sent, a button pressed, a schedule due or fired, or while a command of the
host runs, and started again. Exit code 0 only when each update was one turn, each due time one run, each answer
arrived whole with at most one part twice, each press landed, and no command of the host ran twice.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.assistant_kills import Outcome, drill
from support.fake_models import FakeModels
from support.fake_telegram import fake_telegram


async def _run(kills: int, seed: int) -> Outcome:
    with tempfile.TemporaryDirectory() as directory, FakeModels() as fake:
        async with fake_telegram() as bot:
            return await drill(Path(directory), fake, bot, kills, seed)


def main() -> int:
    """Run it and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    outcome = asyncio.run(_run(given.kills, given.seed))
    print(outcome)
    for line in outcome.wrong[:30]:
        print("   ", line)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
