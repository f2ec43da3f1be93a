"""Runs `make demo` again and again under varied conditions: every run must come out right.

Threads (1, 2, 4), tokens evaluated at once (16, 64, 256) and load (none, one, three busy processes) go round,
so that nine runs meet all pairs of neighbours. Each line is a run: its conditions, its seconds, right or not.
Nothing is fetched: `.demo/data` must hold the weights, and the beginnings that an earlier run kept are left out
in every third run.

    python benchmarks/demo_runs.py [--runs 20] [--first 0] [--logs DIRECTORY]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGINNINGS = ROOT / ".demo" / "data" / "models" / "beginnings"
THREADS, BATCHES, BUSY = (1, 2, 4), (64, 16, 256), (0, 1, 3)
MOST_S = 1_800
# Read by every process of the run when it starts: the program has no settings for these two.
CONDITIONS = """
import os, sys
if "bowerbird" in " ".join(sys.orig_argv):
    import bowerbird.models.local.engine as engine
    threads = int(os.environ["DEMO_THREADS"])
    os.sched_getaffinity = lambda _pid: set(range(threads))
    engine.BATCH = int(os.environ["DEMO_BATCH"])
"""


# Ends with the drill, however that ends.
BUSILY = "import os\nmine = os.getppid()\nwhile os.getppid() == mine: pass"


def run(number: int, place: Path, log: Path) -> bool:
    """Run the demo once; print what came of it."""
    threads, batch = THREADS[number % 3], BATCHES[number // 3 % 3]
    busy = BUSY[(number + number // 3) % 3]
    if number % 3 == 2:
        shutil.rmtree(BEGINNINGS, ignore_errors=True)
    given = {"PYTHONPATH": str(place), "DEMO_THREADS": str(threads), "DEMO_BATCH": str(batch)}
    loops = [subprocess.Popen([sys.executable, "-c", BUSILY]) for _ in range(busy)]
    begun = time.monotonic()
    try:
        with log.open("wb") as output:
            done = subprocess.run(
                [sys.executable, str(ROOT / "examples" / "demo.py")],
                stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **given}, timeout=MOST_S, check=False,
            )  # fmt: skip
        right = done.returncode == 0
    except subprocess.TimeoutExpired:
        right = False
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    said = "right" if right else f"WRONG, see {log}"
    print(
        f"run {number:2}  threads {threads}  batch {batch:3}  busy {busy}  load {os.getloadavg()[0]:4.1f}  "
        f"{time.monotonic() - begun:5.0f} s  {said}",
        flush=True,
    )
    return right


def main() -> int:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first run: it sets the conditions"
    )
    parser.add_argument("--logs", type=Path, default=Path(tempfile.gettempdir()))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="demo-runs-") as name:
        place = Path(name)
        (place / "sitecustomize.py").write_text(CONDITIONS, encoding="utf-8")
        numbers = range(chosen.first, chosen.first + chosen.runs)
        chosen.logs.mkdir(parents=True, exist_ok=True)
    right = [run(number, place, chosen.logs / f"demo-run-{number}.log") for number in numbers]
    print(f"{sum(right)} of {len(right)} right")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
