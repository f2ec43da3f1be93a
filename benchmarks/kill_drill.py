"""kill -9 at named and random write points, a thousand times; a check by other means.

    python benchmarks/kill_drill.py [--serve] [--n 1000] [--seed 1] [--keep DIR]

Processes drive messages of one conversation on one data directory and die: in the transaction or
after the commit of every kind of record, during a tool, around a lease, a compaction, a snapshot, a
delivery, a landing. The next process goes on. After each drill of some 40 deaths a checker that
shares nothing with the product reads the database with plain SQL and the branch's layers as files:
every message answered once and in order, no outside effect twice, nothing delivered out of order or
lost, no torn landing, no lost file. Exit code 0 only when nothing is wrong.

With `--serve` the processes are the command `bowerbird serve`, and nobody speaks to them but over REST and
WebSocket; what is printed at the end are the deaths by the named write points of the issue.
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
from support.serve_checker import check
from support.serve_drill import ServeDrill
from support.serve_peers import peers
from support.serve_points import COMPACTION, ISSUE, LANDING, TURN, UNDO, named
from support.serve_processes import Serves

DEATHS_PER_DRILL = 40


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", "--kills", dest="kills", type=int, default=1000, help="deaths")
    parser.add_argument("--serve", action="store_true", help="kill `bowerbird serve` itself")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where drills that went wrong are left")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    if options.serve:
        return serve_drills(options.kills, chance, options.keep)
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


def serve_drills(kills: int, chance: random.Random, keep: Path | None) -> int:
    """Kill servers so many times; every drill has its own kind of deaths. Returns the exit code."""
    import logging

    logging.getLogger("httpx").setLevel(logging.WARNING)
    hits: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    begun = time.perf_counter()
    serves = Serves()
    try:
        with peers() as world, tempfile.TemporaryDirectory(dir=keep) as directory:
            while totals["kills"] < kills:
                number = totals["drills"]
                drill = ServeDrill(Path(directory) / f"drill-{number}", world, ("review", "turn")[number % 2])
                _serve_drill(drill, serves, chance, number, kills - totals["kills"])
                drill.finish(serves)
                wrong = check(drill)
                hits.update(drill.hits())
                messages = sum(talk.accepted for talk in drill.talks)
                totals.update(drills=1, kills=drill.kills, messages=messages, wrong=bool(wrong))
                if wrong:
                    print(f"drill {number} ({drill.policy}): {wrong}")
                    if keep is not None:
                        drill.directory.rename(keep / drill.directory.name)
                print(dict(totals), flush=True)
    finally:
        serves.close()
    return _told(hits, totals, time.perf_counter() - begun)


def _serve_drill(drill: ServeDrill, serves: Serves, chance: random.Random, number: int, left: int) -> None:
    """At least one death of the kind that it is the turn of."""
    drill.begin(serves)
    kind = number % 4
    if kind == 3:
        drill.live(serves, None)
        for point in COMPACTION:
            drill.live(serves, point, drill.compact_and_speak)
        if drill.policy == "turn":
            for point in UNDO:
                drill.live(serves, None)
                drill.live(serves, point, drill.undo_newest, "undo ")
                drill.live(serves, None, drill.undo_newest)
    points = TURN + (LANDING if drill.policy == "turn" else [])
    by_name = [[p for p in points if p.partition(":")[0] in ISSUE[name]] for name in ISSUE]
    reachable = [found for found in by_name if found]
    while drill.kills < min(14, left):
        point = chance.choice(chance.choice(reachable))
        drill.live(serves, f"any:{chance.randint(1, 60)}" if kind == 2 else point)


def _told(hits: Counter[str], totals: Counter[str], seconds: float) -> int:
    by_name = named(hits)
    print(
        f"{totals['kills']} kills of `bowerbird serve`, {totals['messages']} messages in "
        f"{totals['drills']} data directories, {seconds:.0f} s; wrong: {totals['wrong']}"
    )
    for name in (*ISSUE, "undo", *sorted(set(by_name) - {*ISSUE, "undo"})):
        print(f"  {name:<18}{by_name.get(name, 0):>5}")
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
