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
from support.unprivileged import Unprivileged

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="the whole suite runs without rights already"),
    pytest.mark.timeout(1500),  # for hangs only: each starts dozens of sandboxes
]
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


@pytest.fixture(scope="module")
def nobody() -> Iterator[Unprivileged]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        yield Unprivileged(Path(place))


@pytest.mark.parametrize("name", SELECTED)
def test_the_same_holds_for_a_user_without_rights(nobody: Unprivileged, name: str):
    files, cases = SELECTED[name]
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-x", "-rs"]
    words += [str(path) for file in files.split() for path in Path("tests/sandbox").rglob(f"test_{file}.py")]
    ran = nobody.run([*words, "-k", cases] if cases else words, timeout=1400)
    told = [line for line in ran.stdout.splitlines() if line.startswith(("E  ", "FAILED", "tests/"))]
    assert ran.returncode == 0, "\n".join(
        [f"exit code {ran.returncode}", *told[:40], ran.stdout[-4000:], ran.stderr[-2000:]]
    )
    assert "passed" in ran.stdout or "100%" in ran.stdout
