"""Three servers and fifty schedules on one database, a server killed now and then: nothing doubled, nothing lost.

    python benchmarks/schedules.py [--seconds 180] [--kill-every 30] [--servers 3] [--tasks 50]
        [--interval 15] [--database postgresql|sqlite]

Real `bowerbird serve` processes; a random one is killed with SIGKILL and started again. Half of the tasks are
cron lines of every minute, of which each minute must have one run; the others are intervals, of which each run
must be due one interval behind the start of the run before. Exit code 0 only when that is so, each run is one
message and one turn that ended well, and none began before its time. The last 100 runs of a task are looked at.
"""

import argparse
import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.postgres import postgres_server
from support.schedule_drill import SQLITE, Drill, drill


def main() -> int:
    """Run it and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--kill-every", type=float, default=30.0)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--interval", type=int, default=15)
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    given = parser.parse_args()
    wanted = Drill(given.seconds, given.kill_every, given.servers, given.tasks, given.interval)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = SQLITE
        if given.database == "postgresql":
            url = asyncio.run(stack.enter_context(postgres_server()).database())
        outcome = drill(directory / "place", url, wanted)
    print(f"{given.database}: {outcome}; wrong: {len(outcome.wrong)}")
    for line in outcome.wrong[:30]:
        print("   ", line)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
