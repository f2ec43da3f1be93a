"""The issue's "as a non-root user as well as root": the corpus again, by a user without rights.

What root's sandbox refuses, another's may not, and the other way round: who owns `/usr`, which limits the
kernel applies, which namespaces may be made. Skipped where the suite itself runs without rights: then all
other files are this test.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.unprivileged import Unprivileged, run_corpus

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="the whole suite runs without rights already"),
    pytest.mark.timeout(1500),  # for hangs only: it starts dozens of sandboxes
]
# Files, and which of their cases: those where the kernel asks who somebody is. One process, because each starts an
# interpreter and probes the host; `benchmarks/as_nobody.py` runs what else depends on it, at length.
FILES = "own_environment abuse_reads abuse_writes abuse_kernel abuse_processes abuse_exhaustion capture bombs copy_tier unreadable"
CASES = (
    "own_environment or abuse_reads or abuse_writes or abuse_kernel or fork or more_processes or outlives or quota "
    "or (capture and (kinds or rename)) or (copy_tier and read_only_directory) or unreadable or (bombs and memory-file)"
)


@pytest.fixture(scope="module")
def nobody() -> Iterator[Unprivileged]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        yield Unprivileged(Path(place))


def test_the_same_holds_for_a_user_without_rights(nobody: Unprivileged):
    ran = run_corpus(nobody, FILES.split(), CASES)
    told = [line for line in ran.stdout.splitlines() if line.startswith(("E  ", "FAILED", "tests/"))]
    assert ran.returncode == 0, "\n".join(
        [f"exit code {ran.returncode}", *told[:40], ran.stdout[-4000:], ran.stderr[-2000:]]
    )
    assert "passed" in ran.stdout or "100%" in ran.stdout
