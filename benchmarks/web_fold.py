"""The page's fold of frames: pieces that are cut, repeated, late and early, many times (issue 14, UI-86).

Here: running its property test with more seeds. Not here: the test (web/tests/pieces.test.ts), sockets that
are cut under a real page (`web_cuts.py`).

    python benchmarks/web_fold.py [--runs 100000]

Exit code 1 where a text came out otherwise; the seed is said. Some ten seconds for 100,000 on an idle machine.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from build_web import install, npm_command, one_at_a_time  # noqa: E402 - after the path to scripts


def main() -> int:
    """Run it and show what Node says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    runs = parser.parse_args().runs
    npm, environment = npm_command()
    with one_at_a_time():
        install(npm, environment)
    words = [
        "exec",
        "--",
        "node",
        "--test",
        "--experimental-strip-types",
        "--no-warnings",
        "tests/pieces.test.ts",
    ]
    done = subprocess.run(
        [*npm, *words], cwd=ROOT / "web", env={**environment, "FOLD_RUNS": str(runs)}, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
