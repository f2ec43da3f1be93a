"""Many sessions that land at the same time: none hangs, and the last landing costs what the first did.

    python benchmarks/landings.py [--sessions 15] [--landings 200] [--stored 0] [--data DIR]

Each session writes one small file and lands it, as a turn under policy `turn` does, `--landings` times, all
sessions at once in the default pool of threads, while the upkeep forgets old landings beside them. Printed: the
time of a landing in the first and in the last ten rounds of all sessions (median), and the slowest. `--stored`
makes that many stored branches first, which a landing must not notice. Exit code 1 when the last ten are slower
than 1.2 times the first ten, or a landing does not end.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bowerbird.core.threads import in_thread
from bowerbird.workspace import Branch, Workspace

AT_MOST = 1.2
TEN = 10


async def drive(branch: Branch, number: int, landings: int, took: list[list[float]]) -> None:
    for round_ in range(landings):
        await branch.write_file(f"s{number}/f{round_ % 5}.txt", f"{round_}\n")
        await in_thread(branch.end_turn, f"t_{round_}")  # as every turn does before it lands
        began = time.perf_counter()
        landing = await in_thread(lambda: branch.land(partial=True, actor="policy", door="policy"))
        took[round_].append(time.perf_counter() - began)
        assert landing.state == "done" and len(landing.entries) >= 1


async def keep_up(workspace: Workspace) -> None:
    while True:
        await asyncio.sleep(1)
        await in_thread(workspace.forget_landings)


async def measure(workspace: Workspace, sessions: int, landings: int) -> list[list[float]]:
    branches = [workspace.branch() for _ in range(sessions)]
    took: list[list[float]] = [[] for _ in range(landings)]
    upkeep = asyncio.create_task(keep_up(workspace))
    try:
        async with asyncio.timeout(max(600, landings * sessions)):
            await asyncio.gather(*(drive(b, n, landings, took) for n, b in enumerate(branches)))
    finally:
        upkeep.cancel()
    return took


async def store_branches(workspace: Workspace, count: int) -> None:
    for number in range(count):
        branch = workspace.branch()
        await branch.write_file("kept.txt", f"{number}\n")
        await in_thread(branch.land, ["kept.txt"]) if number % 40 == 0 else await in_thread(branch.end_turn)
        workspace.forget(branch.id)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=15)
    parser.add_argument("--landings", type=int, default=200, help="by each session")
    parser.add_argument("--stored", type=int, default=0, help="branches that exist beside them")
    parser.add_argument("--data", type=Path, help="an empty directory; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.data) as place:
        root = Path(place) / "ws"
        root.mkdir()
        with Workspace(root, data_dir=Path(place) / "data") as workspace:
            asyncio.run(store_branches(workspace, given.stored))
            began = time.monotonic()
            took = asyncio.run(measure(workspace, given.sessions, given.landings))
            all_s = time.monotonic() - began
            first = statistics.median(each for row in took[:TEN] for each in row)
            last = statistics.median(each for row in took[-TEN:] for each in row)
            slowest = max(max(row) for row in took)
            left = len(workspace.landings())
    count = given.sessions * given.landings
    print(
        f"{count} landings of {given.sessions} sessions beside {given.stored} stored: {all_s:.1f} s, none hung; "
        f"median of the first ten rounds {1000 * first:.1f} ms, of the last ten {1000 * last:.1f} ms "
        f"({last / first:.2f} x), slowest {1000 * slowest:.0f} ms; {left} landings kept"
    )
    return 0 if last <= AT_MOST * first else 1


if __name__ == "__main__":
    sys.exit(main())
