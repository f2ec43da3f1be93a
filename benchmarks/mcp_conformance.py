"""The official conformance suite of the Model Context Protocol, whole: some six minutes.

Runs `tests/conformance/run.sh`, which installs the suite from npm once. Exit code 1 when a scored check fails.
"""

import os
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).resolve().parent.parent / "tests/conformance/run.sh"


def main() -> int:
    """Run it with this Python; its lines are the result."""
    env = {**os.environ, "PYTHON": sys.executable}
    return subprocess.run([str(RUN)], env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
