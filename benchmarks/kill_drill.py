"""kill -9 at named and random write points, a thousand times; a check by other means.

    python benchmarks/kill_drill.py [--kills 1000] [--seed 1] [--keep DIR]

Processes drive messages of one conversation on one data directory and die: in the transaction or
after the commit of every kind of record, during a tool, around a lease, a compaction, a snapshot, a
delivery, a landing. The next process goes on. After each drill of some 40 deaths a checker that
shares nothing with the product reads the database with plain SQL and the branch's layers as files:
every message answered once and in order, no outside effect twice, nothing delivered out of order or
lost, no torn landing, no lost file. Exit code 0 only when nothing is wrong.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.crashes import Forks
from support.drills import CHILD, Drill, answer, check_drill, drill_at_random
from support.fake_models import FakeModels

DEATHS_PER_DRILL = 40


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where drills that went wrong are left")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    totals: Counter[str] = Counter()
    begun = time.perf_counter()
    with FakeModels() as fake, tempfile.TemporaryDirectory(dir=options.keep) as directory:
        fake.answer(answer)
        warm = Drill(Path(directory) / "warm", fake.anthropic_url)
        children = Forks(warm.config(warm.next_message(), None), CHILD)
        try:
            while totals["kills"] < options.kills:
                drill = Drill(
                    Path(directory) / f"drill-{totals['drills']}",
                    fake.anthropic_url,
                    chance.choice(("review", "turn")),
                )
                deaths = min(DEATHS_PER_DRILL, options.kills - totals["kills"])
                drill_at_random(drill, children, chance, deaths)
                wrong = check_drill(drill)
                totals.update(drills=1, kills=drill.kills, messages=drill.messages, wrong=bool(wrong))
                if wrong:
                    print(f"drill {totals['drills']} ({drill.policy}): {wrong}")
                    if options.keep is not None:
                        drill.directory.rename(options.keep / drill.directory.name)
                print(dict(totals), flush=True)
        finally:
            children.close()
    seconds = time.perf_counter() - begun
    print(
        f"{totals['kills']} kills, {totals['messages']} messages in {totals['drills']} conversations, "
        f"{seconds:.0f} s; wrong: {totals['wrong']}"
    )
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
