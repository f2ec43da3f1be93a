"""The corpus of the sandbox by a user without rights, at length; `tests/sandbox/test_as_nobody.py` runs the core.

    python benchmarks/as_nobody.py

Wants to be started by root: anybody else runs the whole suite without rights already.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.unprivileged import Unprivileged, run_corpus

# Files, and which of their cases; few processes, because each starts an interpreter and probes the host.
SELECTED = {
    "environment": ("own_environment caches git_config git_elsewhere", ""),
    "reads-writes-kernel": ("abuse_reads abuse_writes abuse_kernel", ""),
    "bombs": (
        "bombs shown_trees",
        "unlinked-in-socket or memory-file or buffers or stroke or neither or leads_no",
    ),
    "exhaustion-capture": (
        "abuse_processes abuse_exhaustion capture directory_renames",
        "fork or more_processes or outlives or cancelled or quota or closed or shared or odd or background or hidden "
        "or inside or kinds or absolute or rename or stays",
    ),
}


def main() -> int:
    """Run all; exit code 1 when something failed or nothing ran."""
    if os.getuid() != 0:
        print("not root: the whole suite runs without rights already")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        nobody = Unprivileged(Path(place))
        for name, (files, cases) in SELECTED.items():
            ran = run_corpus(nobody, files.split(), cases)
            print(
                f"{name}: {ran.stdout.strip().splitlines()[-1] if ran.stdout.strip() else 'nothing was said'}"
            )
            if ran.returncode != 0:
                failed += 1
                print(ran.stdout[-4000:], ran.stderr[-2000:])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
