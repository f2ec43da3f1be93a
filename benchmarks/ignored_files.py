"""Ignored files cost nothing: `diff --stat` of a new process beside 70,000 of them (GI-7: under 1 s).

    python benchmarks/ignored_files.py [--deleted 50000] [--made 20000] [--runs 5] [--keep DIR]

A scripted model removes one ignored directory, fills another and changes one file. Prints seconds of `bowerbird
diff --stat` beside them and of one beside none; exit code 1 when the median is over the bar. Only an idle
machine gives a figure.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fake_models import FakeModels
from support.project_work import Work, bash

BAR_S = 1.0
MAKE = """
import os
for d in range({made} // 100):
    os.makedirs(f"build/d{{d}}")
    for f in range(100):
        open(f"build/d{{d}}/f{{f}}", "w").write("made")
"""


def project(place: Path, files: int) -> None:
    """Make a repository with one file and this many ignored ones."""
    root = place / "project"
    root.mkdir(parents=True)
    (root / ".gitignore").write_text("node_modules/\nbuild/\n")
    (root / "a.txt").write_text("one\n")
    for words in ("init -q", "add -A", "-c user.name=U -c user.email=u@example.org commit -qm first"):
        subprocess.run(["git", *words.split()], cwd=root, check=True)
    for directory in range(files // 100):
        (root / f"node_modules/p{directory}").mkdir(parents=True)
        for number in range(100):
            (root / f"node_modules/p{directory}/f{number}.js").write_text("x")


def measure(place: Path, fake: FakeModels, deleted: int, made: int, runs: int) -> float:
    """Print and return the median seconds."""
    project(place, deleted)
    here = Work(place, fake, place)
    work = f"rm -rf node_modules; python3 -c '{MAKE.format(made=made)}'; echo two >> a.txt"
    here.do("Work.", [[bash(work)]])
    took: list[float] = []
    processor: list[float] = []
    for _ in range(runs):
        start, before = time.perf_counter(), os.times()
        said = here.command("diff", "--stat")
        after = os.times()
        took.append(time.perf_counter() - start)
        processor.append(sum(after[2:4]) - sum(before[2:4]))
    median = statistics.median(took)
    spent = f"{min(took):.2f} to {max(took):.2f}, {statistics.median(processor):.2f} s of processor"
    print(f"{deleted} ignored files deleted, {made} made: {median:.2f} s ({spent})")
    print("".join(f"    {line}\n" for line in said.splitlines()), end="")
    return median


def main() -> int:
    """Measure with and without; exit code 1 over the bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--deleted", type=int, default=50_000)
    parser.add_argument("--made", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="an empty directory to leave all of it in")
    asked = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: compiled once, not by each process
    with tempfile.TemporaryDirectory(prefix="ignored-") as folder, FakeModels() as fake:
        place = asked.keep or Path(folder)
        measure(place / "none", fake, 0, 0, asked.runs)
        median = measure(place / "many", fake, asked.deleted, asked.made, asked.runs)
    return 0 if median < BAR_S else 1


if __name__ == "__main__":
    sys.exit(main())
