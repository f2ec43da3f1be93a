"""Two servers and the command on one data directory: messages, landings and resumes in turns, nobody refused.

    python benchmarks/shared_data.py [--n 300] [--talks 4] [--database sqlite|postgresql|both]

Real `bowerbird serve` processes; the third user is `bowerbird run --resume` and `bowerbird land`. Exit code 0
only when nobody was refused, every answer is there once and in order, and so is every line that the agent wrote.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fake_models import FakeModels
from support.postgres import postgres_server
from support.shared_data import Shared


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="messages, landings and resumes in all")
    parser.add_argument("--talks", type=int, default=4, help="conversations at once")
    parser.add_argument("--database", choices=("sqlite", "postgresql", "both"), default="both")
    options = parser.parse_args()
    wrong = 0
    if options.database != "postgresql":
        wrong += drill("sqlite", "", options.n, options.talks)
    if options.database != "sqlite":
        with postgres_server() as server:
            wrong += drill("postgresql", asyncio.run(server.database()), options.n, options.talks)
    return 1 if wrong else 0


def drill(name: str, url: str, deeds: int, talks: int) -> int:
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory, FakeModels() as model:
        with Shared(Path(directory) / "place", model, url) as shared:
            shared.run(deeds, talks)
        did = ", ".join(f"{door} {deed} {count}" for (door, deed), count in sorted(shared.done.items()))
        print(
            f"{name}: {did}; {time.perf_counter() - begun:.0f} s; refused: {len(shared.refused)}", flush=True
        )
        for line in shared.refused[:20]:
            print("   ", line)
        return len(shared.refused)


if __name__ == "__main__":
    sys.exit(main())
